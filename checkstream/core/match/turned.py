"""The `encoded` view, text turned round: what stands behind an override of the direction of writing (U+202E).

It is shown from right to left, so that what is written backwards is read forwards. The mark may be escaped as in JSON.
An override ends with its mark (U+202C), with another one, or with its line; what goes on for longer is read in
stretches that overlap. Source: UAX 9, 3.3.2. Text that is written backwards with no such mark is left: nobody reads it
without more work.
"""

from __future__ import annotations

from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.inner import Open
from checkstream.core.match.lane import Found

OVERRIDE: Final = "(?:\u202e|u202[eE])"
"""The mark, or what its escape in JSON ends with."""
_OVERRIDE: Final = compile_regex(OVERRIDE)
_END: Final = compile_regex("[\u202c-\u202e\n\r\v\f\u0085\u2028\u2029]|\\\\{1,8}(?:u202[c-eC-E]|[nr])")
_OF_ESCAPE: Final = "u02"
_MOST_BEGUN: Final = 4
"""Of the escape, all but its last character."""
_LEAST: Final = 2
_MOST: Final = 1024
_OVERLAP: Final = 256
"""Characters of a stretch that are read again with the next one."""


def turns(text: str) -> bool:
    """Tell whether an override begins in a text."""
    return _OVERRIDE.search(text) is not None


class Turned:
    """Reads the original text of one channel; mutable."""

    __slots__ = ("_known", "_open", "_said", "_start", "at")

    def __init__(self, begin: Open, at: int) -> None:
        """Start at the original offset `at`, behind no override."""
        self.at = at
        """Original offset of the first character that has not been read."""
        self._open = begin
        self._said = ""
        self._start = -1
        """Original offset at which what has been said starts; -1: behind no override."""
        self._known = 0
        """Original offset up to which it has been searched with what stands before it."""

    @property
    def idle(self) -> bool:
        """Whether no override is in force."""
        return self._start < 0

    @property
    def live(self) -> int:
        """Original offset before which all is decided."""
        return self.at if self._start < 0 else self._start

    def read(self, text: str, out: list[Found], *, ended: bool) -> None:
        """Read on; `text` is the original from `at` to what has been received."""
        origin, place = self.at, 0
        while place < len(text):
            if self._start < 0:
                hit = _OVERRIDE.search(text, place)
                if hit is None:
                    break
                place = hit.end()
                self._start = self._known = origin + place
                continue
            end = _END.search(text, place)
            stop = len(text) if end is None else end.start()
            stop = min(stop, self._start + _MOST - origin)
            self._said += text[place:stop]
            place = stop
            if end is not None and end.start() == stop:
                self._finish(out)
            elif len(self._said) == _MOST:
                self._turn(out)
                self._start, self._said = self._known - _OVERLAP, self._said[-_OVERLAP:]
        begun = 0 if ended or self._start >= 0 else len(text) - len(text.rstrip(_OF_ESCAPE))
        self.at = origin + len(text) - min(begun, _MOST_BEGUN)
        if ended:
            self._finish(out)

    def _finish(self, out: list[Found]) -> None:
        if self._start >= 0:
            self._turn(out)
        self._start, self._said = -1, ""

    def _turn(self, out: list[Found]) -> None:
        """Search what has been said, the other way round; a character is the same either way."""
        end = self._start + len(self._said)
        if len(self._said) < _LEAST:
            self._known = end
            return
        reader = self._open()
        findings = [*reader.feed(self._said[::-1]), *reader.end()]
        out += [
            Found(end - each.span.end, end - each.span.start, each.signal, each.capped, each.recited)
            for each in findings
            if end - each.span.start > self._known
        ]
        self._known = end
