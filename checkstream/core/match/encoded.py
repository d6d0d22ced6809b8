"""The `encoded` view, base64: the texts that stand encoded in a channel, each searched by itself.

A run of at least 16 characters of the base64 or base64url alphabet is read in blocks of 64 from its
start. A block that decodes, at one of the four alignments, to UTF-8 of which nearly all is printable text, but for a
few octets, becomes a text; blocks that follow it continue that text. A text ends where its run
ends or a block is no text; a line end, with what quotes or indents the next line, doesn't end the run of a
text. Source: RFC 4648, sections 4 and 5; RFC 2045, section 6.8 (lines).
"""

from __future__ import annotations

import binascii
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.inner import Inner, Open
from checkstream.core.match.lane import Found
from checkstream.core.match.normalise import HALF, ignorable

ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
RUN_CHARS: Final = 16
"""Fewest characters that are taken for base64."""
BLOCK_CHARS: Final = 64
_PRINTABLE_SHARE: Final = 0.9
_RUN: Final = compile_regex(f"[A-Za-z0-9+/_-]{{{RUN_CHARS}}}")
_OTHER: Final = compile_regex("[^A-Za-z0-9+/_-]")
_QUOTE: Final = r"[\"'][ \t+,]{0,4}"
_JOIN: Final = r"[\"'][ \t]?[,+][ \t]?[\"']"
_INDENT: Final = r"[ \t>|#\"'+,]{0,8}"
_LINE: Final = rf"(?:{_QUOTE})?(?:\r?\n|(?:\\r)?\\n){_INDENT}"
_WRAP: Final = compile_regex(rf"(?:{_LINE}|{_JOIN})[A-Za-z0-9+/_-]")
"""From one line of a text to the next, or from one literal to the next."""
_WRAP_BEGUN: Final = compile_regex(rf"(?:{_LINE}|{_JOIN}|{_QUOTE}|(?:{_QUOTE})?(?:\r|\\|\\r\\?))\z")
_STANDARD: Final = str.maketrans("-_", "+/")
_LEAST_MIXED: Final = 24
"""Octets, at least, of a text in which a few are no UTF-8; fewer could be chance."""
_NO_UTF8: Final = dict.fromkeys(range(0xDC80, 0xDD00), HALF)
"""What stands for octets that are no UTF-8."""


class Encoded:
    """Reads the original text of one channel; mutable."""

    __slots__ = ("_carry", "_in_run", "_inner", "_open", "at")

    def __init__(self, begin: Open, at: int) -> None:
        """Start at the original offset `at`, outside of any run."""
        self.at = at
        """Original offset of the first character that has not been read."""
        self._open = begin
        self._in_run = False
        self._inner: Inner | None = None
        self._carry: list[tuple[int, int, int]] = []

    @property
    def idle(self) -> bool:
        """Whether no run is being read."""
        return not self._in_run

    @property
    def live(self) -> int:
        """Original offset before which all is decided."""
        return self.at if self._inner is None else min(self.at, self._inner.live)

    def read(self, text: str, out: list[Found], *, ended: bool) -> None:
        """Read on; `text` is the original from `at` to what has been received."""
        origin, place = self.at, 0
        while True:
            if not self._in_run:
                hit = _RUN.search(text, place)
                if hit is None:
                    place = len(text) if ended else max(place, len(text.rstrip(ALPHABET)))
                    break
                place, self._in_run = hit.start(), True
            other = _OTHER.search(text, place)
            size = (len(text) if other is None else other.start()) - place
            closed = ended or other is not None
            if size < BLOCK_CHARS and not closed:
                break
            wrap = self._wrap(text, place + size, ended=ended) if size < BLOCK_CHARS else 0
            if wrap < 0:
                break
            if wrap:
                if size:
                    self._block(text[place : place + size], origin + place, out, last=False)
                place = wrap
                continue
            if size == 0:
                self.finish(out)
                self._in_run = False
                continue
            window = text[place : place + BLOCK_CHARS]
            place += self._block(window[:size], origin + place, out, last=size < BLOCK_CHARS)
        self.at = origin + place

    def finish(self, out: list[Found]) -> None:
        """End the text that is being read, deciding all of it."""
        if self._inner is not None:
            self._inner.finish(out)
        self._inner = None
        self._carry = []

    def _wrap(self, text: str, at: int, *, ended: bool) -> int:
        """Return where the next line of a text begins whose line ends at `at`; 0: it ends there; -1: not known yet."""
        if self._inner is None or at >= len(text):
            return 0
        wrap = _WRAP.match(text, at)
        if wrap is not None:
            return wrap.end() - 1
        return -1 if not ended and _WRAP_BEGUN.match(text, at) is not None else 0

    def _block(self, window: str, at: int, out: list[Found], *, last: bool) -> int:
        """Read one block that starts at the original offset `at`; return how many characters were read."""
        tries = 1 if self._inner is not None else 4 if len(window) >= RUN_CHARS else 0
        for skip in range(tries):
            part = window[skip:] if last else window[skip : skip + (len(window) - skip) // 4 * 4]
            if self._decode(part, at + skip, out, last=last):
                return skip + len(part)
        self.finish(out)
        return len(window)

    def _decode(self, part: str, at: int, out: list[Found], *, last: bool) -> bool:
        """Add what `part` says to the inner text; False: it is no text."""
        usable = part[:-1] if len(part) % 4 == 1 else part
        data = binascii.a2b_base64(usable.translate(_STANDARD) + "=" * (-len(usable) % 4))
        whole = bytes(octet for octet, _, _ in self._carry) + data
        try:
            text = whole.decode()
        except UnicodeDecodeError as error:
            if not last and error.reason == "unexpected end of data":
                text = whole[: error.start].decode()
            elif self._inner is not None or len(data) >= _LEAST_MIXED:
                text = whole.decode(errors="surrogateescape")
            else:
                return False
        if not text or not (text.isprintable() or _is_shown(text)):
            return False
        octets = [*self._carry]
        for number, octet in enumerate(data):
            group = at + number // 3 * 4
            octets.append((octet, group, min(group + 4, at + len(part))))
        if self._inner is None:
            self._inner = Inner(self._open, octets[0][1])
        starts: list[int] = []
        ends: list[int] = []
        place = 0
        for char in text:
            size = len(char.encode(errors="surrogateescape"))
            starts.append(octets[place][1])
            ends.append(octets[place + size - 1][2])
            place += size
        self._carry = octets[place:]
        self._inner.append(text.translate(_NO_UTF8), starts, ends, at + len(part), out)
        return True


def _is_shown(text: str) -> bool:
    """Say whether nearly all of a text is printable; what is no UTF-8 isn't, and is counted at once."""
    if len(text.encode("utf-8", "ignore").decode()) < _PRINTABLE_SHARE * len(text):
        return False
    shown = sum(char.isprintable() or char in "\n\r\t" or ignorable(char) for char in text)
    return shown >= _PRINTABLE_SHARE * len(text)
