"""Text -> words as the verifier compares them, with their places in the text. Pure, in one pass."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import msgspec

from checkstream.core.match.regex import TextRegex
from checkstream.grounding.embedded.vocabulary import FUNCTION_WORDS, NEGATORS

_WORDS = TextRegex(r"\pN+(?:[.,]\pN+)*|[\pL\pM]+(?:['\x{2019}][\pL\pM]+)*")
_LONGEST = 64
"""Code points of a word that are read; longer ones are no words of any language."""
_UNSPACED = (
    ("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uf900", "\ufaff"), ("\u0e00", "\u0eff"), ("\u1780", "\u17ff"),
    ("\u1000", "\u109f"), ("\U00020000", "\U0003ffff"),
)  # fmt: skip
"""Of scripts that put no spaces: each of their letters is a word."""
_ENDINGS = ("ations", "ation", "ingly", "ings", "ies", "ing", "edly", "ed", "es", "ly", "er", "en", "s", "e", "n")
_DOUBLING = frozenset({"ing", "ings", "ed", "er"})
"""Before these English writes a consonant twice (`running`)."""
_HEBREW_PREFIXES = "והבלמשכ"


class Word(msgspec.Struct, frozen=True, gc=False):
    """A word of a text."""

    form: str
    """Without case and accents."""
    stem: str
    """What forms of one word share, roughly."""
    start: int
    end: int
    capitalised: bool
    upper: bool
    """All of it, and more than one letter."""
    function: bool
    """Says little by itself."""
    negator: bool

    @property
    def digits(self) -> bool:
        """It is a number in digits."""
        return self.form[0].isdigit()


def words(text: str) -> list[Word]:
    """Return the words of a text in their order; numbers keep their points and commas."""
    found: list[Word] = []
    for span in _WORDS.spans(text):
        raw = text[span.start : span.end]
        if not raw.isascii() and any(low <= raw[0] <= high for low, high in _UNSPACED):
            found += [_word(sign, span.start + at) for at, sign in enumerate(raw) if sign.isalnum()]
        else:
            found.append(_word(raw, span.start))
    return found


def _word(raw: str, start: int) -> Word:
    form = folded(raw[:_LONGEST])
    return Word(
        form=form,
        stem=stem(form),
        start=start,
        end=start + len(raw),
        capitalised=raw[0].isupper(),
        upper=len(raw) > 1 and raw.isupper(),
        function=form in FUNCTION_WORDS,
        negator=form in NEGATORS or form.endswith("n't") or form.startswith("n'"),
    )


def folded(word: str) -> str:
    """Return a word without case, accents and a possessive ending."""
    form = word.lower()
    if not form.isascii():
        form = form.replace("\u2019", "'").replace("ß", "ss")
        decomposed = unicodedata.normalize("NFKD", form)
        form = "".join(sign for sign in decomposed if not unicodedata.combining(sign)) or form
    return form[:-2] if form.endswith("'s") and len(form) > 3 else form


def stem(form: str) -> str:
    """Return what the forms of a word share, roughly: a light cutting of endings, for languages in Latin letters."""
    if len(form) <= 3 or form[0].isdigit():
        return form
    if "\u05d0" <= form[0] <= "\u05ea":
        return form.lstrip(_HEBREW_PREFIXES) if len(form.lstrip(_HEBREW_PREFIXES)) >= 3 else form[-3:]
    for ending in _ENDINGS:
        if form.endswith(ending) and len(form) - len(ending) >= 3:
            rest = form[: -len(ending)]
            doubled = ending in _DOUBLING and len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if doubled else rest
    return form


class Reading(msgspec.Struct, frozen=True, eq=False):
    """Words that are read together, with what finds them again."""

    words: Sequence[Word]
    places: dict[str, list[int]]
    """Stem -> where it stands, in words."""
    beginnings: dict[str, list[str]]
    """First letters -> stems that begin so."""
    negated: Sequence[bool]
    """Of each word, whether a negator before it turns it round."""


_PREFIX = 4
_ALIKE = 32
"""Of stems that begin alike, so many are kept: no language has more in one text."""
_REACH = 4
"""So many words behind a negator are turned round."""


def reading(text: str, found: Sequence[Word]) -> Reading:
    """Return what makes the words of a stretch comparable.

    Args:
        text: the whole text.
        found: words of it that follow each other.
    """
    places: dict[str, list[int]] = {}
    for at, word in enumerate(found):
        places.setdefault(word.stem, []).append(at)
    beginnings: dict[str, list[str]] = {}
    for each in places:
        if len(each) >= _PREFIX and len(alike := beginnings.setdefault(each[:_PREFIX], [])) < _ALIKE:
            alike.append(each)
    return Reading(found, places, beginnings, _negated(text, found))


def found_stem(sought: str, there: Reading) -> tuple[str | None, float]:
    """Return the stem of a reading that is this one, or begins like it, and how surely: 1, 0.8 or 0."""
    if sought in there.places:
        return sought, 1.0
    if len(sought) >= _PREFIX and not sought[0].isdigit():
        for other in there.beginnings.get(sought[:_PREFIX], ()):
            shared = _shared(sought, other)
            if shared >= 0.6 * max(len(sought), len(other)) and (
                shared >= 5 or shared >= 0.7 * max(len(sought), len(other))
            ):
                return other, 0.8
    return None, 0.0


def _shared(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _negated(text: str, found: Sequence[Word]) -> list[bool]:
    turned = [False] * len(found)
    for at, word in enumerate(found):
        if not word.negator:
            continue
        reached = at
        for following in range(at + 1, min(at + 1 + _REACH, len(found))):
            if any(sign in ",.;:!?()" for sign in text[found[following - 1].end : found[following].start]):
                break
            turned[following] = True
            reached = following
        if reached == at:  # at the end, as in German: it turns what stands before
            for before in range(max(0, at - 2), at):
                turned[before] = True
    return turned
