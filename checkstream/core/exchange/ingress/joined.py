"""Texts of a prompt that are judged as one: where each of them stands in it, and what becomes of it by an edit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Generator, Sequence
from heapq import merge

from checkstream.core.channel.json_leaves import inside_json
from checkstream.core.channel.judge import Judge
from checkstream.core.channel.replacements import Replacement
from checkstream.core.exchange.json_texts import whether_json
from checkstream.core.terms import Delta, Span
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.surface import Request
from checkstream.errors import WireError

PLACES_A_STEP = 384
"""Texts that are put together at a time ..."""
PLACES_WORK = 300
"""... and what that costs."""
_EDITS_A_STEP = 256
"""Replacements that are put in their order, or carried out, at a time ..."""
EDITS_WORK = 200
"""... and what that costs."""

_OF_MESSAGES = frozenset({"params", "result", "error"})
"""Members of the messages of tools, whose texts are often the JSON of a value that stands beside them."""
_OPENING = frozenset({"{", "["})


class Joined:
    """One such text."""

    __slots__ = ("_parts", "besides", "judge", "reads", "text")

    def __init__(self, *, reads: bool = True) -> None:
        """Begin with none; without `reads` classifiers are asked only about what stands `besides`."""
        self.judge: Judge
        """Judges them; set once it is known what is to be asked."""
        self.reads = reads
        self.besides: list[str] = []
        """Texts that stand encoded in it."""
        self.text = ""
        self._parts: list[tuple[int, int, int]] = []

    def add(
        self, deltas: Sequence[Delta], places: Sequence[int], between: str, ends: Collection[int] = ()
    ) -> Generator[None, None, None]:
        """Take the texts at some places of a request, with `between` between them, in steps.

        Args:
            deltas: The texts of the request.
            places: Of those that are taken.
            between: What stands between two of them ...
            ends: ... but behind these places, where a line ends.
        """
        at, said, texts = 0, list[str](), list[str]()
        gap = ""
        for count, place in enumerate(places, 1):
            text = deltas[place].text
            at += len(gap)
            self._parts.append((place, at, at + len(text)))
            texts += (gap, text)
            at += len(text)
            gap = "\n" if place in ends else between
            if count % PLACES_A_STEP == 0:
                said.append("".join(texts))
                texts.clear()
                yield
        self.text = "".join([*said, *texts])

    @property
    def memory(self) -> Sequence[object]:
        """Lists of what it is made of: there may be tens of thousands."""
        return self._parts, self.besides

    def touched(self, span: Span) -> list[int]:
        """Return the places of the texts that a span touches."""
        found: list[int] = []
        for number in range(self._first(span), len(self._parts)):
            place, start, _ = self._parts[number]
            if start >= span.end:
                break
            found.append(place)
        return found

    def path(self, request: Request, span: Span) -> Path:
        """Return where the first text stands that a span touches."""
        first = min(self._first(span), len(self._parts) - 1)
        return request.unit.deltas[self._parts[first][0]].path

    def _first(self, span: Span) -> int:
        """Return the number of the first part that ends behind the start of a span; they stand in order."""
        return bisect_right(self._parts, span.start, key=lambda part: part[2])

    @property
    def edited(self) -> bool:
        """Something in it is replaced."""
        return len(self.judge.holdback.replacements) > 0

    def edits(self, found: dict[int, list[Replacement]]) -> Generator[None, None, None]:
        """Add to `found`, by place, what becomes of each text: a replacement stands where its span starts; in steps."""
        items = iter(self.judge.holdback.replacements)
        item = next(items, None)
        said = False
        count = 0
        for place, start, end in self._parts:
            while item is not None and item.start < end:
                count += 1
                if count % _EDITS_A_STEP == 0:
                    yield
                if item.end > start:
                    low, high = max(item.start, start) - start, min(item.end, end) - start
                    text = "" if said and item.alias is None else item.text
                    found.setdefault(place, []).append(Replacement(low, high, text, alias=item.alias))
                    said = True
                if item.end > end:
                    break
                item, said = next(items, None), False


class Spelled(Joined):
    """Sentences that stand in texts as names, a line each; what is replaced of one replaces the name wherever it is."""

    __slots__ = ("_known", "_stands")

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self._known: dict[str, list[tuple[int, int, int]]] = {}
        """Sentence -> where it stands: the place of a text, and from where to where in it."""
        self._stands: list[list[tuple[int, int, int]]] = []
        """The same, in order."""

    def take(self, place: int, low: int, high: int, said: str) -> None:
        """Take the sentence of a name that stands at `low..high` in the text at a place."""
        stands = self._known.get(said)
        if stands is None:
            stands = self._known[said] = []
            self._stands.append(stands)
            at = self._parts[-1][2] + 1 if self._parts else 0
            self._parts.append((place, at, at + len(said)))
        stands.append((place, low, high))

    def close(self) -> None:
        """Put together what has been taken."""
        self.text = "\n".join(self._known)

    @property
    def first(self) -> int:
        """Place of the first text that has one."""
        return self._parts[0][0]

    def edits(self, found: dict[int, list[Replacement]]) -> Generator[None, None, None]:
        """Add to `found`, by place, what becomes of each name; in steps."""
        count = 0
        for item in self.judge.holdback.replacements:
            for number in range(self._first(Span(item.start, item.end)), len(self._parts)):
                if self._parts[number][1] >= item.end:
                    break
                for place, low, high in self._stands[number]:
                    count += 1
                    if count % _EDITS_A_STEP == 0:
                        yield
                    found.setdefault(place, []).append(Replacement(low, high, item.text, alias=item.alias))


def editing(text: str, edits: Sequence[Replacement]) -> Generator[None, None, str]:
    """Return, in steps, `text` with replacements carried out; of those that overlap the first takes in the others."""
    runs: list[list[Replacement]] = []
    for start in range(0, len(edits), _EDITS_A_STEP):
        runs.append(sorted(edits[start : start + _EDITS_A_STEP], key=_order))
        yield
    done, some = list[str](), list[str]()
    at = 0
    for number, edit in enumerate(merge(*runs, key=_order), 1):
        if edit.start >= at:
            some += (text[at : edit.start], edit.text)
        at = max(at, edit.end)
        if number % _EDITS_A_STEP == 0:
            done.append("".join(some))
            some.clear()
            yield
    return "".join([*done, *some, text[at:]])


def _order(edit: Replacement) -> tuple[int, int]:
    return edit.start, -edit.end


def rewriting(delta: Delta, edits: Sequence[Replacement]) -> Generator[None, None, str]:
    """Return, in steps, a text of a prompt with replacements carried out; the JSON of a call's arguments stays JSON.

    What tools say of JSON stays so, too, where it can.

    Raises:
        WireError: arguments would not.
    """
    of_message = delta.path[0] in _OF_MESSAGES and delta.text.lstrip()[:1] in _OPENING
    if not (delta.path[-1] == "arguments" or of_message) or not (yield from whether_json(delta.text)):
        return (yield from editing(delta.text, edits))
    inside = yield from inside_json(delta.text, edits)
    if inside is None and of_message:
        return (yield from editing(delta.text, edits))
    if inside is None:
        raise WireError("the arguments of a tool call would be no JSON any more; leave out what policy does not allow")
    return (yield from editing(delta.text, inside))
