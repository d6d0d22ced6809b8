"""The claims of an answer, in three grains.

Level 0, `SENTENCE`: a claim is a sentence.
Level 1, `CLAUSE`: a sentence is cut at "and" before something verb-like (`... and merged with SNU`); the subject is
not copied.
Level 2, `ATOMIC`: it is cut also between clauses (`..., and shipping is free`, `...; it is ...`), and what level 1
leaves without a subject gets the one of the clause before, so that each claim can be read alone. Pronouns stay.

Levels 1 and 2 read English; other languages keep their sentences, which level 2 cuts at semicolons. Citations, marks
of lists and the terminator are no part of a claim's text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from enum import IntEnum

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span
from checkstream.grounding.citations import Citation, citations
from checkstream.grounding.clauses import clauses, subject_of, verb_phrases
from checkstream.grounding.remarks import not_checkable
from checkstream.grounding.sentences import TERMINATORS, sentences
from checkstream.grounding.terms import Claim

MIN_CHARS = 10
"""A shorter claim is a fragment."""
_LIST_MARK = TextRegex(r"^(?:(?:[-*+•‣◦▪●–—·>|#]+|\d{1,3}[.)]|\(?[a-zA-Z]\)|\(?[a-zא-ת]\.)\s+)+")
_EMPTY_ASIDE = TextRegex(r"(?i)\s\((?:see|cf\.?|siehe|vgl\.?|voir|véase|ראו)?[\s,;]*\)")
"""What is left of `(see [S0])`."""


class Level(IntEnum):
    """How finely an answer is cut."""

    SENTENCE = 0
    CLAUSE = 1
    ATOMIC = 2


def claims(
    answer: str, level: Level = Level.SENTENCE, *, known: Collection[str] = (), min_chars: int = MIN_CHARS
) -> list[Claim]:
    """Return every claim of `answer` in its order, those that can't be checked too (`Claim.not_checkable` says why).

    Args:
        answer: What a model said.
        level: How finely it is cut.
        known: Ids of passages; in brackets they count as citations however they are written.
        min_chars: A claim whose text is shorter is marked `fragment`.
    """
    cited = citations(answer, known)
    found: list[Claim] = []
    at = 0
    for sentence in sentences(answer):
        inside = []
        while at < len(cited) and cited[at].end <= sentence.end:
            inside.append(cited[at])
            at += 1
        found += _of_sentence(answer, sentence, inside, level, min_chars)
    return found


def checkable(found: Sequence[Claim]) -> list[Claim]:
    """Return the claims that evidence can say something of."""
    return [claim for claim in found if not claim.not_checkable]


def _of_sentence(answer: str, sentence: Span, cited: Sequence[Citation], level: Level, min_chars: int) -> list[Claim]:
    """Return the claims of one sentence; one that is no statement is not cut."""
    whole = _tidy(answer, sentence.start, sentence.end, cited)
    if not any(char.isalnum() for char in whole):
        return []
    ids = tuple(dict.fromkeys(id_ for citation in cited for id_ in citation.ids))
    reason = not_checkable(_without(answer, sentence.start, sentence.end, cited))
    parts = [(sentence, "")] if reason or level == Level.SENTENCE else _parts(answer, sentence, cited, level)
    made = []
    for part, subject in parts:
        text = _tidy(answer, part.start, part.end, cited) if len(parts) > 1 else whole
        text = f"{subject} {text}" if subject else text
        why = reason or ("fragment" if _width(text) < min_chars else "")
        made.append(Claim(text=text, start=part.start, end=part.end, citing=ids, not_checkable=why))
    return made


def _width(text: str) -> int:
    """Return how long a text is in Latin letters: those of Han, kana and Hangul say about as much as two each."""
    return len(text) if text.isascii() else len(text) + sum(unicodedata.east_asian_width(char) in "WF" for char in text)


def _without(answer: str, start: int, end: int, cited: Sequence[Citation]) -> str:
    """Return the text there without its citations and the white space before each."""
    kept = []
    for citation in cited:
        if start <= citation.start and citation.end <= end:
            before = answer[start : citation.start]
            kept.append(before.rstrip())
            if before != before.rstrip() and citation.end < end and answer[citation.end].isalnum():
                kept.append(" ")
            start = citation.end
    return "".join([*kept, answer[start:end]])


def _tidy(answer: str, start: int, end: int, cited: Sequence[Citation]) -> str:
    """Return the text there as a claim's: no citations, marks of lists or terminators, white space in single spaces."""
    text = _without(answer, start, end, cited)
    if cited:
        for aside in reversed(_EMPTY_ASIDE.spans(text)):
            text = text[: aside.start] + text[aside.end :]
    text = " ".join(text.split())
    for mark in _LIST_MARK.spans(text):
        text = text[mark.end :]
    return text.rstrip(TERMINATORS + " ")


def _parts(answer: str, sentence: Span, cited: Sequence[Citation], level: Level) -> list[tuple[Span, str]]:
    """Return where the claims of a statement stand, each with the subject that it lacks."""
    text = answer[sentence.start : sentence.end]
    masked = _masked(text, sentence.start, cited)
    if level == Level.CLAUSE:
        found = [(piece, "") for piece in verb_phrases(masked, Span(0, len(text)), MIN_CHARS)]
    else:
        found = [part for clause in clauses(masked, MIN_CHARS) for part in _with_subjects(masked, clause)]
    return [(Span(sentence.start + piece.start, sentence.start + piece.end), subject) for piece, subject in found]


def _with_subjects(text: str, clause: Span) -> list[tuple[Span, str]]:
    """Return the verb phrases of a clause, each but the first with its subject; uncut when the subject isn't clear."""
    pieces = verb_phrases(text, clause, MIN_CHARS)
    subject = subject_of(text[clause.start : pieces[0].end])
    if not subject:
        return [(clause, "")]
    return [(piece, subject if at else "") for at, piece in enumerate(pieces)]


def _masked(text: str, offset: int, cited: Sequence[Citation]) -> str:
    """Return `text` with its citations blanked, so that no cut falls into one."""
    for citation in cited:
        start, end = citation.start - offset, citation.end - offset
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text
