"""How a model's name becomes a model: built-in providers, installed ones, servers of one's own, and the presets."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from council.errors import ConfigError
from council.llm import providers
from council.llm.presets import ollama_base_url
from council.llm.providers import BUILT_IN, GROUP
from council.settings import Home, ProviderKeys, Settings, load_provider_keys
from council.turns.model_building import build_model, provider_of
from tests.fake_openai import FakeOpenAI, Manners

ROOT = Path(__file__).parents[3]
KEY = "sk-test-0123456789abcdef"
KEYS = dict.fromkeys(("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "HF_TOKEN"), KEY)


def keys(home: Path, **environ: str) -> ProviderKeys:
    return load_provider_keys(Home(home), environ)


def model_of(home: Path, name: str, environ: dict[str, str] | None = None, **settings: Any) -> Any:
    given = Settings.model_validate({"model": name, **settings})
    return build_model(Home(home), given, keys(home, **(KEYS if environ is None else environ)))


def refusal(home: Path, name: str, environ: dict[str, str] | None = None, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        model_of(home, name, environ, **settings)
    return str(caught.value)


def request_of(home: Path, name: str, **settings: Any) -> dict[str, Any]:
    """What a model of that name sends, and to where; the address is looked at, then replaced."""
    setup = provider_of(Home(home), Settings.model_validate({"model": name, **settings}), keys(home, **KEYS), name)[1]
    return {
        "temperature": setup.temperature,
        "max_output_tokens": setup.max_output_tokens,
        "timeout": setup.request_timeout_s,
    }


# --- the registry -----------------------------------------------------------------------------------------------------


def test_the_councils_own_providers_are_declared_as_any_other() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    assert declared == BUILT_IN


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("offline", "offline"),
        ("gemini", "gemini:gemini-2.5-flash"),
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("openrouter:qwen/qwen3-8b:free", "openrouter:qwen/qwen3-8b:free"),
        ("huggingface:Qwen/Qwen3-8B", "huggingface:Qwen/Qwen3-8B"),
        ("kairos", "kairos:Qwen/Qwen2.5-7B-Instruct"),
        ("kairos:fallback", "kairos:microsoft/Phi-3.5-mini-instruct"),
        ("kairos:reasoning", "kairos:deepseek-ai/DeepSeek-R1"),
        ("kairos:deepseek-ai/DeepSeek-R1", "kairos:deepseek-ai/DeepSeek-R1"),
        ("ollama:qwen2.5:7b", "ollama:qwen2.5:7b"),
        ("vllm:Qwen/Qwen3-8B", "vllm:Qwen/Qwen3-8B"),
        ("llamacpp:any", "llamacpp:any"),
    ],
)
def test_a_name_becomes_the_model_that_receipts_print(tmp_path: Path, model: str, name: str) -> None:
    assert model_of(tmp_path, model).name == name


def test_an_unknown_provider_is_told_with_the_nearest_and_all_there_are(tmp_path: Path) -> None:
    text = refusal(tmp_path, "olama:qwen2.5")
    assert text.startswith(
        "there is no provider 'olama'. Fix: did you mean ollama? the providers are cassette, gemini, huggingface, "
    )
    assert "the providers are cassette" in refusal(tmp_path, "zzzz:x")


def test_a_table_without_an_address_is_no_server(tmp_path: Path) -> None:
    assert "[providers.mine] has no base_url" in refusal(
        tmp_path, "mine:x", providers={"mine": {"context_tokens": 4096}}
    )


def test_a_server_of_ones_own_is_a_table(tmp_path: Path) -> None:
    own = {"mine": {"base_url": "http://127.0.0.1:9/v1", "context_tokens": 4096, "models": {"small": "Qwen/Qwen3-8B"}}}
    model = model_of(tmp_path, "mine:small", {}, providers=own)
    assert (model.name, model.context_tokens) == ("mine:Qwen/Qwen3-8B", 4096)


def test_the_nearest_word_settles_a_limit(tmp_path: Path) -> None:
    table = {"providers": {"kairos": {"temperature": 0.9}}}
    assert request_of(tmp_path, "kairos") == {"temperature": 0.2, "max_output_tokens": 4096, "timeout": 60}
    assert request_of(tmp_path, "kairos", temperature=0.5)["temperature"] == 0.5
    assert request_of(tmp_path, "kairos", temperature=0.5, **table)["temperature"] == 0.9
    assert request_of(tmp_path, "openai:x") == {"temperature": None, "max_output_tokens": 8192, "timeout": 120}


async def test_the_kairos_set_sends_what_its_document_says(tmp_path: Path) -> None:
    with FakeOpenAI(manners=Manners(key=KEY)) as fake:
        model = model_of(tmp_path, "kairos", providers={"kairos": {"base_url": fake.url}})
        from council.llm.base import Message

        await model.generate([Message("user", "Answer in JSON.")], system="", schema={"type": "object"})
        await model.aclose()
    body = fake.requests[0].body
    assert {name: body[name] for name in ("model", "temperature", "max_tokens", "response_format")} == {
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "temperature": 0.2,
        "max_tokens": 4096,
        "response_format": {"type": "json_object"},
    }


def test_a_name_that_the_kairos_set_lacks_is_told_with_the_nearest(tmp_path: Path) -> None:
    assert "did you mean kairos:fallback? it has primary, fallback, reasoning" in refusal(tmp_path, "kairos:falback")


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:x", "OPENAI_API_KEY"),
        ("openrouter:x", "OPENROUTER_API_KEY"),
        ("kairos", "HF_TOKEN"),
        ("huggingface:a/b", "HF_TOKEN"),
    ],
)
def test_a_missing_key_is_named_before_anything_is_called(tmp_path: Path, model: str, variable: str) -> None:
    text = refusal(tmp_path, model, {})
    assert f"needs a key, and {variable} is not set" in text
    assert f"put {variable}=… into .env" in text
    assert f"{variable} contains characters that a key cannot have" in refusal(
        tmp_path, model, {variable: "two words 0123"}
    )


@pytest.mark.parametrize("model", ["ollama:x", "vllm:x", "llamacpp:x"])
def test_a_server_on_this_machine_wants_no_key(tmp_path: Path, model: str) -> None:
    assert model_of(tmp_path, model, {}).name == model


def test_a_key_that_a_table_names_is_found_needed_and_kept_out_of_texts(tmp_path: Path) -> None:
    own = {"mine": {"base_url": "http://127.0.0.1:9/v1", "key_env": "MY_SERVER_KEY"}}
    assert "needs a key, and MY_SERVER_KEY is not set" in refusal(tmp_path, "mine:x", {}, providers=own)
    (tmp_path / ".env").write_text(f"MY_SERVER_KEY={KEY}\n")
    found = keys(tmp_path)
    build_model(Home(tmp_path), Settings.model_validate({"model": "mine:x", "providers": own}), found)
    assert KEY not in found.redactor.redact(KEY)


def test_a_preset_can_be_told_that_its_server_wants_no_key(tmp_path: Path) -> None:
    table = {"openai": {"base_url": "http://127.0.0.1:9/v1", "key_env": ""}}
    assert model_of(tmp_path, "openai:x", {}, providers=table).name == "openai:x"


def test_a_setting_that_the_provider_does_not_have_is_told_with_the_nearest(tmp_path: Path) -> None:
    table = {"ollama": {"contxt_tokens": 4096}}
    assert refusal(tmp_path, "ollama:x", providers=table) == (
        "`contxt_tokens` in [providers.ollama] is not a setting of this provider. Fix: did you mean context_tokens?"
    )


def test_the_window_of_ollama_is_small_unless_it_is_told(tmp_path: Path) -> None:
    assert model_of(tmp_path, "ollama:x").context_tokens == 4096
    assert model_of(tmp_path, "ollama:x", {"OLLAMA_CONTEXT_LENGTH": "16000"}).context_tokens == 16_000
    table = {"ollama": {"context_tokens": 8000}}
    assert model_of(tmp_path, "ollama:x", {"OLLAMA_CONTEXT_LENGTH": "16000"}, providers=table).context_tokens == 8000
    assert "OLLAMA_CONTEXT_LENGTH is 'much'" in refusal(tmp_path, "ollama:x", {"OLLAMA_CONTEXT_LENGTH": "much"})


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("http://gpu-box", "http://gpu-box:80/v1"),
        ("https://models.example.org/ollama/", "https://models.example.org:443/ollama/v1"),
        ("[::1]:9000", "http://[::1]:9000/v1"),
        ("[::]", "http://127.0.0.1:11434/v1"),
    ],
)
def test_ollama_is_found_where_its_own_variable_says(host: str, url: str) -> None:
    assert ollama_base_url(host) == url


def test_an_address_of_ollama_that_is_none_is_told(tmp_path: Path) -> None:
    assert "OLLAMA_HOST is 'box:many'" in refusal(tmp_path, "ollama:x", {"OLLAMA_HOST": "box:many"})


# --- what is installed ------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the path of this process."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    return site


def install(site: Path, name: str, module: str, code: str, target: str = "provider") -> None:
    """A package as pip leaves it: its module, and a .dist-info folder with the entry point."""
    (site / f"{module}.py").write_text(code)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}:{target}\n")


def test_an_installed_provider_gets_its_setup_and_gives_the_model(installed: Path, tmp_path: Path) -> None:
    install(
        installed,
        "acme",
        "council_acme_a",
        "from council.llm.offline import OfflineModel\n"
        "def provider(setup):\n"
        "    model = OfflineModel()\n"
        "    model.seen = (setup.model_id, setup.options['region'], setup.require_key('ACME_KEY').reveal(), setup.home)\n"
        "    return model\n",
    )
    model = model_of(tmp_path, "acme:x1", {"ACME_KEY": KEY}, providers={"acme": {"region": "north"}})
    assert model.seen == ("x1", "north", KEY, tmp_path)
    assert "the providers are acme, cassette, gemini" in refusal(tmp_path, "nobody:x")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_of_that_name", "cannot be loaded from council_acme_b:provider (ModuleNotFoundError"),
        ("provider = 7", "is neither a Provider nor a function"),
        ("def provider(setup): return 1 / 0", "failed to build acme:x (ZeroDivisionError)"),
        ("def provider(setup): return None", "did not give a model (NoneType)"),
        ("", "cannot be loaded from council_acme_b:provider (AttributeError"),
    ],
)
def test_a_broken_provider_is_a_setting_to_mend(installed: Path, tmp_path: Path, code: str, said: str) -> None:
    sys.modules.pop("council_acme_b", None)
    install(installed, "acme", "council_acme_b", code)
    assert said in refusal(tmp_path, "acme:x")


def test_nothing_installed_takes_the_name_of_a_built_in_provider(installed: Path, tmp_path: Path) -> None:
    install(installed, "offline", "council_acme_c", "raise RuntimeError('never imported')")
    assert model_of(tmp_path, "offline").name == "offline"
    assert "offline" not in providers.installed_providers()


def test_building_a_built_in_model_neither_scans_nor_loads_the_others() -> None:
    code = (
        "import sys, importlib.metadata as m\n"
        "from pathlib import Path\n"
        "from council.turns.model_building import build_model\n"
        "from council.settings import Home, ProviderKeys, Settings\n"
        "m.entry_points = None\n"
        "build_model(Home(Path('.')), Settings(model='offline'), ProviderKeys())\n"
        "names = ('council.llm.gemini', 'council.llm.presets', 'google.genai', 'httpx2')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
