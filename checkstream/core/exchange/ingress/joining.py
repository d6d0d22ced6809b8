"""Which texts of a prompt are judged as one: those of a message, its names, and the sentences that names spell.

A judge has each of them. Classifiers read what is written for a reader: texts, sentences in the dress of a name, and
what stands encoded in either; single names and numbers would only be noise to them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import msgspec

from checkstream.core.channel.brief import Manner
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.borders import Edge, edges, looking
from checkstream.core.exchange.ingress.joined import PLACES_A_STEP, PLACES_WORK, Joined, Spelled
from checkstream.core.exchange.ingress.told import Rows, edge_of, strings_in, suspicious
from checkstream.core.exchange.meter import CHANNEL_WORK, Steps
from checkstream.core.exchange.quiet import LEAST_CHARS, Found, listen
from checkstream.core.exchange.silent import SHORT_CHARS, finding_nothing
from checkstream.core.match.decoded import decoded
from checkstream.core.match.spelled import LEAST_WORDS, LEAST_WORDS_IN_TEXT, NAMES_CHARS, names
from checkstream.core.match.work import Work
from checkstream.core.terms import Channel, Delta, Stage
from checkstream.core.wire.mcp.fields import ADDRESSES
from checkstream.core.wire.surface import Request

_PARTS, _QUIET, _SPELLED, _LISTED, _BORDERS, _TOLD, _WORDS = 1, 2, 3, 4, 6, 7, 8
"""Indexes of the channels that parts without a gap between them, names, the sentences of names, entries of lists, ends
of messages with the beginnings of the next, strings of JSON in a text, and words of one value are judged as."""
_NAMING_WORK, _NAME_WORK = 120, 70
"""Of looking for names in `NAMES_CHARS`, and of each that is found (see `match.work`)."""

_SHORT_CHARS = 128
"""What looking at a text costs besides, as characters of it."""


def _is_part(delta: Delta) -> bool:
    """Tell whether a text is one of the parts of a message's content."""
    return len(delta.path) > 3 and "content" in delta.path[1:3]


