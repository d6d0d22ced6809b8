"""The engine that searches text: RE2, what it compiles, and several expressions in one.

It is asked through pyre2, in the mode in which an expression that RE2 can't run raises instead of falling back to a
backtracking engine; every compiled expression is asserted to be RE2's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Final, Protocol, cast

import re2

from checkstream.errors import PatternError

re2.set_fallback_notification(re2.FALLBACK_EXCEPTION)

_ENGINE_BYTES: Final = 256 << 20
"""Most memory that RE2 may use for the automata of one expression; they grow as text needs them."""
_MOST_UNIONS: Final = 256
_MOST_UNION_CHARS: Final = 8192
"""The engine compiles so much within two or three milliseconds, for which no other thread runs: streams go on while
policies are loaded anew."""


class Hit(Protocol):
    """What a search returns."""

    def start(self) -> int:
        """Return the code point at which the match starts."""

    def end(self) -> int:
        """Return the code point after the match."""


class Regex(Protocol):
    """A compiled expression. Text before `pos` is context for assertions; text from `endpos` on is not there."""

    def search(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        """Return the leftmost match that starts at `pos` or later, or None."""

    def match(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        """Return the match that starts at `pos`, or None."""

    def finditer(self, text: str, pos: int = 0, endpos: int = -1) -> Iterator[Hit]:
        """Return the matches from left to right, none over another."""


def compile_regex(source: str) -> Regex:
    """Compile for text, refusing whatever RE2 itself can't run.

    Raises:
        PatternError: RE2 refuses the expression.
    """
    try:
        compiled = re2.compile(source, 0, _ENGINE_BYTES)
    except re2.error as error:
        raise PatternError(f"`{source[:80]}`: {str(error)[:200]}") from error
    if type(compiled) is not re2.Pattern:
        raise PatternError(f"`{source[:80]}` would run in a backtracking engine; write it in RE2 syntax")
    return cast(Regex, compiled)


class Behind:
    """A dear expression behind a cheap one that matches wherever it does: a text without it is not asked the other.

    Prose after `BEGIN PRIVATE KEY` may be followed by base64 after up to 64 characters, and from the end of any text
    back that has states of its own for each of the last 64, in every new text.
    """

    __slots__ = ("_cheap", "_exact")

    def __init__(self, cheap: Regex, exact: Regex) -> None:
        """Ask `exact` from where `cheap` matches."""
        self._cheap = cheap
        self._exact = exact

    def search(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        """Return the leftmost match that starts at `pos` or later, or None."""
        hit = self._cheap.search(text, pos, endpos)
        if hit is None or hit.start() == hit.end():  # nothing at all is found wherever it is looked for
            return hit
        return self._exact.search(text, hit.start(), endpos)

    def match(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        """Return the match that starts at `pos`, or None."""
        return None if self._cheap.match(text, pos, endpos) is None else self._exact.match(text, pos, endpos)

    def finditer(self, text: str, pos: int = 0, endpos: int = -1) -> Iterator[Hit]:
        """Return the matches from left to right, none over another."""
        return self._exact.finditer(text, pos, endpos)


@lru_cache(maxsize=_MOST_UNIONS)
def union(sources: tuple[str, ...], behind: str, first: tuple[str, ...] = ()) -> tuple[Regex, ...]:
    """Compile one expression for all of `sources` with `behind` behind it, or several where one would be too large.

    Args:
        sources: Expressions.
        behind: What stands behind each of them.
        first: Beside each, what it stands behind itself (see `Behind`); none: nothing.

    Raises:
        PatternError: one alone is too large.
    """
    if not sources:
        return ()
    joined = "|".join(f"(?:{source})" for source in sources)
    if len(joined) <= _MOST_UNION_CHARS or len(sources) == 1:
        try:
            joint = compile_regex(f"(?:{joined}){behind}")
            if first:
                joint = Behind(compile_regex(f"(?:{'|'.join(f'(?:{each})' for each in first)}){behind}"), joint)
        except PatternError:
            if len(sources) == 1:
                raise
        else:
            joint.search(" ")  # the engine leaves half of the work to the first question: no stream is to wait for it
            return (joint,)
    half = len(joined) // 2
    sizes = accumulate(len(source) for source in sources)
    middle = min(max(sum(size <= half for size in sizes), 1), len(sources) - 1)
    return (*union(sources[:middle], behind, first[:middle]), *union(sources[middle:], behind, first[middle:]))
