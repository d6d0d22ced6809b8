r"""The words of a text as it comes, in the one form in which recitals are compared, each as a number of 64 bits.

A *word* is a run of letters, marks, digits and underscores; all else only stands between words, so prose is compared
without its punctuation and code without its operators. What shows nothing is not there. Scripts that put no white space
between words have a word for each character. The form of a word is the folded view's (NFKC, lookalikes of ASCII as
ASCII, see `normalise`) without letter case. Escapes are read as what they say (see `escapes`).

INVARIANT: the words depend on the text alone, never on how it was cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.escapes import Unescaped
from checkstream.core.match.normalise import Folded, ignorable
from checkstream.core.match.shapes import is_word
from checkstream.core.match.waking import without_surrogates

MAX_WORD_CHARS: Final = 64
"""A longer run is no word of any text; what shows nothing counts not ..."""
MAX_RUN_CHARS: Final = 320
"""... up to so many characters together."""
_MOST_UNREAD: Final = 768
"""Characters for which an escape may wait for what follows."""
_MOST_KNOWN: Final = 1 << 16
"""Words of which the number is remembered."""
_MOST_CHARS: Final = 1 << 14
_NOTHING: Final = "\x01"
"""In place of what shows nothing: it neither is a word nor parts one."""
_TRIGGERS: Final = frozenset("\\%&\x1b\x9b")
"""Characters that open an escape."""
_UNSPACED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_ALONE: Final = compile_regex(rf"[{_UNSPACED}]")
_PARTS: Final = compile_regex(rf"[{_UNSPACED}]|[^{_UNSPACED}]+")


def _spaced_char(char: str) -> str:
    if is_word(char):
        return char
    return _NOTHING if ignorable(char) else " "


class _Spaced(dict[int, str]):
    """For `str.translate`: what is of a word stays, what shows nothing is one sign, all else a space."""

    def __missing__(self, code: int) -> str:
        char = _spaced_char(chr(code))
        if len(self) < _MOST_CHARS:
            self[code] = char
        return char


_SPACED: Final = _Spaced()
_ASCII_SPACED: Final = "".join(_spaced_char(chr(code)).lower() for code in range(128)).encode().ljust(256)


class Word(msgspec.Struct, frozen=True):
    """A word where it stands; without a number: a run that is no word of any text."""

    number: int | None
    start: int
    """In the original."""
    end: int


class _Numbers(dict[str, int | None]):
    """The number of each word, worked out when it is first met; None: nothing of it shows."""

    def __missing__(self, word: str) -> int | None:
        form = word.replace(_NOTHING, "")
        if not form.isascii():
            places = range(len(form))
            form = Folded().read(form, places, places, ended=True).text
        number = number_of(form.casefold()) if form else None
        if len(self) >= _MOST_KNOWN:
            self.clear()
        self[word] = number
        return number


_NUMBERS: Final = _Numbers()


def number_of(form: str) -> int:
    """Return the number of a word in its form."""
    digest = hashlib.blake2b(form.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class PlainWords:
    """The words of one text. Positions are code points of the original."""

    __slots__ = ("_ends", "_escape", "_escape_at", "_long", "_starts", "_text", "at", "escapes", "received")

    def __init__(self) -> None:
        """Start before the first character."""
        self.received = 0
        self.at = 0
        """All before this has been read: from here on stands the beginning of a word, or of an escape, if anything."""
        self.escapes = 0
        """Characters so far that may have opened an escape."""
        self._escape = ""
        """What an escape may still be made of ..."""
        self._escape_at = 0
        """... and where it stands."""
        self._text = ""
        """The beginning of a word ..."""
        self._starts: Sequence[int] = ()
        """... where each of its characters starts in the original, ..."""
        self._ends: Sequence[int] = ()
        """... and ends."""
        self._long = False
        """What comes goes on a run that is too long."""

    def feed(self, text: str) -> list[Word]:
        """Read on; return the words that are known to be whole."""
        found: list[Word] = []
        if not text.isascii():
            text = without_surrogates(text)
        at = self.received
        self.received += len(text)
        if not self._escape and _TRIGGERS.isdisjoint(text):
            self._escape_at = self.received
            self._read(text, range(at, self.received), range(at + 1, self.received + 1), found)
        else:
            self.escapes += sum(map(text.count, _TRIGGERS))
            place = 0
            while place < len(text):  # what waits is never longer than so much, wherever the text was cut
                size = _MOST_UNREAD - len(self._escape)
                self._unescape(text[place : place + size], found)
                place += size
        self.at = self._starts[0] if self._text else self._escape_at
        return found

    def end(self) -> list[Word]:
        """The text has ended: return the words that are left."""
        found: list[Word] = []
        while self._escape:
            self._unescape("", found, ended=True)
        self._read("", (), (), found, ended=True)
        self.at = self.received
        return found

    def _unescape(self, text: str, found: list[Word], *, ended: bool = False) -> None:
        waiting, at = self._escape + text, self._escape_at
        size = len(waiting)
        starts, ends = range(at, at + size), range(at + 1, at + size + 1)
        reading = Unescaped().read(waiting, starts, ends, ended=ended)
        used = reading.used
        self._read(reading.text, reading.starts, reading.ends, found)
        if not used and size >= _MOST_UNREAD:  # one character, as if nothing followed
            used = 1
            self._read(waiting[0], starts[:1], ends[:1], found)
        self._escape, self._escape_at = waiting[used:], at + used

    def _read(
        self, text: str, starts: Sequence[int], ends: Sequence[int], found: list[Word], *, ended: bool = False
    ) -> None:
        """Read text without escapes; `starts` and `ends` say where each of its characters stands in the original."""
        if self._text:
            text = self._text + text
            starts, ends = _joined(self._starts, starts), _joined(self._ends, ends)
            self._text = ""
        if not text:
            return
        spaced = text.encode().translate(_ASCII_SPACED).decode() if text.isascii() else text.translate(_SPACED)
        place = self._passed(spaced) if self._long else 0
        words = spaced[place:].split()
        torn = len(words) if not ended and spaced[-1] != " " else 0
        for count, word in enumerate(words, 1):
            start = spaced.index(word, place)
            place = start + len(word)
            if count != torn and len(word) <= MAX_WORD_CHARS and word.isascii():
                if (known := _NUMBERS[word]) is not None:
                    found.append(Word(known, starts[start], ends[place - 1]))
                continue
            parts = [word] if word.isascii() else _parts(word)
            for part in parts[: -1 if count == torn else None]:
                self._whole(part, starts[start], ends[start + min(len(part), _room(part) + 1) - 1], found)
                start += len(part)
            if count != torn:
                continue
            room = _room(parts[-1])
            if place - start <= room:
                self._text, self._starts, self._ends = text[start:], starts[start:], ends[start:]
            else:
                self._long = True
                self._whole(parts[-1], starts[start], ends[start + room], found)

    @staticmethod
    def _whole(word: str, start: int, end: int, found: list[Word]) -> None:
        """Take a word that is whole, or too long."""
        if len(word) > _room(word):
            found.append(Word(None, start, end))
        elif (number := _NUMBERS[word]) is not None:
            found.append(Word(number, start, end))

    def _passed(self, spaced: str) -> int:
        """Return the end of what goes on a run that is too long."""
        run = spaced.partition(" ")[0]
        rest = run if run.isascii() else _parts(run)[0]
        size = 0 if _ALONE.match(rest) is not None else len(rest)
        self._long = size == len(spaced)
        return size


def _room(run: str) -> int:
    """Return how many characters of a run, from its beginning, may be a word: as many as it has, or fewer."""
    if _NOTHING not in run:
        return min(len(run), MAX_WORD_CHARS)
    shown = 0
    for at, char in enumerate(run[:MAX_RUN_CHARS]):
        shown += char != _NOTHING
        if shown > MAX_WORD_CHARS:
            return at
    return min(len(run), MAX_RUN_CHARS)


def _joined(before: Sequence[int], places: Sequence[int]) -> Sequence[int]:
    if isinstance(before, range) and isinstance(places, range) and before.stop == places.start:
        return range(before.start, places.stop)
    return [*before, *places]


def _parts(run: str) -> list[str]:
    """Return the words of a run: in scripts that put no space between them each character is one."""
    return [run[hit.start() : hit.end()] for hit in _PARTS.finditer(run)]


def numbers_of(text: str) -> list[int | None]:
    """Return the numbers of the words of a whole text."""
    words = PlainWords()
    return [word.number for word in (*words.feed(text), *words.end())]
