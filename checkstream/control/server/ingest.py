"""Holds what a node tells of its audit chains to the chain's format: what is taken, and what is wrong with it. Pure.

A run is taken whole or not at all. It is taken where it begins at the position, so that nothing counts twice, whoever
sends it how often. What is wrong in it is said, and the position goes on behind it: a chain that was tampered with once
goes on being followed, and each further fault is found, too.

INVARIANT: positions only grow, and of each number one record is kept, the one that came first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from checkstream.audit.chain import (
    RECORD_OPENING,
    Head,
    Reason,
    Record,
    head_message,
    linked,
    read,
    read_head,
)
from checkstream.audit.keys import PublicKey
from checkstream.control.telemetry.delivery import At, Count, Link, Run
from checkstream.control.telemetry.records import digest_of
from checkstream.errors import AuditError, RequestInvalid

FORKED = "another record in its place"
GONE = "no log any more"
MOST_FLAWS = 20
"""Of one run that are told one by one."""


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it must be."""

    seq: int
    reason: str
    detail: str


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Records that the node has not sent."""

    first: int
    last: int
    reason: str


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A record that is kept."""

    seq: int
    hash: str
    digest: str
    proven: bool
    """It hashes to what it says, and links to the one before."""
    line: bytes | None
    """As it stands in the log; None: its content has stayed on the node."""
    record: Record | None
    """What the line says."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What a run comes to."""

    position: At
    items: tuple[Item, ...]
    counts: tuple[Count, ...]
    gap: Gap | None
    flaws: tuple[Flaw, ...]
    signed: Head | None
    """A head that vouches for all up to its record."""


def take(run: Run, position: At, keys: Mapping[str, PublicKey], hash_of: Callable[[int], str | None]) -> Taken | None:
    """Hold a run to the format; None: it doesn't begin at the position, so nothing of it is taken.

    Args:
        run: What has come.
        position: What has arrived of its chain before.
        keys: Public keys of the node that sign heads, by name.
        hash_of: Hash of a record that has arrived before, by its number; None: it is not kept any more, or never came.

    Raises:
        RequestInvalid: something in it is no record and no link.
    """
    since = run.after if run.skipped is None else run.skipped.since
    if since.seq != position.seq or (run.skipped is not None and since != position):
        return None
    if run.after.seq < position.seq:
        raise RequestInvalid(f"chain `{run.chain}` goes back behind what it says to follow; begin at `skipped.since`")
    walk = _Walk(run, position)
    if run.ends is not None and run.after == position:
        walk.flaw(run.ends.seq, *_ended(run.ends, position))
    for item in run.items:
        walk.receive(bytes(item))
    vouching = [head for line in run.heads if (head := walk.signed(bytes(line), keys, hash_of)) is not None]
    return Taken(
        position=walk.at,
        items=tuple(walk.items),
        counts=run.counts,
        gap=walk.gap,
        flaws=tuple(walk.flaws),
        signed=max(vouching, key=lambda head: head.seq, default=None),
    )


def _ended(ends: At, position: At) -> tuple[str, str]:
    if ends.seq == 0:
        return GONE, f"seq {position.seq} had arrived; the files of the chain are not there any more"
    return Reason.CUT.value, f"seq {position.seq} had arrived, and the log ends at {ends.seq}"


