"""Reading for no one: the engine builds the states of its automata as text needs them, which is dear.

The first ten thousand characters of a kind of text that a process matches cost ten times as much as all later ones. So
policies that are loaded read some of each kind before anybody waits for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan

_CHARS: Final = 2048
"""Of each kind."""
_PIECE_CHARS: Final = 256
_MOST_SETS: Final = 64
"""Of which it is known how far they have read."""
_PROSE: Final = (
    "Dear Ms. Smith, the 2nd of May suits us (see https://example.com/a?b=1#c). Write to jane.doe@example.org or call "
    "030 1234567; it's \u201cfine\u201d \u2013 caf\u00e9, na\u00efve, \u0434\u0430, \u6f22\u5b57!\n\n"
    "* **one**: `x = foo(1, 2)`\n- two\t3.14 %\n"
)
_KINDS: Final = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "0123456789 ",
    "0123456789 -./():,",
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\n",
)
"""Alphabets of random text."""


@lru_cache(maxsize=_MOST_SETS)
def warming(patterns: tuple[Pattern, ...]) -> Iterator[None]:
    """Return what lets a set of these patterns read some of each kind of text, a piece at each step.

    Equal sets have one, which goes on where it was left: what is compiled is shared by them. A step takes CPU time: not
    for the event loop.
    """
    return _reading(patterns)


def _reading(patterns: tuple[Pattern, ...]) -> Iterator[None]:
    searched = PatternSet(patterns)
    for text in _texts():
        scan = Scan(searched)
        for at in range(0, len(text), _PIECE_CHARS):
            scan.feed(text[at : at + _PIECE_CHARS])
            yield
        scan.end()


def _texts() -> Iterator[str]:
    yield (_PROSE * (_CHARS // len(_PROSE) + 1))[:_CHARS]
    state = 1
    for alphabet in _KINDS:
        chars = list[str]()
        for _ in range(_CHARS):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF  # as good as chance, and the same each time
            chars.append(alphabet[(state >> 16) % len(alphabet)])
        yield "".join(chars)
