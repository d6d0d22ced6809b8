"""Text -> the ids that a model was trained on, by its own `tokenizer.json`, quickly.

BERT's word pieces don't cross white space, so words are looked up in a cache and only unknown ones go through the
library: the ids are those that the library gives for the whole text, and a word of a running answer costs a lookup.
Other tokenizers go through the library, stretch by stretch.

One thing is read otherwise than the library does: it calls a word of more than 100 letters unknown, one id whatever it
says, so that a text written without blanks would be hidden from every model. Here such a word is read in parts.

A `tokenizer.json` is a file from outside, verified to be the one that is pinned, and still read as such.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as Library

from checkstream.errors import ModelError
from checkstream.scoring.tokenizer_file import TokenizerFile

MAX_BYTES = 1 << 25
"""32 MiB: the largest vocabularies in use take 20."""

CACHED_WORDS = 16_384
"""Words of one generation of the cache; two are kept."""
_CACHED_CHARS = 48
_DECOMPOSED = 3
"""So many letters one can become when a tokenizer takes it apart."""
_RUN_CHARS = 1_024
"""Letters that are looked at together to tell how long a word is."""
_STRETCH_CHARS = 1_024
"""So much at a time goes through the library where words can't be told apart by white space."""
_BLOCK_CHARS = 4_096
"""So much of a text is looked at together where they can."""
_REACH_CHARS = 256
"""So far before the end of a block without blanks a place is looked for where it parts no word."""

_HIDDEN = {ord(sign): "\u200b" for sign in "\x0b\x0c\x1c\x1d\x1e\x1f\x85"}
"""White space to Python, nothing at all to BERT: written as a sign that is nothing to both."""
_HIDDEN_SIGNS = frozenset(map(chr, _HIDDEN))
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class Case(enum.IntEnum):
    """How a word is written; models that can't see it in their ids get it as token type."""

    LOWER = 0
    CAPITALISED = 1
    UPPER = 2
    """All capitals, at least two."""
    DIGITS = 3
    """Holds a digit."""


