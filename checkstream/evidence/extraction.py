"""Bytes of a document -> its text as Markdown: headings, paragraphs, items, rows; no menus, scripts or styles.

This reads what strangers wrote, with libraries that were not written against them: it runs in a process of its own
(`sandbox`), which may be killed. INVARIANT: nothing here opens a file or a connection.
"""

from __future__ import annotations

import codecs
import io
import unicodedata
import zipfile
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from checkstream.errors import DocumentUnreadable
from checkstream.evidence.kinds import Kind, charset_of

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from lxml.etree import _Element
    from pypdf import PdfReader

VERSION = 1
"""Changes when the text of a document changes: it is then read anew."""
MAX_CHARS = 20_000_000
_MAX_UNPACKED_BYTES = 256 << 20
_MAX_PARTS = 4_096
_CONTROLS = MappingProxyType({code: None for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"})
_APART = frozenset({"p", "head", "list", "item", "table", "row", "cell", "quote", "code", "lb", "div"})
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def extract(data: bytes, kind: Kind, media_type: str = "") -> str:
    """Return the text of a document, as Markdown.

    Args:
        data: the document as it was fetched.
        kind: how to read it.
        media_type: what its server said, for the encoding.

    Raises:
        DocumentUnreadable: it is not of that kind, damaged, too large, or holds no text.
    """
    if kind is Kind.HTML:
        text = _of_html(data, media_type)
    elif kind is Kind.PDF:
        text = _of_pdf(data)
    elif kind is Kind.DOCX:
        text = _of_docx(data)
    else:
        text = decode(data, media_type)
    text = _cleaned(text)
    if not text:
        raise DocumentUnreadable("it holds no text; a scan needs to be read by a program for that first")
    if len(text) > MAX_CHARS:
        raise DocumentUnreadable(f"it holds more than {MAX_CHARS} characters; split it")
    return text


def decode(data: bytes, media_type: str = "") -> str:
    """Return bytes as text: by their mark, as UTF-8, as their server said; never by a guess, which may be wrong.

    Raises:
        DocumentUnreadable: they are no text.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decoded(data, encoding)
    if b"\x00" in data:
        raise DocumentUnreadable("it holds bytes that stand in no text; give a text, or the file that it was made from")
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    if charset := charset_of(media_type):
        return _decoded(data, charset)
    raise DocumentUnreadable("nothing says what its encoding is, and it is not UTF-8; save it as UTF-8")


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise DocumentUnreadable(f"it is not in `{encoding[:40]}`, as it says; save it as UTF-8") from error


def _cleaned(text: str) -> str:
    """Return the text in composed letters and plain line ends, without control characters and heaps of blank lines."""
    sound = text.encode("utf-8", "replace").decode()  # a PDF may hold halves of letters, which nothing can keep
    plain = unicodedata.normalize("NFC", sound).replace("\r\n", "\n").replace("\r", "\n")
    kept = plain.translate(_CONTROLS)
    lines: list[str] = []
    for line in kept.split("\n"):
        stripped = line.rstrip()
        if stripped or (lines and lines[-1]):
            lines.append(stripped)
    return "\n".join(lines).strip("\n")


def _of_html(data: bytes, media_type: str) -> str:
    import trafilatura  # noqa: PLC0415 - of an extra, and it takes a second to load

    page: str | bytes = data
    if charset_of(media_type) or data.startswith(tuple(mark for mark, _ in _BOMS)):
        page = decode(data, media_type)
    found = trafilatura.bare_extraction(
        page, include_comments=False, include_tables=True, include_formatting=True, favor_recall=True, fast=True
    )
    if found is None or isinstance(found, dict) or found.body is None:
        raise DocumentUnreadable("no main text was found in the page")
    return "\n\n".join(block for block in _blocks(found.body) if block)


def _blocks(element: _Element) -> Iterator[str]:
    """Yield the blocks of a page's main text as Markdown."""
    for child in element:
        words = _words(child)
        match child.tag:
            case "head":
                rank = str(child.get("rend", "h2"))[1:]
                yield f"{'#' * (int(rank) if rank.isdecimal() and 1 <= int(rank) <= 6 else 2)} {words}"
            case "list":
                yield "\n".join(f"- {_words(item)}" for item in child)
            case "table":
                rows = (" | ".join(_words(cell) for cell in row) for row in child)
                yield "\n".join(row for row in rows if row.strip(" |"))
            case "code":
                code = "".join(map(str, child.itertext())).strip("\n")
                yield f"```\n{code}\n```" if "\n" in code else code
            case "div" | "main" | "section" | "article":
                yield from _blocks(child)
            case _:
                yield words
        tail = " ".join(str(child.tail or "").split())
        if tail:
            yield tail


def _words(element: _Element) -> str:
    """Return the words of an element on one line, parts apart that stand apart, without the sign of a permalink."""
    parts = [str(element.text or "")]
    for child in element:
        gap = " " if child.tag in _APART else ""
        parts += (gap, _words(child), gap, str(child.tail or ""))
    return " ".join("".join(parts).split()).removesuffix("¶").rstrip()


def _of_pdf(data: bytes) -> str:
    try:
        import pypdf  # noqa: PLC0415 - of an extra
        from pypdf.errors import PyPdfError  # noqa: PLC0415
    except ImportError as error:
        raise DocumentUnreadable("PDF needs the extra `checkstream[documents]`; install it") from error
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
        parts = [] if locked else _pages(reader)
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, IndexError, OSError, RecursionError) as error:
        raise DocumentUnreadable(f"the PDF is damaged: {_short(error)}; make it anew") from error
    if locked:
        raise DocumentUnreadable("it is encrypted; give it without its password")
    return "\n\n".join(parts)


def _pages(reader: PdfReader) -> list[str]:
    """Return the pages' text, no further than where it is too much anyway."""
    parts: list[str] = []
    size = 0
    for page in reader.pages:
        parts.append(page.extract_text())
        size += len(parts[-1])
        if size > MAX_CHARS:
            break
    return parts


def _of_docx(data: bytes) -> str:
    try:
        import docx  # noqa: PLC0415 - of an extra
        from lxml.etree import LxmlError  # noqa: PLC0415
    except ImportError as error:
        raise DocumentUnreadable("Word files need the extra `checkstream[documents]`; install it") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
        blocks = [] if _too_much(parts) else list(_word_blocks(docx.Document(io.BytesIO(data))))
    except (zipfile.BadZipFile, LxmlError, ValueError, KeyError, AttributeError, OSError, RecursionError) as error:
        raise DocumentUnreadable(f"the Word file is damaged: {_short(error)}; save it anew") from error
    if _too_much(parts):
        raise DocumentUnreadable("it unpacks to more than is taken; split it")
    return "\n\n".join(block for block in blocks if block.strip())


def _too_much(parts: list[zipfile.ZipInfo]) -> bool:
    return len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > _MAX_UNPACKED_BYTES


def _word_blocks(document: WordDocument) -> Iterator[str]:
    from docx.table import Table  # noqa: PLC0415 - of an extra

    for block in document.iter_inner_content():
        if isinstance(block, Table):
            rows = (" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in block.rows)
            yield "\n".join(row for row in rows if row.strip(" |"))
        else:
            style = block.style.name if block.style is not None and block.style.name is not None else ""
            yield _heading_marks(style) + block.text


def _heading_marks(style: str) -> str:
    """Return what makes a paragraph of a style a heading: Word's `Title`, `Heading 1` to `Heading 9`."""
    if style == "Title":
        return "# "
    name, _, level = style.rpartition(" ")
    return "#" * min(int(level), 6) + " " if name == "Heading" and level in "123456789" and level else ""


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:120]
