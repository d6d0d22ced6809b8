"""Documents of strangers, read."""

from __future__ import annotations

import io
import zipfile

import pytest
from docx import Document as Word
from pypdf import PdfWriter

from checkstream.errors import DocumentUnreadable
from checkstream.evidence import extraction
from checkstream.evidence.extraction import decode, extract
from checkstream.evidence.kinds import Kind

PAGE = """<html><head><title>Refunds</title><style>p{}</style></head><body>
<nav><a href="/">Home</a> <a href="/x">Menu entry</a></nav>
<main><h1>Refunds<a class="headerlink" href="#x">¶</a></h1>
<p>Refunds are paid within <b>30 days</b> of a return. The customer pays for the parcel, and we pay the rest of it.</p>
<h2>Exceptions</h2><p>Opened software is not taken back. This holds for all countries, without exception.</p>
<ul><li>Games</li><li>Music</li></ul>
<table><tr><td>Country</td><td>Days</td></tr><tr><td>France</td><td>14</td></tr></table>
<pre>line one
line two</pre></main>
<script>alert("not text")</script><footer>Copyright notice and imprint</footer></body></html>"""


def word(*, levels: bool = True) -> bytes:
    document = Word()
    if levels:
        document.add_heading("Handbook", 0)
        document.add_heading("Refunds", 1)
    document.add_paragraph("Refunds are paid within 30 days.")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "France", "14 days"
    document.add_paragraph("After the table.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def pdf(text: str, *, password: str = "", letters: str = "") -> bytes:
    """Make a page with a text; `letters` says what its letters stand for, as a CMap does."""
    cmap = f"begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar {letters} endbfchar endcmap"
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica%s >>" % (b" /ToUnicode 6 0 R" if letters else b""),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap.encode()),
    ]
    body = b"%PDF-1.4\n"
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 7\n0000000000 65535 f \n%strailer << /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(body),
    )
    if not password:
        return body + end
    writer = PdfWriter(clone_from=io.BytesIO(body + end))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_page_is_its_main_text_with_its_headings_items_rows_and_code() -> None:
    text = extract(PAGE.encode(), Kind.HTML)
    assert "# Refunds\n" in text
    assert "## Exceptions\n" in text
    assert "paid within 30 days of a return." in text
    assert "- Games\n- Music" in text
    assert "France | 14" in text
    assert text.endswith("line one line two")
    for other in ("¶", "alert", "p{}", "Menu entry", "imprint"):
        assert other not in text


def test_word_gives_headings_paragraphs_and_rows_in_their_order() -> None:
    assert extract(word(), Kind.DOCX) == (
        "# Handbook\n\n# Refunds\n\nRefunds are paid within 30 days.\n\nFrance | 14 days\n\nAfter the table."
    )


def test_pdf_gives_its_text() -> None:
    assert extract(pdf("Refunds are paid within 30 days."), Kind.PDF) == "Refunds are paid within 30 days."


def test_half_a_letter_of_a_pdf_does_not_make_its_text_unkeepable() -> None:
    assert extract(pdf("A refund", letters="<41> <D800>"), Kind.PDF) == "? refund"


def test_text_and_markdown_stay_but_for_line_ends_controls_and_heaps_of_blank_lines() -> None:
    assert extract(b"# A  \r\n\r\n\r\n\r\nb\x07\x1b[0m\tc\r", Kind.MARKDOWN) == "# A\n\nb[0m\tc"
    assert extract("e\u0301".encode(), Kind.TEXT) == "é"


@pytest.mark.parametrize(
    ("data", "media_type", "text"),
    [
        (b"\xef\xbb\xbfa", "", "a"),
        ("é".encode("utf-16"), "", "é"),
        ("é".encode("latin-1"), "text/plain; charset=latin-1", "é"),
        ("שלום".encode("cp1255"), "text/plain; charset=windows-1255", "שלום"),
    ],
)
def test_encodings_are_told_by_mark_or_by_server(data: bytes, media_type: str, text: str) -> None:
    assert text in decode(data, media_type)


@pytest.mark.parametrize(
    ("data", "kind", "media_type", "reason"),
    [
        (b"\x00\x01\x02binary", Kind.TEXT, "", "bytes that stand in no text"),
        (b"\xff\xff", Kind.TEXT, "text/plain; charset=ascii", "not in `ascii`"),
        (b"\xff\xff", Kind.TEXT, "text/plain; charset=no-such", "not in `no-such`"),
        ("déjà vu".encode("cp1252"), Kind.TEXT, "", "nothing says what its encoding is"),
        (b"\xff\xfea", Kind.TEXT, "", "not in `utf-16`"),
        (b"  \n ", Kind.MARKDOWN, "", "holds no text"),
        (b"<html></html>", Kind.HTML, "", "no"),
        (b"", Kind.HTML, "", "no"),
        (b"%PDF-1.7\ngarbage", Kind.PDF, "", "PDF is damaged"),
        (pdf("x")[:120], Kind.PDF, "", "PDF is damaged"),
        (pdf("secret", password="p"), Kind.PDF, "", "encrypted"),
        (b"PK\x03\x04nothing", Kind.DOCX, "", "Word file is damaged"),
        (word()[:-200], Kind.DOCX, "", "Word file is damaged"),
    ],
)
def test_what_can_not_be_read_is_told_and_why(data: bytes, kind: Kind, media_type: str, reason: str) -> None:
    with pytest.raises(DocumentUnreadable, match=reason):
        extract(data, kind, media_type)


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * (1 << 20))
    monkeypatch.setattr(extraction, "_MAX_UNPACKED_BYTES", 1 << 19)
    with pytest.raises(DocumentUnreadable, match="unpacks to more"):
        extract(out.getvalue(), Kind.DOCX)


def test_a_document_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "MAX_CHARS", 10)
    with pytest.raises(DocumentUnreadable, match="more than 10 characters"):
        extract(b"word " * 10, Kind.TEXT)


def test_entities_of_an_office_file_bring_nothing_in() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word())) as given, zipfile.ZipFile(out, "w") as made:
        for name in given.namelist():
            body = given.read(name)
            if name == "word/document.xml":
                head, _, rest = body.partition(b"?>")
                entity = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
                body = head + b"?>" + entity + rest.replace(b"After the table.", b"After &e; end")
            made.writestr(name, body)
    try:
        text = extract(out.getvalue(), Kind.DOCX)
    except DocumentUnreadable:
        return
    with open("/etc/hostname") as file:  # noqa: PTH123 - what must not be there
        assert file.read().strip() not in text.replace("Refunds", "")
