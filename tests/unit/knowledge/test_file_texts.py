"""The text of files of every kind; documents are read by a real child process."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from council.errors import PathRefused, StorageFailed
from council.ids import sha256_hex
from council.knowledge import file_texts
from council.knowledge.cortex.cortex import Cortex
from council.knowledge.document_process import TextOfPages, text_pages
from council.knowledge.file_texts import FileTexts, ReadingLimits
from council.knowledge.library import Library
from council.storage.paths import ConfinedRoot, PathRules
from tests import documents

OFFER = (["Offer of the garage", "The Kangoo costs 19,900 EUR."], [], ["Valid until 15 December."])


@pytest.fixture
def texts(tmp_path: Path) -> Iterator[FileTexts]:
    with ConfinedRoot(tmp_path) as root:
        yield FileTexts(root, 1 << 20, 32 << 20)


def library(texts: FileTexts, max_text_bytes: int = 65_536) -> Library:
    return Library(texts, PathRules(deny=()), max_text_bytes=max_text_bytes)


def test_a_pdf_is_its_text_under_marks_of_its_pages(tmp_path: Path, texts: FileTexts) -> None:
    data = documents.pdf(*OFFER)
    (tmp_path / "offer.pdf").write_bytes(data)
    found = texts.read("offer.pdf")
    assert found.text == (
        "[page 1]\nOffer of the garage\nThe Kangoo costs 19,900 EUR.\n[page 2]\n[page 3]\nValid until 15 December.\n"
    )
    assert found.sha256 == sha256_hex(data)
    assert found.note == "no text on page 2"


def test_a_page_of_a_pdf_that_cannot_be_unpacked_is_no_page_without_text(tmp_path: Path, texts: FileTexts) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.damaged_pdf(["one"], ["lost"], [], ["four"]))
    found = texts.read("a.pdf")
    assert found.text == "[page 1]\none\n[page 2]\n[page 3]\n[page 4]\nfour\n"
    assert found.note == "page 2 could not be read in full; no text on page 3"
    (tmp_path / "b.pdf").write_bytes(documents.damaged_pdf([], ["lost"]))
    with pytest.raises(PathRefused, match="is damaged"):
        texts.read("b.pdf")


def test_no_line_of_a_pdf_passes_for_a_mark(tmp_path: Path, texts: FileTexts) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["[page 7]", " [page 8] ", "the end"], ["two"]))
    assert texts.read("a.pdf").text == "[page 1]\n(page 7)\n(page 8)\nthe end\n[page 2]\ntwo\n"


def test_a_word_of_a_pdf_that_a_line_end_splits_is_one_word(tmp_path: Path, texts: FileTexts) -> None:
    lines = ["Die Liefer-", "frist ist kurz, siehe Excel-", "Tabelle und 2025-", "2026 -", "wie gesagt."]
    (tmp_path / "a.pdf").write_bytes(documents.pdf(lines))
    assert texts.read("a.pdf").text == (
        "[page 1]\nDie Lieferfrist\nist kurz, siehe Excel-\nTabelle und 2025-\n2026 -\nwie gesagt.\n"
    )


def test_a_pdf_that_only_forbids_printing_is_read(tmp_path: Path, texts: FileTexts) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.encrypted_pdf(["open to all"], password=""))
    assert "open to all" in texts.read("a.pdf").text


def test_a_docx_is_markdown_with_its_headings_and_tables(tmp_path: Path, texts: FileTexts) -> None:
    table = [["Model", "Price"], ["Kangoo", "19,900"]]
    data = documents.docx("Für alle: 5_a * b.", headings=["Angebot"], table=table)
    (tmp_path / "offer.docx").write_bytes(data)
    found = texts.read("offer.docx")
    assert found.text == ("# Angebot\n\nFür alle: 5_a * b.\n\n| Model | Price |\n| --- | --- |\n| Kangoo | 19,900 |\n")
    assert found.sha256 == sha256_hex(data)


def test_html_is_what_a_reader_sees_of_it(tmp_path: Path, texts: FileTexts) -> None:
    (tmp_path / "a.html").write_text(
        "<html><style>p{}</style><script>steal()</script><h2>Rules</h2><p>One <b>bold</b> <a href='x'>word</a>.<p hidden>no"
        "<div style='Display : none'>no<p>no</div>"
        "<table><tr><th>A<th>B<tr><td>1<td>2</table></html>"
    )
    assert texts.read("a.html").text == "## Rules\n\nOne bold word.\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_page_that_calls_itself_latin_1_keeps_its_euros_as_in_a_browser(tmp_path: Path, texts: FileTexts) -> None:
    page = "<html><head><meta charset=iso-8859-1></head><body><p>Preis: 44 € – gültig</p></body></html>"
    (tmp_path / "a.html").write_bytes(page.encode("cp1252"))
    assert texts.read("a.html").text == "Preis: 44 € – gültig\n"


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        ("Die Prüfung kostet für größere Straßen 12,50 €.\n", "cp1252", "Windows-1252"),
        ("Привет, как дела? Это тест кодировки.\n", "cp1251", "Windows-1251"),
        ("日本語のテキストです。これはテストです。\n", "shift_jis", "Shift_JIS"),
        ("Zwei Bytes für jedes Zeichen €\n", "utf-16", "UTF-16"),
    ],
)
def test_text_in_another_encoding_is_read_and_the_guess_is_said(
    tmp_path: Path, texts: FileTexts, text: str, encoding: str, named: str
) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    found = texts.read("a.txt")
    assert found.text == text
    assert found.note == f"encoding guessed: {named}"


def test_a_byte_order_mark_wins_over_an_encoding_that_a_page_names(tmp_path: Path, texts: FileTexts) -> None:
    page = "<html><head><meta charset=iso-8859-1></head><body><p>Preis: 44 € – gültig</p></body></html>"
    (tmp_path / "a.html").write_bytes(page.encode("utf-8-sig"))
    assert texts.read("a.html").text == "Preis: 44 € – gültig\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("The price is £300 – “final”, he said.\n", "cp1252"),
        ("El año pasado, el señor Núñez pagó 30 €.\n", "cp1252"),
        ("På mødet kostede det 40 kr. for 85 m², 21 °C.\n", "cp1252"),
        ("Três opções: não há pão às 10 h.\n", "cp1252"),
        ("Le garage Škoda à Genève, près de la gare, est ouvert.\n", "cp1252"),
        ("L´été à la crèche, près de la forêt, coûte 30 € par jour.\n", "cp1252"),
        ("Flow: 3 m³, 21 °C ± 2 µm\n", "cp1252"),
        ("Posten;Betrag\r\nMüll;12,50\r\n", "cp1252"),
        ("Fußgänger;3\nÖl;5\n", "cp1252"),
        ("São Paulo;5\n", "cp1252"),
        ("住所;東京都\n", "cp932"),
        ("ソフト;30\n", "cp932"),
        ("Cena je 300 korun, řekl starosta a všichni mlčeli.\n", "cp1250"),
        ("Umowa została podpisana w Łodzi, cena wynosi 300 zł.\n", "cp1250"),
        ("A bizottság ülése: őrült ár, 300 forint.\n", "cp1250"),
    ],
)
def test_a_short_text_is_western_unless_its_letters_are_not(text: str, encoding: str) -> None:
    assert text_pages(text.encode(encoding), {}) == TextOfPages([text], encoding)


def test_utf_8_is_read_as_it_is_and_without_a_child(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_texts, "_PROCESS", tmp_path / "there-is-none.py")
    (tmp_path / "a.md").write_bytes("\ufeffGrüße\r\n\x0cnext\n".encode())
    assert texts.read("a.md").text == "Grüße\n\x0cnext\n"


MAIL = b"""From: =?utf-8?q?J=C3=B6rg?= <joerg@garage.example>\r
To: council@home.example\r
Date: Fri, 20 Nov 2026 09:00:00 +0100\r
Subject: =?iso-8859-1?q?Das_Angebot_f=FCr?= den Kangoo\r
X-Spam: no\r
MIME-Version: 1.0\r
Content-Type: %s; boundary=B\r
\r
--B\r
Content-Type: text/%s; charset=%s\r
Content-Transfer-Encoding: %s\r
\r
%s\r
--B\r
Content-Type: application/pdf\r
Content-Disposition: attachment; filename="offer.pdf"\r
Content-Transfer-Encoding: base64\r
\r
JVBERi0=\r
--B--\r
"""


@pytest.mark.parametrize(
    ("subtype", "charset", "encoding", "body"),
    [
        (b"plain", b"utf-8", b"quoted-printable", b"Der Preis betr=C3=A4gt 19.=\r\n900 =E2=82=AC."),
        (b"plain", b"iso-8859-15", b"base64", b"RGVyIFByZWlzIGJldHLkZ3QgMTkuOTAwIKQu"),
        (b"html", b"utf-8", b"8bit", "<meta charset=latin-1><p>Der <b>Preis</b> beträgt 19.900 €.</p>".encode()),
        (b"plain", b"x-nobody-knows", b"8bit", "Der Preis beträgt 19.900 €.".encode("cp1252")),
    ],
)
def test_a_mail_is_read_decoded_under_its_headers_and_its_attachment_is_named(
    tmp_path: Path, texts: FileTexts, subtype: bytes, charset: bytes, encoding: bytes, body: bytes
) -> None:
    (tmp_path / "offer.eml").write_bytes(MAIL % (b"multipart/mixed", subtype, charset, encoding, body))
    assert texts.read("offer.eml").text == (
        "From: Jörg <joerg@garage.example>\nTo: council@home.example\nDate: Fri, 20 Nov 2026 09:00:00 +0100\n"
        "Subject: Das Angebot für den Kangoo\nAttachment, not read: offer.pdf\n\nDer Preis beträgt 19.900 €.\n"
    )


REFUSED: dict[str, tuple[str, Callable[[], bytes], str, str]] = {
    "scanned": ("scan.pdf", lambda: documents.pdf([], []), "no_text", "OCR"),
    "encrypted": (
        "locked.pdf",
        lambda: documents.encrypted_pdf(["x"], password="p"),
        "encrypted",
        "without the password",
    ),
    "locked docx": ("locked.docx", lambda: b"\xd0\xcf\x11\xe0" * 99, "encrypted", "without the password"),
    "half a pdf": ("half.pdf", lambda: b"%PDF-1.7\n1 0 obj\n<<", "broken", "save it again"),
    "no pdf": ("no.pdf", lambda: b"just words", "broken", "save it again"),
    "no mail": ("no.eml", lambda: b"\njust words", "broken", "save it again"),
    "no docx": ("no.docx", lambda: b"just words", "broken", "save it again"),
    "an ASCII pdf named text": ("offer.txt", lambda: documents.pdf(["x"]), "format", "ends in .pdf"),
    "rtf": ("letter.rtf", lambda: b"{\\rtf1 hello}", "format", "DOCX, PDF or plain text"),
    "rtf named text": ("letter.txt", lambda: b"{\\rtf1 hello}", "format", "DOCX, PDF or plain text"),
    "old word": ("letter.doc", lambda: b"\xd0\xcf\x11\xe0", "format", "save it as DOCX"),
    "spreadsheet": ("costs.xlsx", lambda: b"PK\3\4", "format", "CSV"),
    "binary": ("a.bin", lambda: b"\x7fELF\0", "binary", "text file"),
    "UTF-16 without a mark": ("a.txt", lambda: "Größe: 40 GB\n".encode("utf-16-le"), "encoding", "save it as UTF-8"),
    "the other UTF-16": ("a.txt", lambda: "Größe: 40 GB\n".encode("utf-16-be"), "encoding", "save it as UTF-8"),
    "noise": ("a.txt", lambda: bytes(range(1, 256)) * 20, "encoding", "UTF-8"),
    "pdf bomb": ("bomb.pdf", documents.pdf_bomb, "too_heavy", "split it"),
    "docx bomb": ("bomb.docx", documents.docx_bomb, "too_heavy", "split it"),
    "a billion laughs": ("laughs.docx", documents.entity_bomb, "broken", "save it again"),
    "5,000 pages": ("long.pdf", lambda: documents.pdf(*[["p"]] * 5000), "too_many_pages", "split it"),
    "endless pages": ("endless.pdf", documents.endless_pages, "broken", "save it again"),
    "a trillion pages": ("trillion.pdf", documents.swollen_pages, "too_heavy", "split it"),
    "deep html": ("deep.html", lambda: b"<div>" * 100_000 + b"x", "broken", "save it again"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_a_named_refusal_that_says_what_to_do(
    tmp_path: Path, texts: FileTexts, case: str
) -> None:
    name, make, reason, fix = REFUSED[case]
    (tmp_path / name).write_bytes(make())
    with pytest.raises(PathRefused) as refusal:
        texts.read(name)
    assert refusal.value.reason == reason
    assert name in refusal.value.message
    assert fix in refusal.value.fix


def test_a_file_beyond_its_limit_names_the_setting_of_its_kind(tmp_path: Path) -> None:
    with ConfinedRoot(tmp_path) as root:
        texts = FileTexts(root, 100, 200)
        (tmp_path / "a.md").write_bytes(b"x" * 150)
        (tmp_path / "a.html").write_bytes(b"x" * 150)
        (tmp_path / "b.html").write_bytes(b"x" * 250)
        assert texts.read("a.html").text == "x" * 150 + "\n"
        with pytest.raises(PathRefused, match="max_file_bytes"):
            texts.read("a.md")
        with pytest.raises(PathRefused, match="max_document_bytes"):
            texts.read("b.html")


# ── the child and its limits ─────────────────────────────────────────────────────────────────────────────────────────


def with_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> Path:
    child = tmp_path / "child.py"
    child.write_text(source)
    monkeypatch.setattr(file_texts, "_PROCESS", child)
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["x"]))
    return child


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("not JSON", "broken"),
        ('{"pages": 3, "encoding": ""}', "broken"),
        ('{"pages": ["x"], "encoding": "", "more": 1}', "broken"),
        ('{"pages": [], "encoding": ""}', "no_text"),
        (json.dumps({"pages": ["x"] * 2001, "encoding": ""}), "too_many_pages"),
        ("[" * 100_000, "broken"),
    ],
)
def test_no_answer_of_the_child_is_believed(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch, answer: str, reason: str
) -> None:
    (tmp_path / "answer").write_text(answer)
    with_child(monkeypatch, tmp_path, f"print(open({str(tmp_path / 'answer')!r}).read())")
    with pytest.raises(PathRefused) as refusal:
        texts.read("a.pdf")
    assert refusal.value.reason == reason


def test_a_child_that_says_too_much_or_is_killed_or_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ConfinedRoot(tmp_path) as root:
        texts = FileTexts(root, 1 << 20, 1 << 20, ReadingLimits(wall_s=1, output_bytes=1000))
        for number, source in enumerate(
            ("print('x' * 5000)", "import os; os.kill(os.getpid(), 9)", "import signal; signal.pause()")
        ):
            with_child(monkeypatch, tmp_path, source)
            (tmp_path / "a.pdf").write_bytes(documents.pdf([f"{number}"]))
            with pytest.raises(PathRefused) as refusal:
                texts.read("a.pdf")
            assert refusal.value.reason == "too_heavy", source


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("a.pdf", ReadingLimits(cpu_s=1)),
        ("a.html", ReadingLimits(memory_bytes=128 << 20)),
        ("a.pdf", ReadingLimits(output_bytes=10_000)),
    ],
    ids=["processor", "memory", "output"],
)
def test_each_limit_ends_a_document_that_crosses_it(tmp_path: Path, name: str, limits: ReadingLimits) -> None:
    with ConfinedRoot(tmp_path) as root:
        texts = FileTexts(root, 1 << 20, 32 << 20, limits)
        (tmp_path / "a.pdf").write_bytes(documents.pdf(*[["some words of a page"] * 60] * 1900))
        (tmp_path / "a.html").write_bytes(b"<p>x" * (2 << 20))
        with pytest.raises(PathRefused) as refusal:
            texts.read(name)
    assert refusal.value.reason == "too_heavy"


def test_a_child_that_a_document_crashes_means_a_broken_document(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_child(monkeypatch, tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(PathRefused) as refusal:
        texts.read("a.pdf")
    assert refusal.value.reason == "broken"


def test_a_reader_that_fails_blames_no_document_and_is_tried_again(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_child(monkeypatch, tmp_path, "import a_library_that_is_not_installed")
    with pytest.raises(PathRefused, match="the process that reads documents failed") as refusal:
        texts.read("a.pdf")
    assert refusal.value.reason == "reader_failed"
    monkeypatch.undo()
    assert texts.read("a.pdf").text == "[page 1]\nx\n"


def test_nobody_waits_for_a_document_when_the_process_is_told_to_end(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = tmp_path / "began"
    os.mkfifo(began)
    with_child(monkeypatch, tmp_path, f"import signal; open({str(began)!r}, 'w').close(); signal.pause()")
    ended: list[BaseException] = []

    def read() -> None:
        try:
            texts.read("a.pdf")
        except StorageFailed as error:
            ended.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    began.read_bytes()  # the child runs, and will not end by itself
    texts.close()
    reader.join(30)
    assert "told to end" in str(ended[0])


def test_the_child_gets_no_secret_of_the_environment(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "canary")
    told = "import json, os; print(json.dumps({'pages': [' '.join(os.environ), 'x'], 'encoding': ''}))"
    with_child(monkeypatch, tmp_path, told)
    names = texts.read("a.pdf").text
    assert "PATH" in names
    assert "GEMINI_API_KEY" not in names


def test_a_document_is_extracted_once_for_as_long_as_its_bytes_are_the_same(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["once"]))
    (tmp_path / "scan.pdf").write_bytes(documents.pdf([]))
    first = texts.read("a.pdf")
    with pytest.raises(PathRefused):
        texts.read("scan.pdf")
    monkeypatch.setattr(file_texts, "_PROCESS", tmp_path / "there-is-none.py")
    assert texts.read("a.pdf") is first
    with pytest.raises(PathRefused, match="contains no text"):
        texts.read("scan.pdf")
    monkeypatch.undo()
    (tmp_path / "a.pdf").write_bytes(documents.pdf(["twice"]))
    assert "twice" in texts.read("a.pdf").text


def test_reading_a_document_leaves_the_event_loop_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from council.knowledge.tools import FilePath, read_file
    from council.tools.tool import ToolContext

    gate = tmp_path / "gate"
    os.mkfifo(gate)
    source = f'open({str(gate)!r}).read(); print(\'{{"pages": ["words"], "encoding": ""}}\')'
    with_child(monkeypatch, tmp_path, source)

    async def read() -> str:
        with ConfinedRoot(tmp_path) as root:
            tool = read_file(library(FileTexts(root, 1 << 20, 1 << 20)))
            waits = asyncio.ensure_future(tool.run(FilePath(path="a.pdf"), context=ToolContext("AUDITOR", "r1")))
            await asyncio.sleep(0)
            threading.Thread(target=gate.write_text, args=("go",)).start()  # only now can the child go on
            return (await waits).text

    assert asyncio.run(read()) == "[page 1]\nwords\n"


# ── pages as places ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_pages_of_a_pdf_are_read_by_number(tmp_path: Path, texts: FileTexts) -> None:
    (tmp_path / "offer.pdf").write_bytes(documents.pdf(*OFFER))
    found = library(texts).read("offer.pdf", first_line=2, last_line=3)
    assert found.text == "[page 2]\n[page 3]\nValid until 15 December.\n"
    assert (found.first_line, found.last_line, found.total_lines, found.cut) == (2, 3, 3, False)
    with pytest.raises(PathRefused, match="has 3 pages; 9 is not among them") as refusal:
        library(texts).read("offer.pdf", first_line=9, last_line=9)
    assert (refusal.value.reason, refusal.value.fix) == ("no_such_pages", "ask for pages between 1 and 3")


def test_a_long_pdf_is_cut_and_says_up_to_which_page(tmp_path: Path, texts: FileTexts) -> None:
    (tmp_path / "long.pdf").write_bytes(documents.pdf(*[[f"page number {n}"] for n in range(1, 31)]))
    found = library(texts, max_text_bytes=100).read("long.pdf")
    assert found.cut
    assert (found.first_line, found.last_line, found.total_lines) == (1, 4, 30)
    assert found.text.endswith("[page 4]\npage number 4\n")


def test_the_cortex_finds_passages_of_documents_at_their_pages(tmp_path: Path, texts: FileTexts) -> None:
    data = documents.pdf(*OFFER)
    (tmp_path / "offer.pdf").write_bytes(data)
    (tmp_path / "minutes.docx").write_bytes(documents.docx("The heron was seen.", headings=["Minutes"]))
    (tmp_path / "page.html").write_text("<h1>Rules</h1><p>Walruses wait outside.</p>")
    (tmp_path / "scan.pdf").write_bytes(documents.pdf([]))
    cortex = Cortex(texts, PathRules(deny=()), tmp_path / ".council" / "cortex")
    [hit] = cortex.query("valid until December").hits
    assert (hit.path, hit.first_line, hit.last_line, hit.heading) == ("offer.pdf", 3, 3, "page 3")
    assert (hit.quotation, hit.sha256) == ("Valid until 15 December.", sha256_hex(data))
    [heron] = cortex.query("heron").hits
    assert (heron.path, heron.first_line, heron.heading) == ("minutes.docx", 1, "Minutes")
    [walrus] = cortex.query("walruses").hits
    assert (walrus.path, walrus.heading) == ("page.html", "Rules")
    assert cortex.status().skipped == {"ignored": 1, "no_text": 1}
