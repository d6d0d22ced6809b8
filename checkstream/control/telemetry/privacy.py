"""What of an exchange leaves its node: its record, what it adds to sums, or its place in the chain alone. Pure.

========== ===========================================================================================
none       that there was a record: its digest and its hash
aggregate  that, and one more in the counts of its minute and route
decisions  the record as it stands in the log: which rules fired where, places and keyed digests of what
           was found; never the text
full_      that; what was asked and answered goes another way, sealed (`evidence`)
evidence
========== ===========================================================================================

An answer that was judged afresh is told of as its exchange is. Records that are of no exchange (a start, a reload, a
stop) always leave: without them nobody could tell whether a node
was silent or off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from checkstream.audit.chain import Record
from checkstream.config import Told
from checkstream.control.telemetry.delivery import At, Count, Link, Run, Skipped
from checkstream.control.telemetry.minutes import Minutes, minute_of
from checkstream.control.telemetry.records import SOMEBODYS, counted_of, digest_of

STRICTNESS: tuple[Told, ...] = ("none", "aggregate", "decisions", "full_evidence")
"""From the one that tells least."""
_WHOLE = frozenset({"decisions", "full_evidence"})
LONGEST = 1_048_576
"""Of a record that leaves whole, in bytes; of a longer one only the link does."""


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    """What leaves, by route and by caller."""

    usual: Told = "decisions"
    """Where neither has a word of its own."""
    routes: Mapping[str, Told] = {}
    callers: Mapping[str, Told] = {}

    @property
    def tells_all(self) -> bool:
        """Evidence of some exchanges may be wanted."""
        return "full_evidence" in (self.usual, *self.routes.values(), *self.callers.values())

    def of(self, route: str, caller: str | None) -> Told:
        """Return what leaves of an exchange: where route and caller both say something, the one that tells less."""
        said = [self.routes.get(route), None if caller is None else self.callers.get(caller)]
        return min((mode for mode in said if mode is not None), key=STRICTNESS.index, default=self.usual)


def run_of(
    chain: str, after: At, records: Iterable[tuple[bytes, Record]], privacy: Privacy, skipped: Skipped | None = None
) -> Run:
    """Return what leaves of records that follow each other.

    Args:
        chain: Of all of them.
        after: The record before.
        records: Lines of the log, and what they say.
        privacy: What may leave.
        skipped: Those that stood before and don't come.
    """
    items: list[msgspec.Raw] = []
    counted = Minutes()
    for line, record in records:
        mode = _mode(record, privacy)
        if mode in _WHOLE and len(line) <= LONGEST:
            items.append(msgspec.Raw(line))
            continue
        link = Link(digest=digest_of(record), hash=record.hash, seq=record.seq)
        items.append(msgspec.Raw(msgspec.json.encode(link)))
        minute = minute_of(record.time)
        if mode != "none" and minute is not None and (told := counted_of(record)) is not None:
            counted.add(minute, told)
    counts = tuple(Count(minute=minute, route=route, name=name, count=count) for minute, route, name, count in counted)
    return Run(chain=chain, after=after, items=tuple(items), counts=counts, skipped=skipped)


def _mode(record: Record, privacy: Privacy) -> Told:
    if record.kind not in SOMEBODYS:
        return "decisions"
    route, caller = record.body.get("route"), record.body.get("caller")
    if not isinstance(route, str) or not isinstance(caller, str | None):
        return "none"  # nobody knows whose it is
    return privacy.of(route, caller)
