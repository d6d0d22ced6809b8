"""The sentences of a passage that have most to do with a claim, joined to what a model can read at once. Pure.

What makes a claim true often stands in several places of a document, further apart than a model's window is long. So
a window is made of them: the sentences that share most with the claim, one after the other those that have what the
ones before lack, and then their neighbours, for who `she` is. They stay in the order that they have in the passage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from checkstream.core.terms import Span
from checkstream.grounding.embedded.lexical import weight
from checkstream.grounding.embedded.reading import Word, words
from checkstream.grounding.embedded.windows import PassageReader

_AGAIN = 0.25
"""What a word of the claim counts that a sentence chosen before has already."""
_MOST_WORDS = 256
"""Of a claim that are looked for."""
_ROOM, _LEAST = 560, 280
"""Characters of claim and evidence together, and of the evidence at least: about 140 word pieces of English."""


def room_beside(claim: str) -> int:
    """Return how many characters of evidence are read with a claim."""
    return max(_LEAST, _ROOM - len(claim))


def joined(passage: PassageReader, claim: str, room: int) -> list[Span]:
    """Return stretches of a passage in its order, neighbours as one; all of it where it has room.

    Args:
        passage: the evidence.
        claim: what it is to be read with.
        room: characters that the stretches have together; the first one is cut where it alone is longer.
    """
    if len(passage.text) <= room:
        return [Span(0, len(passage.text))]
    spans = passage.sentences()
    if not spans:
        return [Span(0, room)]
    chosen = _chosen(passage, spans, words(claim)[:_MOST_WORDS], room)
    found: list[Span] = []
    for number in sorted(chosen):
        span = spans[number]
        if found and found[-1].end == span.start:
            found[-1] = Span(found[-1].start, span.end)
        else:
            found.append(span)
    if len(found) == 1:
        found[0] = Span(found[0].start, min(found[0].end, found[0].start + room))
    return found


def text_of(passage: PassageReader, stretches: Sequence[Span]) -> str:
    """Return what stands in stretches of a passage, as one text."""
    return " ".join(passage.text[span.start : span.end].strip() for span in stretches)


def _chosen(passage: PassageReader, spans: Sequence[Span], said: Sequence[Word], room: int) -> set[int]:
    """Return the sentences that are read: at least one."""
    held: dict[int, dict[str, float]] = {}
    for stem, word in {word.stem: word for word in said}.items():
        holders, strength = passage.holders(stem)
        for number in holders:  # a word that stands everywhere says little about where to look
            held.setdefault(number, {})[stem] = weight(word) * strength / (1 + math.log(len(holders)))
    chosen: list[int] = []
    known: set[str] = set()
    left = room
    while held:
        best = max(held, key=lambda number: (_gain(held[number], known), -number))
        size = spans[best].end - spans[best].start
        if size <= left or not chosen:
            chosen.append(best)
            left -= size
            known |= held[best].keys()
        del held[best]
    chosen = chosen or [0]
    for number in [near for each in chosen for near in (each - 1, each + 1)]:
        if 0 <= number < len(spans) and number not in chosen and spans[number].end - spans[number].start <= left:
            chosen.append(number)
            left -= spans[number].end - spans[number].start
    return set(chosen)


def _gain(own: dict[str, float], known: set[str]) -> float:
    return sum(value * (_AGAIN if stem in known else 1.0) for stem, value in own.items())


def shared(passage: PassageReader, claim: str) -> float:
    """Return how much of a claim's words a passage has: a sum of their weights."""
    found = 0.0
    for stem, word in {word.stem: word for word in words(claim)[:_MOST_WORDS]}.items():
        holders, strength = passage.holders(stem)
        found += weight(word) * strength if holders else 0.0
    return found
