"""Which kind a document is of."""

from __future__ import annotations

import pytest

from checkstream.evidence.kinds import Kind, charset_of, kind_of, named


@pytest.mark.parametrize(
    ("name", "media_type", "begin", "kind"),
    [
        ("a.html", "", b"<p>", Kind.HTML),
        ("A.HTM", "", b"", Kind.HTML),
        ("https://h/page", "text/html; charset=utf-8", b"<p>", Kind.HTML),
        ("https://h/page.html", "text/markdown", b"# a", Kind.MARKDOWN),
        ("notes.txt", "", b" <!DOCTYPE html>", Kind.HTML),
        ("notes.txt", "", b"hello", Kind.TEXT),
        ("odd.txt", "text/plain", b"%PDF-1.7", Kind.PDF),
        ("a.docx", "", b"PK\x03\x04", Kind.DOCX),
        ("a.txt", "", b"PK\x03\x04", None),
        ("a.zip", "application/zip", b"PK\x03\x04", None),
        ("a.exe", "", b"MZ", None),
        ("folder.md/README", "", b"x", None),
        (".md", "", b"x", Kind.MARKDOWN),
    ],
)
def test_what_was_said_counts_and_what_bytes_show_counts_more(
    name: str, media_type: str, begin: bytes, kind: Kind | None
) -> None:
    assert kind_of(name, media_type, begin) is kind


def test_a_folder_with_an_ending_gives_none_to_its_files() -> None:
    assert named("docs.md/binary") is None
    assert named("docs/a.pdf") is Kind.PDF


@pytest.mark.parametrize(
    ("media_type", "charset"),
    [
        ("text/html; charset=UTF-8", "utf-8"),
        ('text/plain;charset="latin-1"; x=y', "latin-1"),
        ("text/html", ""),
        ("", ""),
    ],
)
def test_the_encoding_is_read_from_the_media_type(media_type: str, charset: str) -> None:
    assert charset_of(media_type) == charset
