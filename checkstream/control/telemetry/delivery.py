"""What a node tells of its audit chains: the form in which records, or their links alone, leave it. Pure.

A delivery has runs, and a run is a stretch of one chain: it begins right behind a place (`after`) and goes on without a
hole. Of each record comes the line as it stands in the log, byte for byte, or, where its content is to stay, what the
chain's format needs of it: `{"digest": ..., "hash": ..., "seq": ...}`. So whoever gets a run can check every link of
it (see `audit.chain`), and the content of what came whole.

The receiver's position in a chain decides: a run that doesn't begin there is not taken, and the answer says where it
would. So what is sent twice counts once, and whoever sends needs no memory of what has arrived.

On the wire a delivery is JSON in one frame of Zstandard (RFC 8878).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.audit.chain import GENESIS

MOST_BYTES = 8_388_608
"""Of a delivery, unpacked; packed it may have as many."""
MOST_ITEMS = 20_000
"""Records of a delivery."""
MOST_CHAINS = 4096
"""Chains of a node."""
_MOST_COUNTS = 50_000

Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Chain = Annotated[str, Meta(pattern=r"\A[0-9a-z]{1,64}\Z")]
Seq = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Text = Annotated[str, Meta(max_length=500)]
Sum = Annotated[int, Meta(ge=0, le=2**45)]
Whole = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a delivery; unknown members are refused."""


class At(_Form, frozen=True):
    """A place in a chain: behind record `seq`, whose hash is `hash`."""

    seq: Seq = 0
    """0: before the first record."""
    hash: Hash = GENESIS


class Link(_Form, frozen=True, omit_defaults=False):
    """A record whose content stays on its node."""

    digest: Hash
    """Of its content (`audit.chain.record_digest`)."""
    hash: Hash
    seq: Seq


class Skipped(_Form, frozen=True):
    """Records between the receiver's position and the first of a run, which don't come."""

    since: At
    """The receiver's position."""
    reason: Text
    """Why they don't."""


class Count(_Form, frozen=True):
    """What exchanges of one minute and route came to together."""

    minute: Annotated[int, Meta(ge=0, le=2**32)]
    """Since 1970, by the node's clock."""
    route: Text
    name: Text
    """What is counted; `minutes` has the list."""
    count: Sum


class Run(_Form, frozen=True):
    """A stretch of a chain."""

    chain: Chain
    after: At
    """The record before the first of `items`."""
    items: Annotated[tuple[msgspec.Raw, ...], Meta(max_length=MOST_ITEMS)] = ()
    """Each a record of the log, or a `Link`."""
    heads: Annotated[tuple[msgspec.Raw, ...], Meta(max_length=4)] = ()
    """The newest signed head of the chain, where `items` have its record, or the log has none such, as it stands in its
    file."""
    counts: Annotated[tuple[Count, ...], Meta(max_length=_MOST_COUNTS)] = ()
    """Of the exchanges of which only links come and which may be counted."""
    skipped: Skipped | None = None
    ends: At | None = None
    """The log's last record, where it has no such record as the receiver's position: it was cut, or put in place of
    another. `seq` 0: there is no file of the chain any more."""


class Delivery(_Form, frozen=True):
    """What a node says at once."""

    number: Whole
    """Greater than any before: what has been sent once counts once."""
    time_ms: Annotated[int, Meta(ge=0, le=2**48)]
    """Now, by the node's clock, milliseconds since 1970."""
    keys: Annotated[tuple[Hash, ...], Meta(max_length=16)] = ()
    """Public keys that sign heads here: 32 raw bytes each, in hex."""
    waiting: Whole = 0
    """Bytes of the log that are still to come."""
    runs: Annotated[tuple[Run, ...], Meta(max_length=MOST_CHAINS)] = ()


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver answers: where it stands."""

    number: int
    """Of the last delivery that it took."""
    positions: dict[str, At]
    """Of each chain of the node: what has arrived for good. The next run begins behind it."""


def read_delivery(content: bytes) -> Delivery:
    """Read a delivery, unpacked.

    Raises:
        msgspec.DecodeError: it is none; says where.
    """
    return msgspec.json.decode(content, type=Delivery)
