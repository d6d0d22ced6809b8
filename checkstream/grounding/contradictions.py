"""What in one answer can't all be true: years, states, yes and no, quantities.

By rules that name what they found; meant to be right when they speak, not to find everything. English, and yes and no
in Hebrew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span
from checkstream.grounding.quantities import Quantity, quantities

_YEAR = r"((?:1[5-9]|20)\d\d)"
_STARTED = TextRegex(
    r"(?i)\b(?:started|began|begun|launched|introduced|founded|established|opened|created|inaugurated|incorporated)\b"
    r"(?: [^\s.,;!?]+){0,5}? in (?:[a-z]+ )?(?:1[5-9]|20)\d\d\b"
)
_ACTIVE = TextRegex(
    r"(?i)\b(?:active|running|operating|operational|operated|existed|open|in (?:operation|service|business|use|force))"
    r"(?: [^\s.,;!?]+){0,5}? since (?:[a-z]+ )?(?:1[5-9]|20)\d\d\b"
)
_MOST_GAP = 10
"""Years between a start and being active since; more is a conflict."""

_STATES = (
    "is are was were has have had been be remains remain stays stay stayed currently now still already permanently "
    "definitely officially temporarily fully again finally"
)
_STATE = rf"(?:{_STATES.replace(' ', '|')})"
_OPEN = TextRegex(rf"(?i)\b{_STATE} open\b")
_CLOSED = TextRegex(rf"(?i)\b{_STATE} closed\b|\bclosed (?:permanently|down|for good|in (?:1[5-9]|20)\d\d)\b")
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|holidays?)"
_SCHEDULE = TextRegex(
    r"(?i)^(?:-|\s*(?:hours?|sourced?|daily|only|until|till|between|at|from|every|during|24|all (?:day|week|year)"
    rf"|{_DAY}|on (?:(?:public|bank) )?{_DAY}"
    r"|for (?:lunch|dinner|holidays?|the (?:day|night|season|winter|summer))"
    r"|to (?:interpretation|debate|questions?|discussion|ideas|suggestions|feedback|change|doubt))\b)"
)
_ANSWER_WORD = TextRegex(r"(?i)(?:^|[^\pL\pN_'’-])(?:yes|no|כן|לא)(?:\s*[,.;:!—–)]|\s*$)")
_NEAR = 50
"""Characters between a yes and a no that still speak of one question."""
_RATIO = 10
"""An order of magnitude."""
_MOST_FOUND = 50
"""Of each kind; an answer with more is no answer of a model."""


def contradiction(answer: str, sentences: Sequence[Span]) -> str:
    """Return what contradicts what in `answer`, the first kind that is found, or nothing.

    Args:
        answer: What a model said.
        sentences: Where its sentences stand.
    """
    checks: tuple[Callable[[], str], ...] = (
        lambda: _timeline(answer),
        lambda: "Contradictory status statements" if _states(answer, sentences) else "",
        lambda: "Contradictory yes/no statements" if _yes_and_no(answer) else "",
        lambda: "Conflicting numerical values" if _numbers(quantities(answer, sentences)) else "",
    )
    return next((found for check in checks if (found := check())), "")


def _timeline(answer: str) -> str:
    """Return the start that no claim of being active since fits, with that claim."""
    starts = [int(answer[place.end - 4 : place.end]) for place in _STARTED.spans(answer)[:_MOST_FOUND]]
    for place in _ACTIVE.spans(answer)[:_MOST_FOUND] if starts else ():
        active = int(answer[place.end - 4 : place.end])
        if not any(0 <= active - start <= _MOST_GAP for start in starts):
            return f"Timeline conflict: started in {starts[0]} but active since {active}"
    return ""


def _states(answer: str, sentences: Sequence[Span]) -> bool:
    """Return whether something is said to be open and to be closed; opening hours are neither."""
    opened, closed = (
        [
            place
            for place in regex.spans(answer)[:_MOST_FOUND]
            if not _SCHEDULE.found_in(answer[place.end : place.end + 40])
        ]
        for regex in (_OPEN, _CLOSED)
    )
    return any(
        _same_subject(_subject(answer, sentences, one), _subject(answer, sentences, other))
        for one in opened
        for other in closed
    )


_PRONOUNS = frozenset(
    {"it", "they", "he", "she", "this", "that", "these", "those", "which", "who", "and", "but", "both"}
)
_NO_SUBJECTS = frozenset({"the", "a", "an", "its", "their", "our", "your", "his", "her", "my"}).union(_STATES.split())


def _subject(answer: str, sentences: Sequence[Span], place: Span) -> frozenset[str]:
    """Return the words of the clause before `place`; none when it begins with a pronoun."""
    start = max((sentence.start for sentence in sentences if sentence.start <= place.start), default=0)
    before = answer[start : place.start].casefold()
    for joint in (",", ";", " but ", " and ", " while ", " although ", " though "):
        before = before.rsplit(joint, 1)[-1]
    words = [word.strip(".,;:!?\"'()") for word in before.split()]
    return frozenset() if not words or words[0] in _PRONOUNS else frozenset(words) - _NO_SUBJECTS


def _same_subject(one: frozenset[str], other: frozenset[str]) -> bool:
    return one <= other or other <= one


def _yes_and_no(answer: str) -> bool:
    """Return whether a yes and a no stand near each other, both as answers: `no fee` and `yes or no` are none.

    A question between them asks something else.
    """
    found = []
    for place in _ANSWER_WORD.spans(answer):
        words = answer[place.start : place.end].strip(" \t\n,.;:!—–)(\"'").casefold()
        is_number = answer[place.end - 1] == "." and answer[place.end : place.end + 2].strip()[:1].isdigit()
        is_choice = answer[max(0, place.start - 8) : place.start + 1].rstrip().casefold().endswith((" or", " או"))
        if not is_number and not is_choice:
            found.append((place, words in {"yes", "כן"}))
    return any(
        one_yes != other_yes
        and other.start - one.end <= _NEAR
        and answer[one.end : other.start].strip(" ,.;:").casefold() not in {"or", "and", "או"}
        and not any(mark in answer[one.end : other.start] for mark in "?？؟")
        for (one, one_yes), (other, other_yes) in pairwise(found)
    )


def _numbers(found: Sequence[Quantity]) -> bool:
    """Return whether one subject has two values of one unit that are an order of magnitude apart."""
    ranges: dict[tuple[object, ...], tuple[float, float]] = {}
    for quantity in found:
        key = (quantity.subject, quantity.unit, quantity.tense, quantity.years, quantity.scope)
        low, high = ranges.get(key, (quantity.value, quantity.value))
        ranges[key] = (min(low, quantity.value), max(high, quantity.value))
    return any(high >= _RATIO * low if low else high >= _RATIO for low, high in ranges.values())
