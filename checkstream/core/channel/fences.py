"""JSON that stands in a fence of Markdown, in a text that is none itself: edits of it leave it JSON.

Models are asked for JSON and put it into ```` ```json ````; programs take it from there and parse it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from checkstream.core.channel.json_leaves import JsonLeaves
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.ranges import Ranges
from checkstream.core.terms import Span

_FORMS = frozenset({"json", "jsonc", "json5", "jsonl", "ndjson", "geojson", "json-ld", "jsonld", "ipynb"})
"""Words behind a fence that say that JSON stands in it."""
_MARKS = ("```", "~~~")
_MOST_LINE_CHARS = 64
"""Of a line that may open or close a fence."""


class _Body(JsonLeaves):
    """The JSON within fences."""

    __slots__ = ()

    def begin(self, position: int) -> None:
        """Begin with other JSON, whatever the last one has left open."""
        self._position = position
        self._string_start = self._escape_start = self._bare_start = None
        self.json = True


class Fences:
    """The fences of a text that arrives in pieces."""

    __slots__ = ("_bodies", "_body", "_line", "_mark", "_marks", "_position", "_start")

    def __init__(self) -> None:
        """Start before the text."""
        self._position = 0
        self._line: str | None = ""
        """The line that has begun, as long as it may open or close a fence."""
        self._mark = ""
        """What has opened the fence that is open."""
        self._start: int | None = None
        """Where the JSON of the fence that is open begins; None: another language stands in it, or none is open."""
        self._bodies = Ranges()
        """JSON of fences that are closed."""
        self._marks = Ranges()
        """Lines that open and close those: no edit takes them out."""
        self._body: _Body | None = None

    def feed(self, text: str, sent: int) -> None:
        """Take the next piece of the text; of what stands before `sent`, which has been released, nothing is asked."""
        if self._line is None and self._start is None and "\n" not in text:  # most pieces
            self._position += len(text)
            return
        for line in text.splitlines(keepends=True) if "\n" in text else (text,):
            if self._start is not None and self._body is not None:
                self._body.feed(line)
            self._position += len(line)
            if self._line is not None:
                self._line += line
                if len(self._line) > _MOST_LINE_CHARS or not _may_be_mark(self._line):
                    self._line = None
            if line.endswith("\n"):
                if self._line is not None:
                    self._end_line(self._line)
                self._line = ""
        self._forget(sent)

    def _end_line(self, line: str) -> None:
        """Open or close a fence by a line that has ended."""
        said = line.strip(" \t>\r\n")
        if not said.startswith(self._mark or _MARKS):
            return
        mark = said[: len(said) - len(said.lstrip(said[0]))]
        word, start = said[len(mark) :].strip(), self._position - len(line)
        if self._mark:
            if not word and len(mark) >= len(self._mark):
                if self._start is not None:
                    self._bodies.add(self._start, start)
                    self._marks.add(start, self._position)
                self._mark, self._start = "", None
            return
        self._mark = mark
        if word.casefold() in _FORMS:
            self._marks.add(start, self._position)
            self._start = self._position
            self._body = self._body or _Body()
            self._body.begin(self._position)

    def written(self, edit: Replacement) -> list[Replacement]:
        """Return an edit as it is made here: within fences it changes leaves of JSON alone.

        Its text stands in the first place, and nothing is left of the others. Empty where the edit touches no leaf.
        """
        if self._body is None:
            return [edit]
        found: list[Replacement] = []
        for span, within in self._parts(Span(edit.start, edit.end)):
            first = not found
            part = msgspec.structs.replace(
                edit,
                start=span.start,
                end=span.end,
                text=edit.text if first else "",
                hidden=edit.hidden if first or edit.hidden is None else "",
                bare=edit.bare if first else "null",
            )
            found += self._body.written(part) if within else [part]
        return found

    def _parts(self, span: Span) -> Iterator[tuple[Span, bool]]:
        """Yield the parts of a span, each with whether it stands in JSON."""
        bodies = self._bodies.over(span)
        if self._start is not None and self._start < span.end:
            bodies = [*bodies, Span(self._start, max(self._position, span.end))]
        at = span.start
        marks = [(mark, False) for mark in self._marks.over(span)]
        for part, within in sorted([*((body, True) for body in bodies), *marks]):
            if part.start > at:
                yield Span(at, part.start), False
            low, at = max(part.start, at), max(min(part.end, span.end), at)
            if within and low < at:
                yield Span(low, at), True
        if at < span.end:
            yield Span(at, span.end), False

    def is_json(self, position: int) -> bool:
        """Tell whether a place stands in JSON of a fence."""
        if self._start is not None and self._start <= position:
            return True
        body = self._bodies.around(position)
        return body is not None and position < body.end

    def _forget(self, position: int) -> None:
        """Drop what ends before `position`."""
        if self._body is None:
            return
        self._body.forget(position)
        self._bodies.forget(position)
        self._marks.forget(position)


def _may_be_mark(line: str) -> bool:
    """Tell whether the beginning of a line may open or close a fence."""
    said = line.strip(" \t>\r\n")
    return not said or said.startswith(_MARKS) or (len(said) < len(_MARKS[0]) and said in ("`", "``", "~", "~~"))
