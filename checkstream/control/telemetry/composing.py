"""Makes deliveries of what the log has behind the receiver's positions. Blocks on files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from checkstream.audit.chain import Head, write_head
from checkstream.audit.segments import segments
from checkstream.control.telemetry import reading
from checkstream.control.telemetry.delivery import MOST_CHAINS, MOST_ITEMS, At, Delivery, Run, Skipped
from checkstream.control.telemetry.privacy import Privacy, run_of
from checkstream.control.telemetry.reading import Place, There
from checkstream.errors import AuditError

_KEPT = 0.9
"""Of the most that may wait, so much is kept when it is passed: so that it isn't again with the next record."""


class Composed(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery, and what it comes to when it is taken."""

    delivery: Delivery
    ends: Mapping[str, Place]
    """Of each chain in it, where the next run begins."""
    more: bool
    """The log has more that could be sent at once."""
    left: int
    """Bytes of the log that wait when this has been taken."""
    skipped: int
    """Records that are not sent, whatever the reason."""
    faults: Mapping[str, str]
    """Chains that can't be read, and why."""


class _Work:
    """A delivery in the making."""

    def __init__(self, most_bytes: int, most_records: int) -> None:
        self.left = most_bytes
        self.bytes = 0
        self.records = min(most_records, MOST_ITEMS)
        self.runs: list[Run] = []
        self.ends: dict[str, Place] = {}
        self.more = False
        self.skipped = 0
        self.faults: dict[str, str] = {}

    @property
    def full(self) -> bool:
        return self.left <= 0 or self.records <= 0


class Composer:
    """Remembers where in the files the receiver's positions are. Used by one thread at a time."""

    def __init__(self, directory: Path, privacy: Privacy, keys: tuple[str, ...], *, spool_bytes: int) -> None:
        """Read `directory`; `keys` sign its heads. No more than `spool_bytes` of it wait to be sent."""
        self._directory = directory
        self._privacy = privacy
        self._keys = keys
        self._spool_bytes = spool_bytes
        self._places: dict[str, Place] = {}
        self._searched: dict[str, tuple[At, At, Place | None]] = {}
        self._told: dict[str, bytes] = {}
        self._resting: dict[str, tuple[object, There]] = {}
        self._last = ""

    def compose(
        self, positions: Mapping[str, At], *, number: int, time_ms: int, most_bytes: int, most_records: int
    ) -> Composed:
        """Return what is to be sent next; it has no runs where nothing is.

        Args:
            positions: Where the receiver stands in each chain.
            number: Of the delivery.
            time_ms: Wall clock.
            most_bytes: About so many of the log at once; one record more at most.
            most_records: And so many records.

        Raises:
            AuditError: the directory can't be read.
        """
        work = _Work(most_bytes, most_records)
        known = segments(self._directory)
        places = self._starts(known, positions, time_ms, work)
        waiting = {
            chain: reading.waiting(self._directory, there, place)
            for chain, (there, place) in places.items()
            if place is not None
        }
        everything = sum(waiting.values())
        share = min(1.0, self._spool_bytes / max(everything, 1))
        kept = share if share == 1 else share * _KEPT
        for chain in self._in_turn(places):
            there, place = places[chain]
            position = positions.get(chain, At())
            if place is None:
                self._say(work, Run(chain=chain, after=position, ends=there.last))
                continue
            try:
                if kept < 1:
                    place = reading.skip(self._directory, there, place, int(waiting[chain] * kept))
                self._read(work, there, place, position)
            except (AuditError, OSError) as error:
                work.faults[chain] = str(error)
        for chain in positions.keys() - known.keys():
            self._say(work, Run(chain=chain, after=positions[chain], ends=At()))
        delivery = Delivery(number=number, time_ms=time_ms, keys=self._keys, runs=tuple(work.runs), waiting=everything)
        left = max(min(everything, self._spool_bytes) - work.bytes, 0)
        return Composed(
            delivery=delivery, ends=work.ends, more=work.more, left=left, skipped=work.skipped, faults=work.faults
        )

    def taken(self, composed: Composed, positions: Mapping[str, At]) -> bool:
        """Hear where the receiver stands now; return whether something was taken, if anything was sent."""
        moved = not composed.delivery.runs
        for run in composed.delivery.runs:
            position = positions.get(run.chain, At())
            end = composed.ends.get(run.chain)
            if end is not None and position == end.at:
                self._places[run.chain] = end
                moved = True
            else:
                self._places.pop(run.chain, None)
            if not run.items:
                self._told[run.chain] = msgspec.json.encode(run)
                moved = True
        return moved

    def _starts(
        self, known: Mapping[str, list[int]], positions: Mapping[str, At], time_ms: int, work: _Work
    ) -> dict[str, tuple[There, Place | None]]:
        """Return of each chain what there is, and where the next run begins."""
        found: dict[str, tuple[There, Place | None]] = {}
        for chain, numbers in list(known.items())[-MOST_CHAINS:]:
            position = positions.get(chain, At())
            try:
                there = self._look(chain, numbers, time_ms / 1000)
                place = self._places.get(chain)
                if place is None or place.at != position or not reading.stands(self._directory, there, place):
                    place = self._find(there, position)
            except (AuditError, OSError) as error:
                work.faults[chain] = str(error)
            else:
                found[chain] = there, place
        return found

    def _look(self, chain: str, numbers: list[int], now_s: float) -> There:
        """Return what there is of a chain; of one that rests, and may be read to its end, what there was before.

        Raises:
            AuditError: a file can't be read.
        """
        marks = reading.marks(self._directory, chain, numbers)
        known = self._resting.get(chain)
        if known is not None and known[0] == marks:
            return known[1]
        there = reading.look(self._directory, chain, numbers, now_s)
        if there.whole:
            self._resting[chain] = marks, there
        return there

    def _find(self, there: There, position: At) -> Place | None:
        """Return where a run begins; what is not found is not looked for again before the log has grown.

        Raises:
            AuditError: a file can't be read.
        """
        searched = self._searched.get(there.chain)
        if searched is None or searched[:2] != (position, there.last):
            searched = (position, there.last, reading.find(self._directory, there, position))
            self._searched[there.chain] = searched
        return searched[2]

    def _in_turn(self, chains: Mapping[str, object]) -> list[str]:
        """Return the chains, beginning behind the one that was served last, so that none waits for another."""
        names = sorted(chains)
        after = [name for name in names if name > self._last]
        return after + names[: len(names) - len(after)]

    def _read(self, work: _Work, there: There, place: Place, position: At) -> None:
        """Put the next run of a chain into a delivery, if there is room and anything to say.

        Raises:
            AuditError: a file can't be read.
        """
        if work.full:
            work.more = work.more or place.spot < there.upto
            return
        stretch = reading.read(self._directory, there, place, most_bytes=work.left, most_records=work.records)
        if not stretch.records:
            if stretch.end.at == position:
                self._places[there.chain] = reading.marked(self._directory, there, stretch.end)
            if there.cut and there.head is not None:
                self._say(work, Run(chain=there.chain, after=position, heads=(_raw(there.head),)))
            return
        after = stretch.after if stretch.after.seq >= position.seq else position
        skipped = Skipped(since=position, reason=stretch.skipped) if stretch.skipped else None
        run = run_of(there.chain, after, stretch.records, self._privacy, skipped)
        if there.head is not None and any(record.hash == there.head.hash for _, record in stretch.records):
            run = msgspec.structs.replace(run, heads=(_raw(there.head),))
        work.runs.append(run)
        work.ends[there.chain] = reading.marked(self._directory, there, stretch.end)
        work.skipped += after.seq - position.seq
        size = sum(len(line) + 1 for line, _ in stretch.records)
        work.left -= size
        work.bytes += size
        work.records -= len(stretch.records)
        work.more = work.more or stretch.end.spot < there.upto
        self._last = there.chain

    def _say(self, work: _Work, run: Run) -> None:
        """Tell once what is wrong with the log beside its records."""
        if self._told.get(run.chain) != msgspec.json.encode(run):
            work.runs.append(run)


def _raw(head: Head) -> msgspec.Raw:
    return msgspec.Raw(write_head(head)[:-1])
