r"""The `encoded` view, hex: the texts whose octets are written as pairs of hex digits, each searched by itself.

Eight pairs or more of which each is a printable character of ASCII or white space, one after the other (`6a6f686e`) or
set apart (`6a 6f`, `6A:6F`, `0x6a, 0x6f`, `=6A=6F`, and so over the ends of lines). From a given place of a hash there
are eight such pairs by a chance of one in two thousand.
"""

from __future__ import annotations

from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.inner import Inner, Open
from checkstream.core.match.lane import Found

_PAIR: Final = r"(?:[2-6][0-9A-Fa-f]|7[0-9A-Ea-e]|0[9AaDd])"
_HEAD: Final = r"(?:0[Xx]|\\x|=)?"
_APART: Final = rf"[ \t,:;-]{{0,3}}(?:=?\r?\n[ \t>|#]{{0,8}})?{_HEAD}"
_MOST_APART: Final = 16
_LEAST_PAIRS: Final = 8
HEX: Final = rf"(?:{_PAIR}{_APART}){{{_LEAST_PAIRS - 1}}}{_PAIR}"
"""Expression for what is taken for hex."""
_RUN: Final = compile_regex(HEX)
_NEXT: Final = compile_regex(rf"{_APART}{_PAIR}")
_HEAD_BEGUN: Final = r"(?:0|0[Xx]|\\|\\x|=)?"
_APART_BEGUN: Final = rf"[ \t,:;-]{{0,3}}(?:=?\r|=?\r?\n[ \t>|#]{{0,8}})?{_HEAD_BEGUN}"
_HALF: Final = r"[2-70]?"
_NEXT_BEGUN: Final = compile_regex(rf"{_APART_BEGUN}{_HALF}\z")
_BEGUN: Final = compile_regex(rf"(?:[2-70]|(?:{_PAIR}{_APART}){{0,{_LEAST_PAIRS - 2}}}{_PAIR}{_APART_BEGUN}{_HALF})\z")
_REACH: Final = _LEAST_PAIRS * (_MOST_APART + 2)
"""More characters than a run that is not long enough yet."""
_BETWEEN: Final = " \t,:;=-\r\n>|#"
_FIRST: Final = "2345670"
_CLOSING: Final = frozenset("0123456789abcdefABCDEFxX\\" + _BETWEEN)


def begun_from(text: str, start: int = 0) -> int:
    """Return where the pairs begin, from `start` on, at a text's end that may become a run; else its length."""
    if text[-1:] not in _CLOSING:
        return len(text)
    tail = text[max(start, len(text) - _MOST_APART) :].rstrip(_BETWEEN)
    if not tail:
        return len(text)
    last = tail[-1]
    if not ("0" <= last <= "9") and not (tail[-2:-1] in _FIRST if last in "abcdefABCDEF" else last in "xX\\"):
        return len(text)
    low = max(start, len(text) - _REACH)
    begun = _BEGUN.search(text[low:])
    return len(text) if begun is None else low + begun.start()


class Hexed:
    """Reads the original text of one channel; mutable."""

    __slots__ = ("_inner", "_open", "at")

    def __init__(self, begin: Open, at: int) -> None:
        """Start at the original offset `at`, outside of any run."""
        self.at = at
        """Original offset of the first character that has not been read."""
        self._open = begin
        self._inner: Inner | None = None

    @property
    def idle(self) -> bool:
        """Whether no run is being read."""
        return self._inner is None

    @property
    def live(self) -> int:
        """Original offset before which all is decided."""
        return self.at if self._inner is None else min(self.at, self._inner.live)

    def read(self, text: str, out: list[Found], *, ended: bool) -> None:
        """Read on; `text` is the original from `at` to what has been received."""
        origin, place = self.at, 0
        while True:
            if self._inner is None:
                hit = _RUN.search(text, place)
                if hit is None:
                    place = len(text) if ended else begun_from(text, place)
                    break
                place = hit.start()
                self._inner = Inner(self._open, origin + place)
            place = self._pairs(text, place, origin, out)
            if not ended and _NEXT_BEGUN.match(text, place) is not None:
                break
            self.finish(out)
        self.at = origin + place

    def finish(self, out: list[Found]) -> None:
        """End the text that is being read, deciding all of it."""
        if self._inner is not None:
            self._inner.finish(out)
        self._inner = None

    def _pairs(self, text: str, place: int, origin: int, out: list[Found]) -> int:
        """Read the pairs that stand at `place`; return where they end."""
        said: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        while (hit := _NEXT.match(text, place)) is not None:
            place = hit.end()
            said.append(chr(int(text[place - 2 : place], 16)))
            starts.append(origin + place - 2)
            ends.append(origin + place)
        if said and self._inner is not None:
            self._inner.append("".join(said), starts, ends, origin + place, out)
        return place