class Joining:
    """Puts the texts of one request together."""

    def __init__(self, request: Request, checking: Checking, *, of_tools: bool = False) -> None:
        """Begin with none; `of_tools`: the request is a message to or from a server of tools."""
        self._of_tools = of_tools
        self.joined: list[Joined] = []
        self.chars = 0
        """Of all texts; ids, names and numbers don't count."""
        self._request = request
        self._deltas = request.unit.deltas
        self._checking = checking
        self._spelled: dict[str, Spelled] = {}
        self._looked = 0
        """Characters that were looked at for names since others had their turn."""

    def steps(self) -> Generator[None, None, list[Joined]]:
        """Return, in steps, the texts that are judged, each with its judge.

        Some servers part the texts of a message by a line end, some by nothing; what stands in one text alone is
        the same both ways and counts once.
        """
        meter = self._checking.meter
        places: dict[tuple[str, int], list[int]] = {}
        quiet: dict[str, list[int]] = {}
        for place, delta in enumerate(self._deltas):
            if place % PLACES_A_STEP == 0:
                meter.spend(PLACES_WORK)
                yield
            if place in self._request.quiet:
                quiet.setdefault(delta.channel.kind, []).append(place)
            else:
                self.chars += len(delta.text)
                places.setdefault((delta.channel.kind, delta.channel.choice), []).append(place)
            yield from self._spell(place, delta)
        for kind, found in quiet.items():
            yield from self._names(Channel(kind, self._deltas[found[0]].channel.choice, _QUIET), found)
        if not self._of_tools:
            yield from self._lists()
        yield from self._words()
        for (kind, position), found in places.items():
            yield from self._message(kind, position, found, parts=not self._of_tools)
            yield
        yield from self._borders(places)
        if self._of_tools:
            yield from self._told(places)
        for spelled in self._spelled.values():
            spelled.close()
            place = spelled.first
            kind, position = self._deltas[place].channel.kind, self._deltas[place].channel.choice
            yield from self._take(spelled, Channel(kind, position, _SPELLED), Manner(grid=False))
        return self.joined

    def _message(self, kind: str, position: int, found: Sequence[int], *, parts: bool) -> Generator[None, None, None]:
        """Take the texts of a message or field, and its `parts` without a gap between them."""
        meter = self._checking.meter
        lines = Joined()
        yield from meter.stepping(lines.add(self._deltas, found, "\n"), PLACES_WORK)
        yield from self._take(lines, Channel(kind, position), Manner(grid=False))
        if not parts:
            return
        joined, seams, at = list[int](), list[int](), 0
        for count, place in enumerate(found, 1):
            if _is_part(self._deltas[place]):
                joined.append(place)
                seams.append(at)
                at += len(self._deltas[place].text)
            if count % PLACES_A_STEP == 0:
                meter.spend(PLACES_WORK)
                yield
        if len(joined) > 1:
            run = Joined()
            yield from meter.stepping(run.add(self._deltas, joined, ""), PLACES_WORK)
            yield from self._take(run, Channel(kind, position, _PARTS), Manner(grid=False, seams=tuple(seams[1:])))

    def _borders(self, places: Mapping[tuple[str, int], Sequence[int]]) -> Generator[None, None, None]:
        """Take, for each kind of channel, what stands over the border of a message and the next."""
        kinds: dict[str, list[Sequence[int]]] = {}
        for (kind, _), found in places.items():
            kinds.setdefault(kind, []).append(found)
        for kind, messages in kinds.items():
            patterns = self._checking.program.scope(Stage.INGRESS, kind).hold
            if len(messages) < 2 or not len(patterns):
                continue
            rows = yield from self._checking.meter.stepping(edges(self._deltas, messages), PLACES_WORK)
            borders = yield from looking(rows, kind, patterns, self._checking.meter, self._checking.quiet)
            if borders.text:
                manner = Manner(grid=False, asks=False, seams=tuple(borders.seams))
                yield from self._take(
                    borders, Channel(kind, self._deltas[messages[0][0]].channel.choice, _BORDERS), manner
                )

    def _told(self, places: Mapping[tuple[str, int], Sequence[int]]) -> Generator[None, None, None]:
        """Take what stands over the strings of a message of tools: of its values, its parts, and JSON that is text."""
        kinds: dict[str, Rows] = {}
        meter = self._checking.meter
        for (kind, _), found in places.items():
            rows = kinds.setdefault(kind, Rows())
            parts = list[int]()
            for count, place in enumerate(found, 1):
                yield from rows.text(place, self._deltas[place].text, meter)
                if _is_part(self._deltas[place]):
                    parts.append(place)
                if count % PLACES_A_STEP == 0:
                    meter.spend(PLACES_WORK)
                    yield
            yield from rows.take((edge_of(self._deltas, place) for place in parts), meter)
            yield
        for run in self._request.runs:
            rows = kinds.setdefault(self._deltas[run[0]].channel.kind, Rows())
            yield from rows.take((edge_of(self._deltas, place) for place in run), meter)
        yield from self._message_of_tools(sorted(place for found in places.values() for place in found), kinds)
        for kind, collected in kinds.items():
            patterns = self._checking.program.scope(Stage.INGRESS, kind).hold
            rows_ = collected.end() if len(patterns) else []
            rows_ = (yield from suspicious(rows_, patterns, meter)) if rows_ else []
            if rows_:
                borders = yield from looking(rows_, kind, patterns, meter, None, known=True)
                if borders.text:
                    manner = Manner(grid=False, asks=False, seams=tuple(borders.seams))
                    yield from self._take(borders, Channel(kind, 0, _TOLD), manner)
            yield

    def _message_of_tools(self, places: Sequence[int], kinds: Mapping[str, Rows]) -> Generator[None, None, None]:
        """Take all that a message of tools says, whatever part says it: who reads one part reads the others."""
        spoken, texts, strings = list[Edge](), list[Edge](), list[Edge]()
        for count, place in enumerate(places, 1):
            path = self._deltas[place].path
            if path[-1] not in ADDRESSES:
                said = yield from strings_in(place, self._deltas[place].text, self._checking.meter)
                spoken += said
                if path[1:2] == ("structuredContent",):
                    strings += said
                elif path[-1] == "text":
                    texts += said
            if count % PLACES_A_STEP == 0:
                self._checking.meter.spend(PLACES_WORK)
                yield
        for rows in kinds.values():
            yield from rows.all(spoken, self._checking.meter)
            yield from rows.beside(texts, strings, self._checking.meter)

    def _lists(self) -> Generator[None, None, None]:
        """Take, for each kind of channel, what entries of lists say one behind the other."""
        lists: dict[str, list[tuple[int, ...]]] = {}
        for run in self._request.runs:
            lists.setdefault(self._deltas[run[0]].channel.kind, []).append(run)
        for kind, runs in lists.items():
            found, seams, at = list[int](), list[int](), 0
            for run in runs:
                for place in run:
                    at += len(self._deltas[place].text)
                    found.append(place)
                    seams.append(at)
                    if len(found) % PLACES_A_STEP == 0:
                        self._checking.meter.spend(PLACES_WORK)
                        yield
                at += 1
            entries = Joined(reads=False)
            ends = frozenset(run[-1] for run in runs)
            yield from self._checking.meter.stepping(entries.add(self._deltas, found, "", ends), PLACES_WORK)
            channel = Channel(kind, self._deltas[found[0]].channel.choice, _LISTED)
            yield from self._take(entries, channel, Manner(grid=False, asks=False, seams=tuple(seams)))
            yield

    def _words(self) -> Generator[None, None, None]:
        """Take, for each kind of channel, what words of one value say one behind the other, a line for each value."""
        lines: dict[str, list[int]] = {}
        ends = set[int]()
        for words in self._request.told:
            lines.setdefault(self._deltas[words[0]].channel.kind, []).extend(words)
            ends.add(words[-1])
        for kind, found in lines.items():
            told = Joined()
            yield from self._checking.meter.stepping(told.add(self._deltas, found, " ", ends), PLACES_WORK)
            yield from self._take(
                told, Channel(kind, self._deltas[found[0]].channel.choice, _WORDS), Manner(grid=False)
            )
            yield

    def _names(self, channel: Channel, found: Sequence[int]) -> Generator[None, None, None]:
        """Take the ids, names and numbers of the whole request: no classifier is asked but about what they encode."""
        meter = self._checking.meter
        quiet = Joined(reads=False)
        yield from meter.stepping(quiet.add(self._deltas, found, "\n"), PLACES_WORK)
        if self._checking.program.scope(Stage.INGRESS, channel.kind).hold_classifiers:
            work = Work()
            quiet.besides = yield from meter.counting(decoded(quiet.text, work), work)
        yield from self._take(quiet, channel, Manner(grid=False, asks=bool(quiet.besides)))

    def _spell(self, place: int, delta: Delta) -> Generator[None, None, None]:
        """Take the sentences that stand as names in a text."""
        least = LEAST_WORDS if place in self._request.quiet or not _is_spaced(delta.text) else LEAST_WORDS_IN_TEXT
        for each in names(delta.text, least):
            if each is not None:
                self._spelled.setdefault(delta.channel.kind, Spelled()).take(place, *each)
                self._checking.meter.spend(_NAME_WORK)
                continue
            self._looked += min(len(delta.text) + _SHORT_CHARS, NAMES_CHARS)
            if self._looked >= NAMES_CHARS:
                self._looked = 0
                self._checking.meter.spend(_NAMING_WORK)
                yield

    def _take(self, joined: Joined, channel: Channel, manner: Manner) -> Steps:
        quiet = self._checking.quiet
        asks = quiet is not None and len(joined.text) >= LEAST_CHARS
        before = quiet.found(channel.kind, joined.text) if quiet is not None and asks else None
        if before is not None:
            manner = msgspec.structs.replace(manner, before=before)
        followed = not (yield from self._is_read(channel.kind, joined.text, before))
        joined.judge = self._checking.judge(channel, Stage.INGRESS, manner, followed=followed)
        if asks and before is None:
            listen(joined.judge)
        self._checking.meter.spend(CHANNEL_WORK)
        self.joined.append(joined)

    def _is_read(self, kind: str, text: str, before: Found | None) -> Generator[None, None, bool]:
        """Tell, in a step, whether rules that hold no text have nothing to do with a text, and note that they read it.

        Args:
            kind: Of its channel.
            text: All of it.
            before: What is known to be found in it.
        """
        scope = self._checking.program.scope(Stage.INGRESS, kind)
        if not len(scope.watch) or scope.watch_classifiers or scope.bare:
            return False
        if before is not None:
            nothing = not any(before[1:])
        else:
            nothing = len(text) <= SHORT_CHARS and (yield from finding_nothing(scope.watch, text, self._checking.meter))
        if nothing:
            self._checking.ledger.read(Stage.INGRESS, kind)
        return nothing


def _is_spaced(text: str) -> bool:
    """Tell whether a text has gaps between words: it is no name."""
    return len(text.split(None, 1)) > 1
