"""What kind of document some bytes are: by what was said of them, by their name, and by how they begin. Pure."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType


class Kind(StrEnum):
    """How a document is read."""

    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    PDF = "pdf"
    DOCX = "docx"


_ENDINGS = MappingProxyType(
    {
        ".html": Kind.HTML,
        ".htm": Kind.HTML,
        ".xhtml": Kind.HTML,
        ".md": Kind.MARKDOWN,
        ".markdown": Kind.MARKDOWN,
        ".txt": Kind.TEXT,
        ".text": Kind.TEXT,
        ".rst": Kind.TEXT,
        ".pdf": Kind.PDF,
        ".docx": Kind.DOCX,
    }
)
_TYPES = MappingProxyType(
    {
        "text/html": Kind.HTML,
        "application/xhtml+xml": Kind.HTML,
        "text/markdown": Kind.MARKDOWN,
        "text/plain": Kind.TEXT,
        "application/pdf": Kind.PDF,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": Kind.DOCX,
    }
)
ENDINGS = tuple(_ENDINGS)
"""Names of files that are taken from a folder end so."""
_ZIP = b"PK\x03\x04"
_PDF = b"%PDF-"


def named(name: str) -> Kind | None:
    """Return the kind that a file's name says; None where it says none."""
    _, dot, ending = name.rpartition("/")[2].rpartition(".")
    return _ENDINGS.get((dot + ending).lower())


def kind_of(name: str, media_type: str, begin: bytes) -> Kind | None:
    """Return the kind of a document; None where nothing says that it is one.

    Args:
        name: of the file, or the path of its address.
        media_type: what its server said (`text/html; charset=utf-8`); empty where nobody did.
        begin: its first bytes; what they can't be mistaken for counts more than what was said.
    """
    head = begin.lstrip()
    if head.startswith(_PDF):
        return Kind.PDF
    said = _TYPES.get(media_type.partition(";")[0].strip().lower()) or named(name)
    if begin.startswith(_ZIP):
        return Kind.DOCX if said is Kind.DOCX else None
    if said is Kind.TEXT and head[:15].lower().startswith((b"<!doctype html", b"<html")):
        return Kind.HTML
    return said


def charset_of(media_type: str) -> str:
    """Return the encoding that a server said a text has; empty where it said none."""
    for part in media_type.split(";")[1:]:
        key, _, value = part.partition("=")
        if key.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""
