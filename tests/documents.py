"""Documents as people have them, and as nobody should: PDF and DOCX files of a few hundred bytes, made by hand."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>\
<Override PartName="/word/document.xml" \
ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
_RELATIONS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">\
<Relationship Id="rId1" Target="word/document.xml" \
Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>"""


def pdf(*pages: Sequence[str], trailer: bytes = b"") -> bytes:
    """A PDF of these pages, each of lines; a page without lines is one as a scanner makes it. ASCII only."""
    contents = [_shown(lines) for lines in pages]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, content in enumerate(contents):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            + f"/Contents {5 + 2 * number} 0 R >>".encode()
        )
        objects.append(_stream(content))
    return pdf_of(objects, trailer)


def pdf_of(objects: Iterable[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of these objects, the first of which is its catalog."""
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    at = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    size = len(places) + 1
    out.write(b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, at))
    return out.getvalue()


def damaged_pdf(*pages: Sequence[str]) -> bytes:
    """A PDF of these pages, the second of which cannot be unpacked."""
    data = pdf(*pages)
    at = data.index(b"/Length", data.index(b"7 0 obj"))
    packed = b"/Length 9 /Filter /FlateDecode"
    return data[:at] + packed + data[data.index(b">>", at) :]


def encrypted_pdf(*pages: Sequence[str], password: str) -> bytes:
    """As a word processor saves it that is told to ask for a password."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(*pages))))
    writer.encrypt(password, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def pdf_bomb() -> bytes:
    """One page whose content is packed twice, and unpacks to 300 MB."""
    twice = zlib.compress(zlib.compress(b"BT (" + b"A" * (300 << 20) + b") Tj ET", 1), 9)
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>",
            _stream(twice, b"/Filter [/FlateDecode /FlateDecode]"),
            font,
        ]
    )


def endless_pages() -> bytes:
    """A tree of pages that holds itself."""
    return pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count 1 /Kids [2 0 R 2 0 R] >>"])


def swollen_pages(depth: int = 40) -> bytes:
    """A tree of pages in which each node names the next one twice: 2 ** depth pages."""
    nodes = [f"<< /Type /Pages /Count 2 /Kids [{n + 3} 0 R {n + 3} 0 R] >>".encode() for n in range(depth)]
    leaf = b"<< /Type /Page /MediaBox [0 0 9 9] >>"
    return pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", *nodes, leaf])


def docx(*paragraphs: str, headings: Iterable[str] = (), table: Sequence[Sequence[str]] = ()) -> bytes:
    """A DOCX: its headings, its paragraphs, its table."""
    parts = [
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>'
        for text in headings
    ]
    parts += [f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in paragraphs]
    if table:
        rows = [
            "".join(f"<w:tc><w:p><w:r><w:t>{escape(cell)}</w:t></w:r></w:p></w:tc>" for cell in row) for row in table
        ]
        parts.append(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>")
    return docx_of(f'<w:document xmlns:w="{_WORD}"><w:body>{"".join(parts)}</w:body></w:document>'.encode())


def docx_of(document: bytes) -> bytes:
    """A DOCX around this `word/document.xml`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("word/document.xml", b'<?xml version="1.0"?>' + document)
    return out.getvalue()


def docx_bomb() -> bytes:
    """A DOCX of some hundred kilobytes that unpacks to 300 MB."""
    return docx_of(b"<w:document>" + b"A" * (300 << 20) + b"</w:document>")


def entity_bomb() -> bytes:
    """A DOCX whose text is a billion laughs."""
    laughs = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10))
    head = b'<!DOCTYPE d [<!ENTITY l0 "ha">' + laughs + b"]>"
    return docx_of(head + f'<w:document xmlns:w="{_WORD}"><w:body><w:p>&l9;</w:p></w:body></w:document>'.encode())


def _shown(lines: Sequence[str]) -> bytes:
    if not lines:
        return b"0 0 m 9 9 l S"
    shown = " ".join(f"({_escaped(line)}) Tj T*" for line in lines)
    return f"BT /F1 12 Tf 14 TL 50 780 Td {shown} ET".encode("cp1252")


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _stream(content: bytes, keys: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), keys, content)
