"""One expression asked of one text: the `matches` of conditions, and what claims and citations are read with.

Unlike a pattern it needs no companion and no bound, since the text it is asked of is whole.
"""

from __future__ import annotations

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import render
from checkstream.core.terms import Span


class TextRegex:
    """A compiled expression; two are equal when they were written the same."""

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str) -> None:
        """Compile `source` (RE2 syntax, as `syntax` reads it).

        Raises:
            PatternError: RE2 or `syntax` refuses it.
        """
        self.source = source
        self._compiled = compile_regex(render(parse(source)))

    def found_in(self, text: str) -> bool:
        """Return whether any part of `text` matches; a lone surrogate in it matches nothing."""
        try:
            return self._compiled.search(text) is not None
        except UnicodeEncodeError:
            return self._compiled.search(text.encode("utf-8", "replace").decode()) is not None

    def spans(self, text: str) -> list[Span]:
        """Return every match from left to right, none over another; a lone surrogate counts as a question mark."""
        try:
            return [Span(found.start(), found.end()) for found in self._compiled.finditer(text)]
        except UnicodeEncodeError:
            whole = text.encode("utf-8", "replace").decode()
            return [Span(found.start(), found.end()) for found in self._compiled.finditer(whole)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextRegex) and self.source == other.source

    def __hash__(self) -> int:
        return hash((TextRegex, self.source))

    def __repr__(self) -> str:
        return f"TextRegex({self.source!r})"
