"""Where text may be edited that is JSON, such as the arguments of a tool call."""

from __future__ import annotations

import json
from collections.abc import Iterable

from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.ranges import Ranges
from checkstream.core.terms import Span


class JsonStrings:
    """Where the strings of a JSON text stand that arrives in pieces, so that edits keep it valid.

    Tool-call arguments are such a text. It may be edited inside a string only, and never through an escape.
    """

    __slots__ = ("_escape_start", "_escapes", "_position", "_string_start", "_strings")

    def __init__(self) -> None:
        """Start before the text."""
        self._strings = Ranges()
        """Insides of the complete strings."""
        self._escapes = Ranges()
        """Escape sequences inside strings."""
        self._position = 0
        self._string_start: int | None = None
        self._escape_start: int | None = None

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        for offset, char in enumerate(text, self._position):
            if self._escape_start is not None:
                size = offset - self._escape_start
                # `\u0041` has five characters after the backslash, any other escape has one.
                if size == 1 and char == "u":
                    continue
                if size == 1 or size == _UNICODE_ESCAPE_CHARS - 1:
                    self._escapes.add(self._escape_start, offset + 1)
                    self._escape_start = None
            elif self._string_start is None:
                if char == '"':
                    self._string_start = offset + 1
            elif char == "\\":
                self._escape_start = offset
            elif char == '"':
                self._strings.add(self._string_start, offset)
                self._string_start = None
        self._position += len(text)

    def whole(self, position: int) -> int:
        """Return `position`, or where the escape starts that it stands in: text may be parted there."""
        if self._escape_start is not None and position > self._escape_start:
            return self._escape_start
        escape = self._escapes.around(position)
        return escape.start if escape is not None and position < escape.end else position

    def open(self, position: int) -> bool:
        """Tell whether `position` stands in an escape that is not complete yet."""
        return self._escape_start is not None and position > self._escape_start

    def editable(self, start: int, end: int) -> Span | None:
        """Return the span widened to whole escapes if it lies inside one string, else None."""
        start = self.whole(start)
        escape = self._escapes.around(end)
        if escape is not None and escape.start < end < escape.end:
            end = escape.end
        string = self._strings.around(start)
        if string is not None and end <= string.end:
            return Span(start, end)
        if self._string_start is not None and self._string_start <= start:
            return Span(start, end)
        return None

    def clip(self, whole: Span, span: Span) -> Span:
        """Return what of `whole` stands in the same string as `span`, which lies in one; else `span` itself."""
        string = self._strings.around(span.start)
        if string is not None and span.end <= string.end:
            return Span(max(whole.start, string.start), min(whole.end, string.end))
        if self._string_start is not None and self._string_start <= span.start:
            return Span(max(whole.start, self._string_start), whole.end)
        return span

    def forget(self, position: int) -> None:
        """Drop what ends before `position`."""
        self._strings.forget(position)
        self._escapes.forget(position)


_UNICODE_ESCAPE_CHARS = 6


def inside_json_string(text: str) -> str:
    """Return `text` as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def inside_json(text: str, edits: Iterable[Replacement]) -> list[Replacement]:
    """Return edits as they are made in a JSON text: escaped inside a string, never through an escape.

    What stands outside of strings, such as a number, becomes a string; whether that is JSON is for the caller to see.
    """
    strings = JsonStrings()
    strings.feed(text)
    found: list[Replacement] = []
    for edit in edits:
        inside, span = inside_json_string(edit.text), strings.editable(edit.start, edit.end)
        if span is None:
            found.append(Replacement(edit.start, edit.end, f'"{inside}"'))
        else:
            found.append(Replacement(span.start, span.end, inside))
    return found


def outside_json_string(text: str) -> str:
    """Return what a piece of the inside of a JSON string says; `text` itself where it is no whole piece of one.

    Half of a surrogate pair, which is no character, becomes U+FFFD.
    """
    if "\\" not in text:
        return text
    try:
        said = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return str(said).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
