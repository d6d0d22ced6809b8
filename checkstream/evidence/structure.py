"""The sections of a cleaned document: text under Markdown headings. Pure.

Every cleaned document is Markdown: pages and office files are brought into it by `extraction`. Only ATX headings
(`## Title`) count, outside fenced code.

Source: CommonMark 0.31, sections 4.2 and 4.5.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_HEADING_CHARS = 200
_MAX_LEVEL = 6
_FENCES = ("```", "~~~")


class Section(NamedTuple):
    """From a heading, itself included, to the next one."""

    start: int
    end: int
    headings: tuple[str, ...]
    """The path to it: the highest heading first, its own last."""


def sections(text: str) -> list[Section]:
    """Return the sections in order; together they are the whole text. Text without headings is one section."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    begin = at = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if fence:
            fence = "" if stripped.startswith(fence) and not stripped.strip(fence[0]) else fence
        elif stripped.startswith(_FENCES):
            fence = stripped[:3]
        elif (heading := _heading(line)) is not None:
            if text[begin:at].strip():
                found.append(Section(begin, at, tuple(title for _, title in path)))
                begin = at
            level, title = heading
            path = [*(above for above in path if above[0] < level), (level, title)]
        at += len(line)
    if text[begin:].strip() or not found:
        found.append(Section(begin, len(text), tuple(title for _, title in path)))
    return found


def _heading(line: str) -> tuple[int, str] | None:
    """Return the level and the title that a line gives, if it is a heading."""
    if len(line) - len(line.lstrip(" ")) > 3:
        return None
    stripped = line.strip()
    level = len(stripped) - len(stripped.lstrip("#"))
    if not 1 <= level <= _MAX_LEVEL or stripped[level : level + 1] not in ("", " ", "\t"):
        return None
    title = stripped[level:].strip().rstrip("#").strip()
    return level, " ".join(title[:MAX_HEADING_CHARS].split())
