"""The child process that turns one document into text: bytes come in on standard input, JSON goes out.

It imports nothing of the house, and is told no path. It runs as `python -I document_process.py KIND LIMITS`, where LIMITS is a
JSON object. It limits itself before it looks at a byte. Its exit code names a refusal (`EXITS`).
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import logging
import re
import resource
import signal
import sys
import zipfile
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

EXITS = {10: "encrypted", 11: "broken", 12: "too_heavy", 13: "too_many_pages", 14: "encoding"}
# The encodings that documents are found in; among all that exist, short texts are often mistaken for a rare one.
_ENCODINGS = [
    *("utf_16", "utf_32", "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
_LIKE_WESTERN = ("cp1250", "cp1254", "cp1257")  # a short text may be read in each, with other letters
_ASIAN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
# What Asian text has, read as Western: a letter beside another one that is not ASCII, or the first half of a kana.
_PAIRED = re.compile(r"ƒ|(?=[^\x00-\x7f]{2}).?[^\W\d_a-zA-Zµªº¹²³¼½¾]")
# Letters and signs that no text of Western Europe has there: what is read so is Polish, Czech, Hungarian, Turkish.
_NOT_WESTERN = re.compile(r"[ŠšŽžÐðÞþÝý]|õ(?!e)|Õ(?!E)|[¹²³¼½¾£¥¢¯º](?=[^\W\d_])|(?<=[^\W\d_])¿")
# Of these, the ones that have another letter in the code page of Eastern Europe, and so decide between the two.
_EASTERN = re.compile(r"õ(?!e)|Õ(?!E)|[¹³¼¾](?=[^\W\d_])|(?<=[^\W\d_])¿")
_CZECH = re.compile(r"(?s)(?=.*[ŠšŽžÝý]).*[øìò]")
_WESTERN = re.compile(r"[àâçêëåæäößñÀÂÇÊËÅÆÄÖÑ]")
_HIDES = re.compile(r"\b(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_LATIN_1 = ("iso-8859-1", "iso8859-1", "latin-1", "latin1", "iso-8859-15", "us-ascii", "ascii")


class TextOfPages(NamedTuple):
    """The text of each page; a document without pages is one. `encoding` is of plain text. `damaged`: the numbers of pages (from
    1) of which something could not be unpacked."""

    pages: list[str]
    encoding: str = ""
    damaged: Sequence[int] = ()


class DocumentRefusal(Exception):
    """The reason is one of the names in `EXITS`."""


def pdf_pages(data: bytes, limits: dict[str, int]) -> TextOfPages:
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):  # many open without a password, and only forbid printing
            raise DocumentRefusal("encrypted")
        if len(reader.pages) > limits["pages"]:
            raise DocumentRefusal("too_many_pages")
        pages: list[str] = []
        damaged: set[int] = set()

        def note(warning: logging.LogRecord) -> bool:
            damaged.add(len(pages) + 1)
            return False

        logging.getLogger("pypdf.filters").addFilter(note)  # which goes on without what it cannot unpack
        size = 0
        for page in reader.pages:
            pages.append(page.extract_text())
            size += len(pages[-1])
            if size > limits["output_bytes"]:
                raise DocumentRefusal("too_heavy")
        return TextOfPages(pages, damaged=sorted(damaged))
    except FileNotDecryptedError:
        raise DocumentRefusal("encrypted") from None
    except LimitReachedError as error:  # cycles in the tree of pages are among them
        raise DocumentRefusal("broken" if "cycle" in str(error) or "loop" in str(error) else "too_heavy") from None


def docx_pages(data: bytes, limits: dict[str, int]) -> TextOfPages:
    import defusedxml
    import mammoth

    defusedxml.defuse_stdlib()  # mammoth parses with xml.dom.minidom
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > limits["unpacked_bytes"]:
            raise DocumentRefusal("too_heavy")
    no_image = mammoth.images.img_element(lambda image: {})
    found = mammoth.convert_to_html(
        io.BytesIO(data),
        convert_image=no_image,
        include_embedded_style_map=False,
        style_map="p[style-name='Title'] => h1:fresh",
    )
    return html_pages(found.value.encode(), limits)


def html_pages(data: bytes, limits: dict[str, int]) -> TextOfPages:
    """Markdown, without emphasis, links and images: what a page says, in the words in which it is quoted."""
    from bs4 import BeautifulSoup
    from bs4.dammit import EncodingDetector
    from markdownify import MarkdownConverter

    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    marked = EncodingDetector.strip_byte_order_mark(data)[1] is not None
    # As browsers do: pages that call themselves Latin-1 have the euro sign and the dashes of Windows; a mark of bytes wins.
    soup = BeautifulSoup(data, "lxml", from_encoding="cp1252" if declared in _LATIN_1 and not marked else None)
    for unseen in soup.select("script, style, template, noscript, [hidden]"):
        unseen.decompose()
    for styled in soup.select("body [style]"):
        if not styled.decomposed and _HIDES.search(str(styled["style"])):
            styled.decompose()
    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        table_infer_header=True,
        strip=["a", "img", "b", "strong", "em", "i"],
        escape_asterisks=False,
        escape_underscores=False,
    )
    return TextOfPages([converter.convert_soup(soup)])


def text_pages(data: bytes, limits: dict[str, int]) -> TextOfPages:
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_isolation=_ENCODINGS).best()
    if best is None:
        raise DocumentRefusal("encoding")
    with contextlib.suppress(UnicodeDecodeError):
        western = data.decode("cp1252")
        alone = best.encoding in _ASIAN and not _PAIRED.search(western)
        if (best.encoding in _LIKE_WESTERN or alone) and not _NOT_WESTERN.search(western):
            return TextOfPages([western], "cp1252")
        is_czech = _CZECH.search(western) and not _WESTERN.search(western)
        if best.encoding == "cp1252" and (_EASTERN.search(western) or is_czech):
            return TextOfPages([data.decode("cp1250")], "cp1250")
    return TextOfPages([str(best)], best.encoding)


def mail_pages(data: bytes, limits: dict[str, int]) -> TextOfPages:
    """The head of a mail (from, to, date, subject), then its text. Attachments are named, and not read."""
    from email import message_from_bytes, policy

    mail = message_from_bytes(data, policy=policy.default)
    if not mail.keys():
        raise DocumentRefusal("broken")
    head = [f"{name}: {mail[name]}" for name in ("From", "To", "Date", "Subject") if mail[name]]
    head += [
        f"Attachment, not read: {part.get_filename() or part.get_content_type()}" for part in mail.iter_attachments()
    ]
    body = mail.get_body(("plain", "html"))
    if body is None:
        return TextOfPages(["\n".join(head)])
    try:
        text = body.get_content()
    except LookupError:  # an encoding that nobody knows
        [text] = text_pages(cast("bytes", body.get_payload(decode=True)), limits).pages
    if body.get_content_subtype() == "html":
        [text] = html_pages(text.encode("utf-8-sig"), limits).pages  # the mark wins over what the page says of itself
    return TextOfPages(["\n".join([*head, "", text.replace("\r\n", "\n")])])


KINDS: dict[str, Callable[[bytes, dict[str, int]], TextOfPages]] = {
    "pdf": pdf_pages,
    "docx": docx_pages,
    "html": html_pages,
    "mail": mail_pages,
    "text": text_pages,
}


def main(kind: str, limits: dict[str, int]) -> int:
    """Returns the exit code."""
    exits = {name: code for code, name in EXITS.items()}
    signal.alarm(limits["wall_s"])  # also when nobody is left to end it
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_s"], limits["cpu_s"] + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits["output_bytes"], limits["output_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "darwin":  # whose kernel refuses this one
        resource.setrlimit(resource.RLIMIT_AS, (limits["memory_bytes"], limits["memory_bytes"]))
    try:
        found = KINDS[kind](sys.stdin.buffer.read(), limits)
        sys.stdout.buffer.write(json.dumps(found._asdict()).encode())
        sys.stdout.buffer.flush()
    except DocumentRefusal as refused:
        return exits[str(refused)]
    except MemoryError:
        return exits["too_heavy"]
    except OSError as error:
        return exits["too_heavy" if error.errno == errno.EFBIG else "broken"]
    except ImportError:  # says nothing about the document
        raise
    except Exception:  # noqa: BLE001  a parser raises whatever a hostile file makes it raise
        return exits["broken"]
    return 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
