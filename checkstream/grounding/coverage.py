"""Whether documents speak of a claim, by its words alone: the rule of the risk engine.

A term is a word of more than three letters, casefolded; in scripts without spaces, two letters in a row. A claim that
has half of its terms in the documents is covered; it is contradicted when a sentence that speaks of it is negative and
the claim is not, or the other way round, and no sentence speaks of it as much and as it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span
from checkstream.grounding.sentences import sentences

_LEAST_COVERAGE = 0.5
_LEAST_CHARS = 4
_NEAR = 50
"""Characters between a negative word and a term."""
_MOST_SENTENCES = 256
"""Of a term that stands everywhere, so many sentences are looked at: work stays linear in answer and documents."""
_WORD = TextRegex(r"[\pL\pN\pM_]+")
_UNSPACED = TextRegex(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_NEGATIVE = TextRegex(
    r"(?i)\b(?:not(?: only)?|no|never|false|wrong|cannot|nicht|kein(?:e[mnrs]?)?|falsch|jamais|nunca)\b|n['’]t\b"
    r"|(?:^|[^\pL])(?:לא|אין|אינו|אינה|אינם|אינן|מעולם|שגוי|שגויה|שקר)(?:$|[^\pL])"
)
_JOINT = TextRegex(r"(?i)[,;:()–—]\s|\s(?:and|but|while|und|aber|et|mais|y|pero|אבל)\s")
"""A negative word speaks of its own clause."""


class RagStatus(StrEnum):
    """What documents say of a claim."""

    SUPPORTED = "SUPPORTED"
    CONTRADICTED = "CONTRADICTED"
    UNVERIFIED = "UNVERIFIED"


class _Sentence(msgspec.Struct, frozen=True):
    text: str
    terms: frozenset[str]
    negatives: tuple[Span, ...]


class Documents:
    """Documents, read once for all claims of an answer."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Read `texts`."""
        self._sentences = [
            _Sentence(text=sentence, terms=terms(sentence), negatives=tuple(_negatives(sentence)))
            for text in texts
            for sentence in (text[span.start : span.end] for span in sentences(text))
        ]
        self._holding: dict[str, list[int]] = {}
        for at, sentence in enumerate(self._sentences):
            for term in sentence.terms:
                holding = self._holding.setdefault(term, [])
                if len(holding) < _MOST_SENTENCES:
                    holding.append(at)

    def status(self, claim: str) -> RagStatus:
        """Return what the documents say of `claim`."""
        wanted = terms(claim)
        known = wanted & self._holding.keys()
        if not wanted or len(known) < _LEAST_COVERAGE * len(wanted):
            return RagStatus.UNVERIFIED
        negative = bool(_negatives(claim))
        agreeing = differing = 0
        for at in set[int]().union(*(self._holding[term] for term in known)):
            sentence = self._sentences[at]
            shared = wanted & sentence.terms
            if 2 * len(shared) < len(wanted):
                continue
            if _speaks_against(sentence, shared) == negative:
                agreeing = max(agreeing, len(shared))
            else:
                differing = max(differing, len(shared))
        return RagStatus.CONTRADICTED if differing > agreeing else RagStatus.SUPPORTED


def terms(text: str) -> frozenset[str]:
    """Return the distinct terms of `text`."""
    found: set[str] = set()
    for place in _WORD.spans(text):
        word = text[place.start : place.end].casefold()
        if not word.isascii() and _UNSPACED.found_in(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) >= _LEAST_CHARS:
            found.add(word)
    return frozenset(found)


def _negatives(text: str) -> list[Span]:
    """Return where `text` says no; "not only" and "No. 5" do not."""
    return [
        place
        for place in _NEGATIVE.spans(text)
        if not text[place.start : place.end].casefold().endswith("only")
        and not (text[place.end : place.end + 1] == "." and text[place.end + 1 : place.end + 3].strip()[:1].isdigit())
    ]


def _speaks_against(sentence: _Sentence, shared: frozenset[str]) -> bool:
    """Return whether a negative word of `sentence` stands near one of the `shared` terms, in the same clause."""
    for negative in sentence.negatives:
        before = sentence.text[max(0, negative.start - _NEAR) : negative.start]
        behind = sentence.text[negative.end : negative.end + _NEAR]
        before = before[max((joint.end for joint in _JOINT.spans(before)), default=0) :]
        behind = behind[: next((joint.start for joint in _JOINT.spans(behind)), len(behind))]
        if terms(f"{before} {behind}") & shared:
            return True
    return False
