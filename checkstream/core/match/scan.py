"""Scan one channel's text as it arrives: findings with exact spans, and the oldest place still undecided.

INVARIANT: findings and `live` depend on the text received so far and never on how it was cut (G3), and
no later finding starts before `live` (G4). The work is linear in the text: what lies behind `live` by
more than the context is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from checkstream.core.match.chain import Chain, undecided
from checkstream.core.match.decided import Decided, note, note_embedded, taken
from checkstream.core.match.encoded import ALPHABET
from checkstream.core.match.hexed import begun_from
from checkstream.core.match.hidden import Embedded, outs
from checkstream.core.match.inner import MOST_DEEP
from checkstream.core.match.lane import NEVER, Found, Lane
from checkstream.core.match.patterns import NOTHING, PatternSet, Table
from checkstream.core.match.reciting import Reciting
from checkstream.core.match.waking import EMBEDDING, changing, trigger_of, without_surrogates
from checkstream.core.match.word_reader import WordReader
from checkstream.core.match.work import Work
from checkstream.core.terms import Finding

_PIECE_CHARS: Final = 2048
"""Longer text is read in pieces, so that the work for one is bounded; the cut can't be seen from outside."""
_INNER_WORK: Final = 80
"""Of beginning and ending a text that stands in another."""


class Scan:
    """The state of one channel. Positions are code points of the channel's original text."""

    __slots__ = (
        "_asleep",
        "_begun",
        "_by_words",
        "_chain",
        "_checks",
        "_depth",
        "_due",
        "_embeds",
        "_encoded",
        "_encoded_at",
        "_found",
        "_hex_at",
        "_last_end",
        "_late",
        "_least_caps",
        "_patterns",
        "_raw",
        "_reader",
        "_received",
        "_stop",
        "_trigger",
        "_unread",
        "_view_due",
        "live",
        "work",
    )  # fmt: skip

    def __init__(
        self,
        patterns: PatternSet,
        work: Work | None = None,
        depth: int = 0,
        *,
        by_words: bool = True,
        late: bool = False,
    ) -> None:
        """Start at the beginning of a channel.

        Args:
            patterns: What is searched for.
            work: Takes what the text costs.
            depth: How many times the text stands encoded in another.
            by_words: Look words up that are known; what is found is the same.
            late: Nobody asks what of the text could still become a match: as long as it is too short for anything to be
                decided before it has ended, all is decided then. What is found is the same.
        """
        self.live = 0
        """Oldest start that could still become a match; all before it is decided."""
        self._patterns = patterns
        self._depth = depth
        self.work = Work() if work is None else work
        """What the text has cost."""
        self._received = 0
        cap, view_cap = patterns.min_cap or NEVER, patterns.min_view_cap or NEVER
        self._least_caps = (cap, min(cap, view_cap))
        self._due = cap
        """No cap falls due before this many characters were received,"""
        self._view_due = self._least_caps[1]
        """The same of every view's, also while none is awake."""
        self._by_words = by_words
        self._late = late
        """Nothing has been decided, and nothing need be."""
        self._unread = ""
        """Text that was put off while nobody was to search it."""
        self._reader = _NO_WORDS
        self._raw: Lane
        self._chain: Chain
        self._encoded: Embedded | None = None
        self._encoded_at = self._hex_at = self._stop = 0
        self._asleep = True
        """No view but the raw one is being read."""
        self._embeds = patterns.embeds
        self._last_end = len(patterns.chained)
        """Which view has read least, asleep: 0 raw, else that of this number in the chain, from 1 on."""
        self._checks = patterns.asleep
        self._trigger = trigger_of(patterns.chained, embeds=patterns.embeds)
        self._found: Decided = {}
        self._begun = False
        """There is what searches; a text in which no view but the raw one sees anything may end without."""
        if not late and patterns.patterns:
            self._begin()

    def _begin(self) -> None:
        """Make what searches the text."""
        self._begun = True
        self._raw = Lane(self._patterns.tables["raw"], 0, self.work)
        self._raw.text, self._unread = self._unread, ""
        self._raw.read_to = self._received
        self._chain = Chain(self._patterns)
        self._reader = WordReader(self._patterns, self._trigger)

    @property
    def back(self) -> int:
        """Place from which what is live has to be read to be found again (see `Reciting`)."""
        return self.live

    @property
    def ahead(self) -> int:
        """How many characters can be read until caps may fall due at each: there one costs as much as a long piece.

        So does the first that puts nothing more off: all that was is decided before it.
        """
        due = min(self._due, self._patterns.least_long - 1) if self._late else self._due
        return max(due - self._received, 0)

    def feed(self, text: str) -> list[Finding]:
        """Read more text; return the findings decided by it, sorted by span and signal."""
        if self._reader.word is not None:
            if self._read_words(text):
                return []
            self._leave_words()
        if not self._patterns.patterns:
            self._received += len(text)
            self.live = self._received
            return []
        if self._late:
            if self._received + len(text) < self._patterns.least_long:
                self._put_off(text)
                return []
            self.catch_up()
        self._search(text)
        if self._found:
            return taken(self._found, self.live)
        if self._asleep and self._by_words:
            self._reader.look(self._raw, self.live - self._raw.base)
        return []

    def feed_words(self, text: str) -> bool:
        """Read more text in which nothing is found, since it is of words that are known; False: nothing was done."""
        return self._reader.word is not None and self._read_words(text)

    def words_in(self, text: str) -> int:
        """Return how many characters of a text, which `feed_words` did not take, it may take."""
        return self._reader.reach(text)

    def wakes(self, text: str) -> bool:
        """Tell whether a view but the raw one would see something in a text that has not been read."""
        trigger = self._trigger
        return trigger is not None and trigger.search(text if text.isascii() else without_surrogates(text)) is not None

    def catch_up(self) -> None:
        """Decide what can be decided of a text of which that was put off."""
        if self._late and self._patterns.patterns:
            self._late = False
            if not self._begun:
                self._begin()
            if self._asleep and self._received:
                self._decide_raw()
            elif self._received:
                self._due = min(self._due, self._view_due)
                self._settle()

    def _put_off(self, text: str) -> None:
        """Read more text in which no cap can fall due, and decide nothing."""
        if not text.isascii():
            text = without_surrogates(text)
        start = self._received
        self.work.done += 4 + len(text) // 64
        if not self._begun:
            grown = self._unread + text
            if self._trigger is None or self._trigger.search(grown) is None:
                self._unread = grown
                self._received = start + len(text)
                return
            self._begin()
        raw = self._raw
        grown = raw.text + text
        self._doze()
        self._wake(grown)
        raw.text = grown
        self._received = raw.read_to = start + len(text)
        if self._asleep:
            return
        self.work.done += len(text)  # views are read character by character
        if self._chain.awake:
            self._chain.read(text, start, raw, ended=False)
        self._read_embedded(ended=False)

    def _search(self, text: str) -> None:
        """Read more text, whatever it is."""
        if not text.isascii():
            text = without_surrogates(text)
        place, size = 0, len(text)
        while place < size:
            if self._received >= self._due:
                self._apply_caps()
            most = min(_PIECE_CHARS, self._due - self._received)
            piece = text if size <= most and not place else text[place : place + most]
            grown = self._raw.text + piece
            if not self._asleep:
                self._wake(grown)
            elif self._trigger is not None and self._trigger.search(grown, max(self._stop - self._raw.base - 1, 0)):
                self._doze()
                self._wake(grown)
                # At least one character further, or the same piece would be cut for ever.
                due = max(self._view_due, self.live + self._least_cap())
                self._due = max(min(self._due, due), self._received + 1)
                if self._received + len(piece) > self._due:
                    continue  # a view's cap is nearer: cut again
            place += self._take(grown, piece)
        if self._received >= self._due:
            self._apply_caps()

    # --- words, which are looked up

    @property
    def by_words(self) -> bool:
        """All that could still become a match is of words that are known."""
        return self._reader.word is not None

    def _read_words(self, text: str) -> bool:
        """Read more text if it is of words that are known; else do nothing."""
        raw = self._raw
        low = self._reader.read(raw, text, self.work)
        if low < 0:
            return False
        raw.read_to = self._received = self._received + len(text)
        self.live = live = raw.base + low
        due = live + self._least_caps[0]
        if due > self._due:
            self._due = due
        raw.pass_by(low)
        return True

    def _leave_words(self) -> None:
        """Go on as if all had been searched."""
        at = min(self._received - self._reader.leave(), self.live)
        self._stop = max(self._stop, at)
        self._encoded_at = max(self._encoded_at, at)
        self._hex_at = max(self._hex_at, at)
        self._view_due = max(self._view_due, self.live + self._least_caps[1])

    # --- the end

    def end(self) -> list[Finding]:
        """The channel has ended: decide everything."""
        if not self._patterns.patterns:
            return []
        if self._reader.word is not None:
            self._leave_words()
        if not self._begun:
            return self._end_of_raw()
        raw = self._raw
        if not self._late or self._chain.awake:  # else nobody has seen anything in all of the text
            self._doze()
            if self._chain.names:
                if not self._chain.awake:
                    self._chain.wake(raw)
                self._chain.read("", self._received, raw, ended=True)
        self._read_embedded(ended=True)
        for lane, name in self._views():
            out: list[Found] = []
            lane.read_to = self._received
            lane.decide(self._received, out)
            note(self._found, name, out)
        self.live = self._received
        return taken(self._found, self.live)

    def _end_of_raw(self) -> list[Finding]:
        """Decide a text of which all was put off, and in which no view but the raw one sees anything."""
        lane, out = Lane(self._patterns.tables["raw"], 0, self.work), list[Found]()
        lane.text, self._unread = self._unread, ""
        self.live = lane.read_to = self._received
        lane.decide(self._received, out)
        note(self._found, "raw", out)
        return taken(self._found, self.live) if out else []

    def give_up(self) -> list[Finding]:
        """Take what is live for what it may become, and decide all else: the text is over."""
        if self._reader.word is not None:
            self._leave_words()
        if not self._patterns.patterns:
            return self.end()
        self.catch_up()
        self._doze()
        self._force()
        for lane, name in self._views():
            out: list[Found] = []
            lane.due(lane.read_to, lane.table, out, derived=True, most=0)
            note(self._found, name, out)
        return self.end()

    def _least_cap(self) -> int:
        """Return the least number of characters after which any start may reach its cap."""
        return self._least_caps[not self._asleep]

    def _doze(self) -> None:
        """Let the chain note, if it sleeps, where it has stopped."""
        if not self._chain.awake:
            self._chain.doze(self._raw)

    def _take(self, grown: str, piece: str) -> int:
        """Read a piece of text that passes no place where a cap may fall due, as far as views go at once.

        Args:
            grown: The raw text with it.
            piece: The text.

        Returns:
            How many characters were read.
        """
        if self._chain.awake and (over := self._received + len(piece) - self._chain.due) > 0:
            grown, piece = grown[:-over], piece[:-over]
        raw, start = self._raw, self._received
        raw.text = grown
        self._received = raw.read_to = start + len(piece)
        self.work.done += 4 + len(piece) // 64
        if self._asleep:
            self._decide_raw()
            return len(piece)
        self.work.done += len(piece)  # views are read character by character
        if self._chain.awake:
            self._chain.read(piece, start, raw, ended=False)
        self._read_embedded(ended=False)
        self._settle()
        return len(piece)

    def _decide_raw(self) -> None:
        """Decide after a piece that no view but the raw one sees."""
        raw = self._raw
        size = len(raw.text)
        ends: tuple[int, ...] = (size, *undecided(raw.text)) if self._chain.names else (size,)
        stop, phrases = ends[self._last_end], raw.phrases
        encoded_at = self._run_start()
        while True:
            live = stop
            for table, number in self._checks:
                place = raw.leftmost(ends[number], table)
                live = min(live, place)
                if live <= raw.floor:
                    break  # nothing can be live before what is undecided
            if phrases is not None:
                place = phrases.leftmost(raw.text, raw.floor, stop, raw.free if raw.resume else None)
                live = min(live, place)
            live = min(raw.base + live, encoded_at)
            if live <= self.live:
                break
            out: list[Found] = []
            again = raw.decide(live, out)
            self.live = live
            if out:
                note(self._found, "raw", out)
            if not again:
                break
            cut = size - len(raw.text)
            if cut:  # the lane has dropped what it will not read again: its indexes are others now
                size, stop, ends = size - cut, stop - cut, tuple(end - cut for end in ends)
        raw.look_ahead()
        self._stop = min(self._received - size + stop, encoded_at)
        self._due = max(self._due, live + self._least_caps[0])
        self._view_due = max(self._view_due, live + self._least_caps[1])

    def _run_start(self) -> int:
        """Note where the runs of base64, and of hex, start at the text's end; return the first of both places."""
        if not self._embeds:
            self._encoded_at = self._hex_at = self._received
            return self._received
        base, text = self._raw.base, self._raw.text
        self._encoded_at = max(self._encoded_at, base + len(text.rstrip(ALPHABET)))
        self._hex_at = base + begun_from(text, max(self._hex_at - base, 0))
        return min(self._encoded_at, self._hex_at)

    def _embedded(self) -> Embedded:
        """Return what reads on from where these runs start."""
        begin = self._inner if self._depth < MOST_DEEP else None
        return Embedded(begin, self._patterns.tables["hidden"], self._encoded_at, self._hex_at, self.work)

    def _inner(self) -> AnyScan:
        self.work.done += _INNER_WORK
        return scanning(self._patterns.inner, self.work, self._depth + 1)

    def _read_embedded(self, *, ended: bool) -> None:
        if self._encoded is not None:
            out = outs()
            at = min(self._encoded.ats)
            self._encoded.read(self._text_from(at), at, out, ended=ended)
            note_embedded(self._found, out)

    def _wake(self, grown: str) -> None:
        """Wake what would see something in `grown`, the raw text with the piece to be read now."""
        raw, chain = self._raw, self._chain
        if (
            chain.names
            and not chain.awake
            and changing(chain.names).search(grown, max(chain.stops[-1] - raw.base - 1, 0))
        ):
            chain.wake(raw)
        at = min(self._encoded_at, self._hex_at) - raw.base
        if self._encoded is None and self._embeds and EMBEDDING.search(grown, at):
            self._encoded = self._embedded()
        self._asleep = self._encoded is None and not self._chain.awake

    def _settle(self) -> None:
        """Decide, in every lane, what none of them still has live."""
        self._doze()
        views = list(self._views())
        checks = self._awake_checks(views)
        phrase_stops = _least_stops(checks) if self._raw.phrases is not None else []
        encoded_live = self._decide_encoded()
        while True:
            live = min(encoded_live, *[lane.live(stop, table) for lane, stop, table in checks])
            for lane, stop in phrase_stops:
                live = min(live, lane.phrases_live(stop))
            again = False
            for lane, name in views:
                out: list[Found] = []
                again |= lane.decide(live, out)
                if out:
                    note(self._found, name, out)
            self.live = live
            if not again:
                break
        for lane, _ in views:
            lane.look_ahead()
        if self._chain.awake:
            self._chain.settle(self._raw)
        if self._encoded is not None and self._encoded.idle:
            self._encoded_at, self._hex_at = self._encoded.ats
            self._encoded = None
        self._doze()
        self._stop = min(self._stops(), default=self._received)
        self._asleep = self._encoded is None and not self._chain.awake
        self._due = max(self._due, live + self._least_cap())
        self._view_due = max(self._view_due, live + self._least_caps[1])

    def _decide_encoded(self) -> int:
        """Decide what stands encoded, which no other view depends on; return where it is live."""
        if self._encoded is None:
            return self._run_start()
        out = outs()
        live = self._encoded.decide(out)
        note_embedded(self._found, out)
        return live

    def _stops(self) -> list[int]:
        """Return where the last view of the chain, and the encoded one, have stopped."""
        stops = self._chain.stops[-1:]
        if self._embeds:
            stops += (self._encoded_at, self._hex_at) if self._encoded is None else self._encoded.ats
        return stops

    def _views(self) -> Iterator[tuple[Lane, str]]:
        """Yield every lane in use, the raw one first, with the name of its view."""
        yield self._raw, "raw"
        yield from self._chain.lanes()

    def _awake_checks(self, views: Sequence[tuple[Lane, str]]) -> list[tuple[Lane, int, Table]]:
        """Return what to ask for what is live: each lane with the offsets to which views have read, and their tables.

        A view that shares another's lane and table and has read less answers for both.
        """
        stops = {(id(lane), id(lane.table)): (lane, lane.read_to, lane.table) for lane, _ in views}
        for lane, stop, table in self._chain.shadows(self._raw):
            key = id(lane), id(table)
            if key not in stops or stop < stops[key][1]:
                stops[key] = lane, stop, table
        return list(stops.values())

    def _apply_caps(self) -> None:
        """Report what is live over its cap at exactly this place of the text, and find the next such place."""
        self._doze()
        capped, soonest = self._caps(commit=False)
        for lane, stop, table in self._chain.shadows(self._raw):
            for over, place in (lane.due(stop, table, None, derived=True), lane.phrases_due(stop, None)):
                capped |= over
                soonest = min(soonest, place)
        if capped:
            self._force()
            _, soonest = self._caps(commit=True)
            self._settle()
        stops, cap = self._stops(), self._least_cap()
        unread = min(stops, default=self._received)  # starts that no view has shown may come from there on
        # a view may still have to read up to its cap: then look again after every character that it may read
        self._due = self._view_due = max(min(soonest, unread + min(cap, self._least_caps[1])), self._received + 1)

    def _caps(self, *, commit: bool) -> tuple[bool, int]:
        """Ask every lane for what is over its cap; return whether any is, and where the next may be."""
        over, soonest = False, NEVER
        for lane, name in self._views():
            out: list[Found] | None = [] if commit else None
            capped, place = lane.due(lane.read_to, lane.table, out, derived=name != "raw")
            over, soonest = over or capped, min(soonest, place)
            if name != "raw":
                capped, place = lane.phrases_due(lane.read_to, out)
                over, soonest = over or capped, min(soonest, place)
            note(self._found, name, out or [])
        if self._encoded is not None:
            embedded = outs() if commit else None
            capped, place = self._encoded.due(embedded)
            over, soonest = over or capped, min(soonest, place)
            note_embedded(self._found, embedded or {})
        return over, soonest

    def _force(self) -> None:
        """Give every view its own lane, since some lane is about to be decided ahead of the others."""
        if self._chain.names:
            if not self._chain.awake:
                self._chain.wake(self._raw)
                self._chain.read("", self._received, self._raw, ended=False)
            self._chain.force(self._raw)
        if self._encoded is None and self._embeds:
            self._encoded = self._embedded()
            self._read_embedded(ended=False)
        self._asleep = self._encoded is None and not self._chain.awake

    def _text_from(self, at: int) -> str:
        return self._raw.text[at - self._raw.base :]


AnyScan: TypeAlias = Scan | Reciting


def scanning(patterns: PatternSet, work: Work | None = None, depth: int = 0, *, late: bool = False) -> AnyScan:
    """Return what reads one text for all that patterns say, recitals among them; the arguments are those of `Scan`."""
    scan = Scan(patterns, work, depth, late=late)
    return Reciting(scan, patterns) if patterns.recited else scan


_NO_WORDS: Final = WordReader(NOTHING, None)
"""Reads none: nothing is searched, or not yet."""


def _least_stops(checks: Sequence[tuple[Lane, int, Table]]) -> list[tuple[Lane, int]]:
    """Return each lane with the least offset to which a view has read that it stands for: all have the same phrases."""
    stops: dict[int, tuple[Lane, int]] = {}
    for lane, stop, _ in checks:
        known = stops.setdefault(id(lane), (lane, stop))
        if stop < known[1]:
            stops[id(lane)] = lane, stop
    return list(stops.values())