class _Walk:
    """Goes through a run, record by record."""

    def __init__(self, run: Run, position: At) -> None:
        self._chain = run.chain
        self.at = run.after
        self.items: list[Item] = []
        self.flaws: list[Flaw] = []
        self.gap: Gap | None = None
        self._hashes = {run.after.seq: run.after.hash}
        if run.after.seq > position.seq and run.skipped is not None:
            self.gap = Gap(first=position.seq + 1, last=run.after.seq, reason=run.skipped.reason)
            return
        if run.skipped is not None:
            self.flaw(position.seq, Reason.UNREADABLE.value, f"behind it, {run.skipped.reason}")
        if run.after != position:
            self.flaw(position.seq, FORKED, f"{position.hash} had arrived, and the log has {run.after.hash}")

    def flaw(self, seq: int, reason: str, detail: str) -> None:
        """Note what is wrong; of very much the first and how much more."""
        if len(self.flaws) < MOST_FLAWS:
            self.flaws.append(Flaw(seq=seq, reason=reason, detail=detail))

    def receive(self, line: bytes) -> None:
        """Take the next record.

        Raises:
            RequestInvalid: it is none, and no link.
        """
        try:
            record = read(line) if line.startswith(RECORD_OPENING) else None
            link = None if record is not None else msgspec.json.decode(line, type=Link)
        except (AuditError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestInvalid(
                f"chain `{self._chain}`: what comes behind seq {self.at.seq} is no record and no link: {error}"
            ) from error
        if record is not None:
            if not 0 < record.seq < 2**53:
                raise RequestInvalid(f"chain `{self._chain}`: a record has the number {str(record.seq)[:30]}")
            seq, hash_, digest = record.seq, record.hash, digest_of(record)
        elif link is not None:
            seq, hash_, digest = link.seq, link.hash, link.digest
        flaw = self._compare(record, seq, hash_, digest)
        if flaw is not None:
            self.flaw(seq, *flaw)
        if seq <= self.at.seq:
            return
        kept = line if record is not None else None
        self.items.append(Item(seq=seq, hash=hash_, digest=digest, proven=flaw is None, line=kept, record=record))
        self._hashes[seq] = hash_
        self.at = At(seq=seq, hash=hash_)

    def _compare(self, record: Record | None, seq: int, hash_: str, digest: str) -> tuple[str, str] | None:
        if seq < self.at.seq + 1:
            return Reason.REPEATED.value, f"seq {self.at.seq + 1} was expected here"
        if seq > self.at.seq + 1:
            return Reason.MISSING.value, f"seq {self.at.seq + 1} was expected here"
        if record is None:
            if linked(self.at.hash, digest) != hash_:
                return Reason.LINK.value, f"with its digest and {self.at.hash} before it, it doesn't hash to {hash_}"
            return None
        if record.chain != self._chain:
            return Reason.OTHER_CHAIN.value, f"it says chain `{record.chain[:64]}`"
        if (should := linked(record.prev, digest)) != hash_:
            return Reason.HASH.value, f"content hashes to {should}, not {hash_}"
        if record.prev != self.at.hash:
            return Reason.LINK.value, f"it links to {record.prev}, the record before it has {self.at.hash}"
        return None

    def signed(self, line: bytes, keys: Mapping[str, PublicKey], hash_of: Callable[[int], str | None]) -> Head | None:
        """Return a head if it vouches for what has come."""
        try:
            head = read_head(line)
        except AuditError as error:
            self.flaw(self.at.seq, Reason.HEAD_UNREADABLE.value, str(error)[:200])
            return None
        key = keys.get(head.key)
        if head.chain != self._chain:
            self.flaw(head.seq, Reason.HEAD_UNREADABLE.value, f"it speaks of chain `{head.chain[:64]}`")
        elif key is None or not key.verify(bytes.fromhex(head.sig), head_message(head)):
            self.flaw(head.seq, Reason.HEAD_SIGNATURE.value, f"not made with a key of the node (`{head.key[:16]}`)")
        elif head.seq > self.at.seq:
            self.flaw(
                head.seq, Reason.CUT.value, f"a head was signed for seq {head.seq}, the log ends at {self.at.seq}"
            )
        else:
            known = self._hashes.get(head.seq) or hash_of(head.seq)
            if known is None:
                return None  # too old to be judged
            if known == head.hash:
                return head
            self.flaw(head.seq, Reason.HEAD_HASH.value, f"the head says {head.hash}, the record {known}")
        return None
