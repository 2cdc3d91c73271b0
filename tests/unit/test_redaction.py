"""What is known to be a secret, and what looks like a key, is removed in every form; nothing else is."""

from __future__ import annotations

import base64
import html
import json
import re
import textwrap
from pathlib import Path
from urllib.parse import quote, quote_plus

import msgspec
import pytest

from council.issued_keys import ISSUED_KEYS
from council.redaction import MASK, Redactor, Secret, is_recognisable

VALUE = 'pä$$w0rd/+&"<tail>\\end'
FORMS = {
    "plain": VALUE,
    "URL": quote(VALUE, safe=""),
    "URL, small": quote(VALUE, safe="").lower(),
    "form": quote_plus(VALUE),
    "JSON": json.dumps(VALUE)[1:-1],
    "JSON, UTF-8": json.dumps(VALUE, ensure_ascii=False)[1:-1],
    "hex": VALUE.encode().hex(),
    "HEX": VALUE.encode().hex().upper(),
    "percent, all": "".join(f"%{byte:02X}" for byte in VALUE.encode()),
    "HTML": "pä$$w0rd/+&amp;&quot;&lt;tail&gt;\\end",
}
KEYS = {
    "google": "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw"[:35],
    "openai": "sk-proj-abcDEF0123456789abcDEF0123456789",
    "anthropic": "sk-ant-api03-abcdefghijklmnop0123456789-_AA",
    "stripe": "sk_live_0123456789abcdefABCDEF01",
    "github": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github pat": "github_pat_" + "0123456789abcdefghij_" * 3,
    "gitlab": "glpat-0123456789abcdefghij",
    "slack": "xoxb-123456789012-abcdefABCDEF",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws secret": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "hugging face": "hf_abcdefghijklmnopqrstuvwxyz01234567",
    "ours": "lev_" + "aB3_-xyz" * 5,
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" * 4,
    "resend": "re_a1B2c3D4_" + "a1B2c3D4" * 3,
    "in a file name": "docs/backup_ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "mailchimp": "0123456789abcdef0123456789abcdef-us12",
    "deepl": "01234567-89ab-cdef-0123-456789abcdef:fx",
    "telegram": "123456789:AA" + "a1B2_-c3D4E" * 3,
    "discord": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "terraform cloud": "a1B2c3D4e5F6g7.atlasv1." + "aB3" * 21,
    "azure ad": "abc8Q~" + "a1B2c3D4" * 4,
    "discord hook": "https://discord.com/api/webhooks/123456789012345678/" + "a1B2c3D4" * 8 + "abcd",
    "sendgrid": "SG.0123456789abcdefABCDEF.0123456789abcdefABCDEF",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "bearer": "Authorization: Bearer abcdefghijklmnop0123456789",
    "url": "postgresql://council:hunter2hunter2@db.example/council",
    "pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQ==\n-----END PRIVATE KEY-----",
    "pem in JSON": "-----BEGIN RSA PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n-----END RSA PRIVATE KEY-----",
    "pem, cut off": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE\nAAAAB3NzaC1",
}
LIVE = {
    "aws secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "bearer": "abcdefghijklmnop0123456789",
    "url": "hunter2hunter2",
    "in a file name": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "discord hook": "123456789012345678/" + "a1B2c3D4" * 8 + "abcd",
}
PLAIN = [
    "Task-force sk-learn and a disk-based-cache-of-many-words-2",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "20261121-124340-25wf3vhv",
    "https://example.org:8080/path?user=1",
    "Authorization: Bearer YOUR_API_KEY",
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----",
    "the file begins with -----BEGIN PRIVATE KEY----- and must never be read",
    "a basic understanding of tokens and passwords",
    "hf_hub_download and npm_config_registry and lev_distance",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_known_value_is_removed_in_every_form(form: str) -> None:
    assert Redactor([Secret(VALUE)]).redact(f"before {form} after") == f"before {MASK} after"


LONG = "cAn07/ary+\"q'uote&\\z=Q<é>0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH"
KEY_BLOCK = "\n".join(["-----BEGIN THING-----", *["Mq7" * 21] * 5, "-----END THING-----"])
DISGUISES = {
    "json in json": json.dumps(json.dumps(LONG)),
    "json with escaped slashes": json.dumps(LONG).replace("/", "\\/"),
    "url, lower case": "".join(c if c.isalnum() and c.isascii() else "%" + c.encode().hex("%") for c in LONG),
    "encodeURIComponent": quote(LONG, safe="!'()*"),
    "encodeURI": quote(LONG, safe=";,/?:@&=+$-_.!~*'()#"),
    "url of base64": quote(base64.b64encode(LONG.encode()).decode(), safe=""),
    "decimal entities": "".join(f"&#{ord(c)};" for c in LONG),
    "hexadecimal entities": "".join(f"&#x{ord(c):x};" for c in LONG),
    "entities but for quotes": html.escape(LONG, quote=False),
    "u escapes": "".join(f"\\u{ord(c):04x}" for c in LONG),
    "x escapes": "".join(f"\\x{byte:02x}" for byte in LONG.encode()),
    "repr of bytes": repr(LONG.encode()),
    "hex with colons": LONG.encode().hex(":"),
    "hex with blanks": LONG.encode().hex(" ").upper(),
    "base64 as tools wrap it": base64.encodebytes(b"prefix" + LONG.encode()).decode(),
    "base64 wrapped in json": json.dumps(base64.encodebytes(LONG.encode()).decode()),
    "hex wrapped and indented": textwrap.indent("\n".join(textwrap.wrap(LONG.encode().hex(), 60)), "    "),
    "block, crlf": KEY_BLOCK.replace("\n", "\r\n"),
    "block, indented": textwrap.indent(KEY_BLOCK, "  "),
    "block in json": json.dumps(KEY_BLOCK),
    "block in base64": base64.b64encode(KEY_BLOCK.encode()).decode(),
}


@pytest.mark.parametrize("name", DISGUISES)
def test_a_known_value_is_removed_however_it_is_escaped_or_broken(name: str) -> None:
    """As a text, and as a text inside of a value: both ways say the same."""
    redactor = Redactor([Secret(LONG), Secret(KEY_BLOCK)])
    text = f"before {DISGUISES[name]}\nafter"
    left = redactor.redact(text)
    assert MASK in left
    assert len(left) < len("before  after") + 40
    assert (left.startswith("before "), left.endswith("after")) == (True, True)
    assert left.count("\n") == text.count("\n")
    assert redactor.redacted([text], list[str]) == [left]


@pytest.mark.parametrize("ending", ["", "…", "..."])
def test_the_greater_half_of_a_value_at_the_end_of_a_text_that_was_cut_goes_too(ending: str) -> None:
    redactor = Redactor([Secret(LONG)])
    assert redactor.redact(f"bad key {LONG[:40]}{ending}") == f"bad key {MASK}{ending}"
    assert redactor.redacted({"error": f"bad key {LONG[:40]}{ending}", "z": "z"}, dict) == {
        "error": f"bad key {MASK}{ending}",
        "z": "z",
    }


@pytest.mark.parametrize("word", ["succeeded", "Deliberate", "run_ended", "not-needed", "STRATEGIST"])
def test_a_plain_word_is_no_value_that_could_be_told_from_a_text(word: str) -> None:
    assert is_recognisable(word) is False
    assert Redactor([Secret(word)]).redact(f"the {word} thing") == f"the {word} thing"


@pytest.mark.parametrize("value", ["hunter2hunter2", "aBcDeFgHiJkL", "correcthorsebatterystaple"])
def test_what_is_no_plain_word_is_recognised(value: str) -> None:
    assert is_recognisable(value) is True
    assert Redactor([Secret(value)]).redact(f"the {value} thing") == f"the {MASK} thing"


@pytest.mark.parametrize("length", range(8, 30))
def test_a_known_value_is_removed_from_base64_wherever_it_begins_and_ends(length: int) -> None:
    value = "Zk7!qW2@eR4#tY6$uI8%oP0^aS3&dF5*"[:length]
    redactor = Redactor([Secret(value)])
    for before in range(4):
        for after in range(4):
            data = b"x" * before + value.encode() + b"y" * after
            for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
                left = redactor.redact(encoded)
                assert MASK in left
                kept = left.replace(MASK, "")
                assert len(kept) <= 12, "more than the edges stayed"


def test_a_value_registered_later_counts_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.redact("hunter2hunter2") == "hunter2hunter2"
    redactor.register(Secret("hunter2hunter2"))
    assert redactor.redact("hunter2hunter2") == MASK


def test_a_value_too_short_to_be_told_from_a_word_is_left() -> None:
    assert Redactor([Secret("secret")]).redact("the secret garden") == "the secret garden"


@pytest.mark.parametrize("name", KEYS)
def test_what_looks_like_a_key_is_removed_though_nobody_knows_it(name: str) -> None:
    left = Redactor().redact(f"see {KEYS[name]} there")
    assert MASK in left
    assert LIVE.get(name, KEYS[name]) not in left
    assert left.startswith("see ")
    assert left.endswith(" there")


SAMPLES = "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT"


def body(alphabet: str, length: int) -> str:
    """So many characters of the alphabet, a digit among them."""
    fitting = "".join(re.findall(f"[{alphabet}]", SAMPLES))
    return (fitting * (length // len(fitting) + 1))[:length]


def test_a_key_in_the_shape_that_its_issuer_publishes_is_removed_and_a_shorter_one_stays() -> None:
    for key in ISSUED_KEYS:
        for length in {key.least, key.most}:
            shown = Redactor().redact(f"see {key.prefix}{body(key.alphabet, length)} there")
            assert shown == f"see {MASK} there", key
        near = f"see {key.prefix}{body(key.alphabet, key.least - 1)} there"
        assert Redactor().redact(near) == near


def test_the_shapes_of_more_than_a_hundred_kinds_of_keys_are_known() -> None:
    assert len(ISSUED_KEYS) > 100
    assert len({key.prefix for key in ISSUED_KEYS}) == len(ISSUED_KEYS)


ASSIGNED = {
    "DB_PASSWORD=hunter2!": "hunter2!",
    "password: s3cr3t-and-long": "s3cr3t-and-long",
    'client_secret = "abcdefghij"': "abcdefghij",
    '{"clientSecret": "abcdefghij"}': "abcdefghij",
    "CLIENT-SECRET: 'zyxwvu'": "zyxwvu",
    '"{\\"password\\": \\"letmein99\\"}"': "letmein99",
    "api_key=a1b2c3d4e5": "a1b2c3d4e5",
    "passwd := tr0ub4dor": "tr0ub4dor",
    "passphrase => 'correct-horse'": "correct-horse",
    "AccountKey=" + "aB3/" * 21 + "aa==": "aB3/" * 21 + "aa==",
    "https://x.blob.example/a?sv=1&sig=" + "aB3x" * 11: "aB3x" * 11,
    "AUTH_TOKEN=t0ken-value": "t0ken-value",
    "Passwort: Geheim123!": "Geheim123!",
    "mot de passe : Secret123!": "Secret123!",
    "DB_PASS=abc12345": "abc12345",
    "Pass: abc12345": "abc12345",
    "JWT_SECRET=abcd1234efgh": "abcd1234efgh",
    "secret = 'abcd1234'": "abcd1234",
    "client secret: abcd1234": "abcd1234",
    "the password is: abc12345": "abc12345",
    "mysql --password abc12345": "abc12345",
    "curl -u anna:abc12345 https://a.example": "abc12345",
    "machine a.example login anna password abc12345": "abc12345",
    'passphrase="correct horse battery"': "correct horse battery",
    "redis://:abc12345abc@cache:6379": "abc12345abc",
    "DD_APP_KEY=" + "0a1b2c3d" * 5: "0a1b2c3d" * 5,
    "token: " + "aB3x" * 10: "aB3x" * 10,
    "_auth=" + "aB3x" * 10: "aB3x" * 10,
    "Authorization: token " + "aB3x" * 10: "aB3x" * 10,
}
UNASSIGNED = [
    "password: see the vault",
    "PASSWORD=$DB_PASSWORD",
    "password = os.environ['DB_PASSWORD']",
    "password=<your password>",
    "api_key = settings.api_key",
    "the password: nobody knows it",
    "client_secret=your-client-secret-1",
    "tokens: 4096",
    "primary key: order_id",
    "max_tokens = 8192000",
    "password_min_length = 12",
    "key = value",
    "_SECRET_CHARS = 65_536",
    "the secret: patience, and 3 more things",
    "sort_key = order_line_total",
    "primary_key: customer_2024_region",
    "git log --password-file notes",
]


@pytest.mark.parametrize("text", ASSIGNED)
def test_the_value_of_a_password_or_client_secret_is_removed(text: str) -> None:
    left = Redactor().redact(text)
    assert left == text.replace(ASSIGNED[text], MASK)
    assert Redactor().redact(left) == left


_NAMES = (
    "password", "passwd", "passwort", "kennwort", "contraseña", "contrasena", "mot de passe", "passphrase", "pwd", "pass", "psk",
    "db_pwd", "db_pass", "wifi_psk", "client secret", "client_secret", "api key", "secret_key", "account-key", "private key",
    "signing_key", "encryption_key", "access_token", "auth-token", "api_token", "refresh_token", "bot_token",
)  # fmt: skip
_LONG_NAMES = (
    "token",
    "TOKEN",
    "deploy-key",
    "DEPLOY_KEY",
    "deployKey",
    "npm_auth",
    '"auth',
    "github_pat",
    "GITHUB-PAT",
)


@pytest.mark.parametrize("name", _NAMES)
def test_a_value_is_removed_whichever_name_it_has(name: str) -> None:
    for spelled in (name, name.upper()):
        assert "Kx9!kd02" not in Redactor().redact(f"{spelled}: Kx9!kd02"), spelled


@pytest.mark.parametrize("name", _LONG_NAMES)
def test_a_long_value_is_removed_whichever_name_it_has(name: str) -> None:
    assert "k3j4h5" not in Redactor().redact(f"{name}: k3j4h5k3j4h5k3j4h5k3j4h5")


@pytest.mark.parametrize("spelled", ["paſſword", "api_\u212aey", "encryptıon key", "clİent secret"])
def test_a_letter_that_only_differs_in_case_does_not_hide_a_name(spelled: str) -> None:
    assert "Kx9!kd02" not in Redactor().redact(f"password, or {spelled}: Kx9!kd02")


@pytest.mark.parametrize("text", UNASSIGNED)
def test_what_only_speaks_of_a_password_stays(text: str) -> None:
    assert Redactor().redact(text) == text


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_resembles_a_key_stays(text: str) -> None:
    assert Redactor().redact(text) == text


def test_ordinary_documents_hold_nothing_that_is_removed() -> None:
    repository = Path(__file__).parents[2]
    for path in [*repository.glob("docs/*.md"), repository / "README.md", *repository.glob("council/**/*.py")]:
        if path.name != "redaction.py":
            text = path.read_text()
            assert Redactor().redact(text) == text, path


def test_line_numbers_stay() -> None:
    text = f"one\n{KEYS['pem']}\nlast"
    assert Redactor().redact(text).count("\n") == text.count("\n")
    assert Redactor().redact(text).splitlines()[-1] == "last"


def test_redacting_twice_changes_nothing_more() -> None:
    redactor = Redactor([Secret(VALUE)])
    once = redactor.redact(" ".join([*KEYS.values(), *FORMS.values()]))
    assert redactor.redact(once) == once


class Point(msgspec.Struct, frozen=True):
    name: str
    texts: tuple[str, ...] = ()
    by: dict[str, str] = {}


def test_every_text_of_a_value_is_redacted_and_a_clean_value_is_the_same_object() -> None:
    redactor = Redactor([Secret(VALUE)])
    clean = Point("a", ("b",), {"c": "d"})
    assert redactor.redacted(clean, Point) is clean
    bad = Point(VALUE, (f"x {VALUE}", KEYS["pem"]), {VALUE: KEYS["google"]})
    assert redactor.redacted(bad, Point) == Point(MASK, (f"x {MASK}", MASK + "\n" * 3), {MASK: MASK})
