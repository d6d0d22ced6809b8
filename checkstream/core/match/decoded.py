r"""What stands encoded in a text, for readers who understand sentences: each as a text of its own.

Patterns see through encodings by views; a classifier reads one text. So the texts that stand in base64 and hex, behind
an override of the direction of writing, and in escapes set close together (`%49%67...`, `&#73;...`, `\u0049...`) are
read out whole, and what is encoded in them in turn, three deep. Escapes here and there are left: a classifier reads
past them. INVARIANT: work is linear in the text, and what is read out is less than twice as long as it is.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from checkstream.core.match.encoded import RUN_CHARS, Encoded
from checkstream.core.match.engine import compile_regex
from checkstream.core.match.escapes import Unescaped
from checkstream.core.match.hexed import HEX, Hexed
from checkstream.core.match.inner import MOST_DEEP
from checkstream.core.match.lane import Found
from checkstream.core.match.turned import OVERRIDE, Turned, turns
from checkstream.core.match.work import Work
from checkstream.core.terms import Finding

PIECE_CHARS, _TURNED_CHARS = 512, 64
"""Of a text that is looked at in one step, and of one in which the direction of writing is overridden."""
_PIECE_WORK, _CHAR_WORK, _ESCAPE_WORK = 10, 2, 5
"""Of a step, of a character where there are runs that may be encoded, and of an escape (see `match.work`)."""
Said = tuple[str, int]
"""A text, and how many letters it has."""
_LEAST_LETTERS: Final = 8
"""What has fewer, or fewer than half of its characters, says nothing that could be an order."""
_RUN: Final = compile_regex(r"[A-Za-z0-9+/_-]*[0-9+/][A-Za-z0-9+/_-]*={0,2}\z")
"""Nor does what is encoded once more."""
_ESCAPE: Final = (
    r"(?:%(?:25){0,8}[0-9A-Fa-f]{2}|&(?:amp;){0,8}#[0-9Xx][0-9A-Fa-f]{1,8};?"
    r"|\\{1,8}(?:[ux]\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[01][0-7]{2}))"
)
_ESCAPED: Final = compile_regex(_ESCAPE)
_DEAR: Final = compile_regex(rf"[A-Za-z0-9+/_-]{{{RUN_CHARS}}}|{HEX}|{OVERRIDE}")
_MOST_ESCAPE: Final = 48
"""Characters that an escape may have: it is found whole that begins in a piece."""
_NEAR: Final = 24
"""Characters between two escapes that are set close together, and as many of the words that they begin and end in."""
_LEAST_ESCAPES: Final = 4


class _Heard:
    """Takes the text that a reader of encodings hands on, as it comes; decides nothing of it."""

    def __init__(self, said: list[Said]) -> None:
        self.live = 0
        self._said = said
        self._parts: list[str] = []
        self._letters = 0

    def feed(self, text: str) -> list[Finding]:
        self.live += len(text)
        self._letters += sum(map(str.isalpha, text))
        self._parts.append(text)
        return []

    def give_up(self) -> list[Finding]:
        raise AssertionError("nothing is undecided here")

    def end(self) -> list[Finding]:
        if self.live >= _LEAST_LETTERS:
            self._said.append(("".join(self._parts), self._letters))
        return []


def decoded(text: str, work: Work) -> Generator[None, None, list[str]]:
    """Return, in steps, the texts that stand encoded in one, each once; what that costs goes to `work`."""
    known = {text: False}
    layer = [text]
    for _ in range(MOST_DEEP):
        found: list[Said] = []
        for each in layer:
            yield from _standing_in(each, found, work)
        layer = []
        for each, letters in found:
            if each not in known:
                layer.append(each)
                known[each] = letters >= _LEAST_LETTERS and 2 * letters >= len(each) and _RUN.match(each) is None
            work.done += 1
            yield
        if not layer:
            break
    return [each for each, tells in known.items() if tells]


def _standing_in(text: str, said: list[Said], work: Work) -> Generator[None, None, None]:
    """Add to `said` the texts that stand encoded in one, not those within them."""
    readers = [reader(lambda: _Heard(said), 0) for reader in (Encoded, Hexed, Turned)]
    nothing: list[Found] = []
    step = _TURNED_CHARS if turns(text) else PIECE_CHARS
    for end in range(step, len(text) + step, step):
        runs = _DEAR.search(text[min(reader.at for reader in readers) : end]) is not None
        for reader in readers:
            reader.read(text[reader.at : end], nothing, ended=end >= len(text))
        work.done += _PIECE_WORK + (step * _CHAR_WORK if runs else 0)
        yield
    yield from _unescaped(text, said, work)


def _unescaped(text: str, said: list[Said], work: Work) -> Generator[None, None, None]:
    """Add to `said` what stretches of escapes say."""
    at, stretch = 0, _Stretch(text, 0)
    while at < len(text):
        after = at + PIECE_CHARS
        for hit in _ESCAPED.finditer(text[at : after + _MOST_ESCAPE]):
            low, high = at + hit.start(), at + hit.end()
            if low >= at + PIECE_CHARS:
                break
            if stretch.count and (low - stretch.end > _NEAR or "\n" in text[stretch.end : low]):
                stretch.finish(said)
                stretch = _Stretch(text, low)
            elif not stretch.count:
                stretch = _Stretch(text, low)
            stretch.count, stretch.end = stretch.count + 1, high
            after = max(after, high)
            work.done += _ESCAPE_WORK
        stretch.read()
        work.done += _PIECE_WORK
        at = after
        yield
    stretch.finish(said)


class _Stretch:
    """Escapes that are set close together, with the words that they begin and end in."""

    def __init__(self, text: str, start: int) -> None:
        self.count = 0
        self.end = start
        self._text = text
        self._at = start - len(text[max(0, start - _NEAR) : start].rsplit(" ", maxsplit=1)[-1])
        self._parts: list[str] = []
        self._letters = 0

    def read(self) -> None:
        """Read what is known of it, once there are escapes enough."""
        if self.count >= _LEAST_ESCAPES:
            self._read_to(self.end, ended=False)

    def finish(self, said: list[Said]) -> None:
        """Add to `said` what it says."""
        if self.count >= _LEAST_ESCAPES:
            behind = self._text[self.end : self.end + _NEAR].split(" ", 1)[0]
            self._read_to(self.end + len(behind), ended=True)
            said.append(("".join(self._parts), self._letters))

    def _read_to(self, end: int, *, ended: bool) -> None:
        piece = self._text[self._at : end]
        places = range(len(piece) + 1)
        reading = Unescaped().read(piece, places[:-1], places[1:], ended=ended)
        self._at += reading.used
        self._parts.append(reading.text)
        self._letters += sum(map(str.isalpha, reading.text))
