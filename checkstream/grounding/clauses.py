"""Where an English sentence joins several statements: at "and" before a verb, and between whole clauses."""

from __future__ import annotations

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span
from checkstream.grounding.sentences import TERMINATORS

_AUXILIARIES = (
    r"(?:is|are|was|were|has|have|had|does|do|did|will|would|can|could|may|might|must|shall|should|isn't|aren't|wasn't|"
    r"weren't|hasn't|doesn't|didn't|won't|can't|cannot)"
)
_NO_VERBS = frozenset(
    {"red", "bed", "need", "speed", "feed", "seed", "indeed", "hundred", "sacred", "naked", "wicked", "rugged", "shed"}
    | {"breed", "deed", "greed", "weed", "bleed", "embed", "united", "limited", "related", "advanced", "combined"}
    | {"based", "detailed", "aged", "mixed"}
)
"""They end in `ed` and tell no deed of the subject."""
_AND = TextRegex(rf"(?i)\sand\s+(?:{_AUXILIARIES}|[a-z]{{2,24}}ed)\b")
_VERB = TextRegex(rf"(?i)\b(?:{_AUXILIARIES}|[a-z]{{3,24}}ed)\b")
_JOINT = TextRegex(r"(?i)\s*[;；؛]\s*|,\s+(?:and|but|while|whereas)\s+|\s+(?:and|but|whereas)\s+")
_FINITE = TextRegex(rf"(?i)\b(?:{_AUXILIARIES}|[a-z]{{3,24}}(?:ed|es|s))\b")
_ADVERB = TextRegex(r"(?i)\s+[a-z]+ly$")
_SUBJECTS = frozenset({"it", "they", "he", "she", "we", "this", "these", "its", "their", "the"})
"""They open a clause after an "and" that has no comma before it."""
_MOST_SUBJECT_WORDS = 8


def verb_phrases(text: str, clause: Span, min_chars: int) -> list[Span]:
    """Cut `clause` at "and" before something verb-like (`merged`, `is`), where both sides have `min_chars`."""
    pieces = []
    start = clause.start
    for place in _AND.spans(text[clause.start : clause.end]):
        left = clause.start + place.start
        words = text[left : clause.start + place.end].split()
        right = clause.start + place.end - len(words[1])
        short = min(len(text[start:left].strip()), len(text[right : clause.end].rstrip(TERMINATORS + " "))) < min_chars
        if words[1].casefold() not in _NO_VERBS and not short:
            pieces.append(Span(start, left))
            start = right
    return [*pieces, Span(start, clause.end)]


def clauses(text: str, min_chars: int) -> list[Span]:
    """Cut a sentence at semicolons, and where a conjunction joins two clauses that each have a subject and a verb."""
    pieces = []
    start = 0
    for place in _JOINT.spans(text):
        left, right = text[start : place.start], text[place.end :]
        if min(len(left.strip()), len(right.strip())) >= min_chars and _joins(
            text[place.start : place.end], left, right
        ):
            pieces.append(Span(start, place.start))
            start = place.end
    return [*pieces, Span(start, len(text))]


def subject_of(clause: str) -> str:
    """Return what stands before the first verb of `clause`, or nothing when that is long or missing."""
    verbs = (place for place in _VERB.spans(clause) if clause[place.start : place.end].casefold() not in _NO_VERBS)
    first = next(verbs, None)
    if first is None:
        return ""
    subject = " ".join(clause[: first.start].split())
    for adverb in _ADVERB.spans(subject):
        subject = subject[: adverb.start]
    named = any(char.isalnum() for char in subject)
    return subject if named and len(subject.split()) <= _MOST_SUBJECT_WORDS and "," not in subject else ""


def _joins(joint: str, left: str, right: str) -> bool:
    """Return whether `joint` stands between clauses, and not between words of one."""
    word = joint.strip(" ,\t\n").casefold()
    if word in {";", "；", "؛"}:
        return True
    if word == "and" and "," not in joint and right.split(None, 1)[0].casefold() not in _SUBJECTS:
        return False
    return _has_verb(left) and _has_verb(right)


def _has_verb(part: str) -> bool:
    """Return whether something like a finite verb stands near the beginning of `part`, behind a subject."""
    return any(
        _FINITE.found_in(word) for word in part.split(None, _MOST_SUBJECT_WORDS + 1)[1 : _MOST_SUBJECT_WORDS + 1]
    )