class Unit(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A stretch of text that is never parted between windows, unless it fills one: as a rule a word."""

    ids: tuple[int, ...]
    words: tuple[tuple[int, int, int], ...]
    """Words as a tagger sees them, punctuation by itself: position of the first id, start and end in the stretch."""
    cases: tuple[int, ...]
    """`Case` of the word of each id."""


_NOTHING = Unit((), (), ())


class PairFrame(msgspec.Struct, frozen=True):
    """How two texts are put together for a model: the ids around them, and the type of each part's tokens."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[int, int, int, int, int]
    """Of what is before, the first text, what is between, the second text, what is after."""

    @property
    def size(self) -> int:
        """Ids that are of neither text."""
        return len(self.before) + len(self.between) + len(self.after)

    def joined(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the ids of both texts as the model reads them, and their types."""
        parts = (self.before, first, self.between, second, self.after)
        kinds = [kind for part, kind in zip(parts, self.types, strict=True) for _ in part]
        return [token for part in parts for token in part], kinds


Placed = tuple[int, Unit]
"""Where a unit starts in the text (0 if nobody asked), and the unit."""


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the library raises bare exceptions, and panics that are not even that
        raise ModelError(f"the tokenizer is not valid: {error}; use a `tokenizer.json`") from error


class Tokenizer:
    """A model's tokenizer. Used by one thread."""

    def __init__(self, data: bytes) -> None:
        """Read a `tokenizer.json`.

        Raises:
            ModelError: it is too large, can't be read, fails at unknown words, or doesn't frame a text as tokens
                before and after it.
        """
        if len(data) > MAX_BYTES:
            raise ModelError(
                f"the tokenizer has {len(data)} bytes, more than the {MAX_BYTES} allowed; use a smaller one"
            )
        with _refused():
            self._library: Library = Library.from_str(data.decode())
            form = msgspec.json.decode(data, type=TokenizerFile)
        if not form.meets_unknown(self._library):
            raise ModelError("the tokenizer has no token for unknown words and would fail at one; add its `unk` token")
        self._library.no_truncation()
        self._library.no_padding()
        self.size: int = 1 + max(self._library.get_vocab(with_added_tokens=True).values(), default=-1)
        """Ids are below this."""
        self.by_words = form.by_words
        """Ids come from words by themselves, through the cache."""
        self._longest_word = form.model.max_input_chars_per_word
        self._unknown = self._library.token_to_id(form.model.unk_token or "")
        self._marks = tuple(token.content for token in form.added_tokens)
        """Texts that the library reads as one token wherever they stand."""
        self.before, self.after = self._frame()
        self._young: dict[str, Unit] = {}
        self._old: dict[str, Unit] = {}

    def _tried(self, text: str, second: str | None = None, *, bare: bool = False) -> Encoding:
        """Read one text, or a pair, to see what the file makes of it."""
        with _refused():
            return self._library.encode(text, second, add_special_tokens=not bare)

    def _frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ids that stand before and after every text."""
        bare = self._tried("a", bare=True).ids
        framed = self._tried("a").ids
        extra = len(framed) - len(bare)
        for start in range(extra + 1):
            if bare and framed[start : start + len(bare)] == bare:
                return tuple(framed[:start]), tuple(framed[start + len(bare) :])
        raise ModelError("the tokenizer changes a text by its frame; use one with tokens before and after it alone")

    def pair_frame(self) -> PairFrame:
        """Return how two texts are put together.

        Raises:
            ModelError: not as first text, second text, with fixed tokens around them.
        """
        first, second = (self._tried(text, bare=True).ids for text in ("a", "b"))
        whole = self._tried("a", "b")
        ids, kinds = list(whole.ids), list(whole.type_ids)
        if len(first) != 1 or len(second) != 1 or not 0 <= _place(ids, first[0]) < _place(ids, second[0]):
            raise ModelError("the tokenizer frames no pair of texts; use that of a model that compares texts")
        one, other = _place(ids, first[0]), _place(ids, second[0])
        types = (
            kinds[0],
            kinds[one],
            kinds[one + 1],  # of the second text itself where nothing is between
            kinds[other],
            kinds[-1],
        )
        return PairFrame(tuple(ids[:one]), tuple(ids[one + 1 : other]), tuple(ids[other + 1 :]), types)

    def foreign(self) -> NDArray[np.bool_]:
        """Return which pieces are a letter by itself of another script than Latin, or the unknown word: bool[id].

        A text of many of them is one that the vocabulary has no words for, and a model sees letters.
        """
        found = np.zeros(self.size, np.bool_)
        for piece, number in self._library.get_vocab(with_added_tokens=True).items():
            sign = piece.removeprefix("##")
            found[number] = number == self._unknown or (len(sign) == 1 and sign.isalpha() and not sign.isascii())
        return found

    def spelled(self) -> NDArray[np.bool_]:
        """Return which pieces are two or more letters of the Latin alphabet: bool[id]."""
        found = np.zeros(self.size, np.bool_)
        for piece, number in self._library.get_vocab(with_added_tokens=False).items():
            sign = piece.removeprefix("##")
            found[number] = len(sign) > 1 and sign.isascii() and sign.isalpha()
        return found

    def ids(self, text: str) -> list[int]:
        """Return the ids of a whole text, without its frame."""
        return [token for _, unit in self.units(text) for token in unit.ids]

    def units(self, text: str, *, placed: bool = False) -> Iterator[Placed]:
        """Read a text, as far as the units are taken.

        Args:
            text: any text.
            placed: say where units start; costs half as much again.

        Yields:
            The units in their order. One without ids stands where much was read that has none.
        """
        if not self.by_words:
            return self._stretches(text)
        return self._blocks(text, placed=placed)

    def words(self, text: str) -> list[str] | None:
        """Return what `word` is to be asked about, in order; None: more than that is to be seen in this text."""
        return _shown(text).split() if self.by_words and len(text) <= _BLOCK_CHARS else None

    def word(self, word: str) -> tuple[int, ...] | None:
        """Return the ids of a word between blanks; None: it is long, and has to be read in parts."""
        return self._short(word).ids if len(word) <= _CACHED_CHARS else None

    def _short(self, word: str) -> Unit:
        unit = self._young.get(word)
        if unit is None:
            unit = self._old.get(word) or self._read(word)
            if len(self._young) >= CACHED_WORDS:
                self._old, self._young = self._young, {}
            self._young[word] = unit
        return unit

    def _blocks(self, text: str, *, placed: bool) -> Iterator[Placed]:
        """Read a text block by block, so that no step takes long, whatever it holds."""
        begin = 0
        while begin < len(text):
            stop = self._block_end(text, begin)
            shown = _shown(text[begin:stop])
            end = 0
            for word in shown.split():
                start = 0
                if placed:
                    start = shown.index(word, end)
                    end = start + len(word)
                    start += begin
                if len(word) <= _CACHED_CHARS:
                    yield start, self._short(word)
                else:
                    yield from ((start + inside, unit) for inside, unit in self._long(word))
            begin = stop
            if begin < len(text):
                yield begin, _NOTHING

    def _block_end(self, text: str, begin: int) -> int:
        """Return where a block may end: at a blank, else where BERT parts words, else in a word of any length."""
        end = begin + _BLOCK_CHARS
        if end >= len(text):
            return len(text)
        blank = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
        if blank > begin:
            return blank
        longest = max(map(len, self._marks), default=1)
        for at in range(end, end - _REACH_CHARS, -1):
            if _parted(text[at - 1], text[at]) or (text[at].isspace() and text[at] not in _HIDDEN_SIGNS):
                around = text[at - longest + 1 : at + longest - 1]
                if not any(mark in around for mark in self._marks):
                    return at
        return end

    def _long(self, word: str) -> Iterator[Placed]:
        """Read a long text without white space in bounded parts: parted where BERT parts it, whatever is around."""
        for begin, stop in _around(word, self._marks):
            if word[begin:stop] in self._marks:
                yield begin, self._read(word[begin:stop])
                continue
            start = begin
            for end in range(begin + 1, stop + 1):
                if end < stop and end - start < _RUN_CHARS and not _parted(word[end - 1], word[end]):
                    continue
                yield from ((start + inside, unit) for inside, unit in self._run(word[start:end]))
                start = end

    def _run(self, run: str) -> Iterator[Placed]:
        """Read letters of any number; a word that BERT calls unknown for its length is read in parts."""
        if len(run) <= _CACHED_CHARS:
            yield 0, self._short(run)
            return
        unit = self._read(run)
        if self._unknown not in unit.ids:
            yield 0, unit
            return
        stops = (*(first for first, _, _ in unit.words[1:]), len(unit.ids))
        for (first, begin, end), stop in zip(unit.words, stops, strict=True):
            word = run[begin:end]
            step = self._step(word) if unit.ids[first:stop] == (self._unknown,) else 0
            if step:
                yield from ((begin + at, self._read(word[at : at + step])) for at in range(0, len(word), step))
            else:
                yield begin, Unit(unit.ids[first:stop], ((0, 0, end - begin),), unit.cases[first:stop])

    def _step(self, word: str) -> int:
        """Return how long the parts of a word must be to be short enough; 0: the whole word is."""
        plain = word.translate(_SURROGATES)  # as it is read
        read = plain if self._library.normalizer is None else self._library.normalizer.normalize_str(plain)
        if len(read) <= self._longest_word:
            return 0
        return max(1, self._longest_word if len(read) == len(word) else self._longest_word // _DECOMPOSED)

    def _stretches(self, text: str) -> Iterator[Placed]:
        start = 0
        while start < len(text):
            end = min(start + _STRETCH_CHARS, len(text))
            if end < len(text):
                space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
                end = space if space > start else end
            whole = self._read(text[start:end])
            stops = [*(first for first, _, _ in whole.words[1:]), len(whole.ids)]
            for (first, begin, after), stop in zip(whole.words, stops, strict=False):
                unit = Unit(whole.ids[first:stop], ((0, 0, after - begin),), whole.cases[first:stop])
                yield start + begin, unit
            start = end

    def _read(self, text: str) -> Unit:
        """Read a text through the library."""
        try:
            encoding = self._library.encode(text, add_special_tokens=False)
        except (UnicodeEncodeError, TypeError):  # lone surrogates: the normaliser drops what replaces them
            text = text.translate(_SURROGATES)
            encoding = self._library.encode(text, add_special_tokens=False)
        words: list[tuple[int, int, int]] = []
        cases: list[int] = []
        known: int | None = None
        for position, (number, (start, end)) in enumerate(zip(encoding.word_ids, encoding.offsets, strict=True)):
            if number is None or number != known or not words:
                words.append((position, start, end))
            else:
                words[-1] = (*words[-1][:2], end)
            known = number
        words = [(first, *_trimmed(text, start, end)) for first, start, end in words]
        for word, (first, start, end) in enumerate(words):
            stop = words[word + 1][0] if word + 1 < len(words) else len(encoding.ids)
            cases += [case_of(text[start:end])] * (stop - first)
        return Unit(tuple(encoding.ids), tuple(words), tuple(cases))


def _place(ids: Sequence[int], sought: int) -> int:
    """Return where an id stands; -1 where it does not, or twice."""
    return ids.index(sought) if ids.count(sought) == 1 else -1


def case_of(word: str) -> Case:
    """Tell how a word is written."""
    if any(sign.isdigit() for sign in word):
        return Case.DIGITS
    if word.isupper() and sum(map(str.isalpha, word)) > 1:
        return Case.UPPER
    return Case.CAPITALISED if word[:1].isupper() else Case.LOWER


def _shown(text: str) -> str:
    """Return a text of the same length in which Python and BERT see the same white space."""
    return text if text.isascii() and text.isprintable() else text.translate(_HIDDEN)


def _around(word: str, marks: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of marks in a word, and of what is between them."""
    ahead = {mark: word.find(mark) for mark in marks}
    end = 0
    while ahead := {mark: at if at >= end else word.find(mark, end) for mark, at in ahead.items() if at >= 0}:
        found = [(at, -len(mark)) for mark, at in ahead.items() if at >= 0]
        if not found:
            break
        at, size = min(found)
        if at > end:
            yield end, at
        yield at, at - size
        end = at - size
    if end < len(word):
        yield end, len(word)


def _parted(sign: str, following: str) -> bool:
    """Tell whether BERT reads two signs apart; a mark that could be composed with what it follows stays with it."""
    return (_parts(sign) or _parts(following)) and not unicodedata.combining(following)


def _parts(sign: str) -> bool:
    """Tell whether BERT reads a sign by itself: ASCII punctuation, Chinese characters, their commonest punctuation."""
    if sign < "\x7f":
        return sign > " " and not sign.isalnum()
    return "\u4e00" <= sign <= "\u9fff" or sign in "\u3001\u3002\uff0c"


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the white space at its edges, which some tokenizers count to the word."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
