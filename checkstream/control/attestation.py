"""What a node says of itself to the control server, and what it is told to have. Pure: values and their bounds."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Salt = Annotated[str, Meta(pattern=r"\A[0-9a-f]{0,64}\Z")]
_Share = Annotated[int, Meta(ge=1, le=99)]
_Maybe = Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")]
_Word = Annotated[str, Meta(max_length=200)]
_Said = Annotated[str, Meta(max_length=1000)]
_Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
_Counts = Annotated[tuple[_Count, ...], Meta(max_length=64)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields that are not known are refused."""


class Figures(_Strict, frozen=True, kw_only=True):
    """What a proxy has counted under the bundle in force; these only grow until the next run begins at 0."""

    run: Annotated[str, Meta(min_length=1, max_length=64)]
    """Names the run of the proxy under this bundle: in another run they begin at 0."""
    age_s: _Count = 0
    """How long ago that run began."""
    exchanges: _Count = 0
    refusals: _Count = 0
    """Prompts that were refused."""
    stops: _Count = 0
    """Answers that were stopped."""
    failures: _Count = 0
    """Exchanges that a failure has ended: of a detector, of the model server, of the proxy."""
    times: Annotated[dict[Annotated[str, Meta(max_length=64)], _Counts], Meta(max_length=16)] = {}
    """What took how long -> how often, by bin, each bin for longer than the one before: `policy`, the guard over one
    exchange; `check`, one check of a detector."""
    scores: Annotated[dict[Annotated[str, Meta(max_length=200)], _Counts], Meta(max_length=256)] = {}
    """`classifier stage` -> scores by bin, as `checkstream_score` has them."""


class Offered(_Strict, frozen=True, kw_only=True):
    """A bundle that the signed state names, so that a node can be told to have it."""

    digest: _Digest
    """SHA-256 of its `bundle.json`."""
    version: _Word


class Candidate(_Strict, frozen=True, kw_only=True):
    """A second bundle, by which a share of a node's callers are answered; the others are by the first, its base."""

    bundle: _Digest
    version: _Word = ""
    share: _Share
    """Percent of the callers."""
    salt: _Salt = ""
    """Goes into the hash that chooses them, so that another rollout begins with others."""

    def same(self, other: Candidate) -> bool:
        """Tell whether the same callers are answered by the same bundle, whatever people call that."""
        return (self.bundle, self.share, self.salt) == (other.bundle, other.share, other.salt)


class RunningCandidate(_Strict, frozen=True, kw_only=True):
    """What a proxy has in force for a share of its callers."""

    wanted: Candidate
    figures: Figures | None = None
    """What has been counted of them; null: nothing is known yet."""


class Running(_Strict, frozen=True, kw_only=True, omit_defaults=True):
    """What a proxy has in force: not only fetched, callers are answered by it.

    What is as it is without being said is not: a server that doesn't know of candidates reads what has none.
    """

    bundle: _Maybe = ""
    """Digest of the bundle; empty: there is none."""
    bundle_version: _Word = ""
    configuration: _Digest
    """SHA-256 of the configuration."""
    programs: Annotated[tuple[_Digest, ...], Meta(max_length=256)] = ()
    """Hashes of the compiled programs."""
    models: Annotated[dict[_Word, _Digest], Meta(max_length=256)] = {}
    """Model -> SHA-256 of what its files are."""
    figures: Figures | None = None
    """What has been counted; null: nothing is known yet. With a candidate, what the other callers' exchanges were."""
    candidate: RunningCandidate | None = None
    """The bundle of a share of the callers; null: all are answered by the same."""
    left_out: _Said = ""
    """Why there is none though there should be one; empty: there is one, or there should be none."""

    def has(self, desired: Desired) -> bool:
        """Tell whether this is what a node was to have."""
        mine, theirs = None if self.candidate is None else self.candidate.wanted, desired.candidate
        beside = mine is theirs if mine is None or theirs is None else mine.same(theirs)
        return not desired.bundle or (self.bundle == desired.bundle and beside)


class Attestation(_Strict, frozen=True, kw_only=True):
    """What a node is and has. The request that carries it is signed with the node's key."""

    sequence: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    """Greater than that of any attestation before: an old one counts no more."""
    time: _Word
    """The node's clock; only told, nothing follows from it."""
    version: _Word
    """Of the package."""
    package: _Digest
    """SHA-256 of the files of the installed package."""
    image: _Word = ""
    """Digest of the container image; empty: none is known."""
    running: Running
    """What its proxy has in force; before it has started, what it is about to start with."""
    offered: Annotated[tuple[Offered, ...], Meta(max_length=32)] = ()
    """The bundles that the signed state names, the newest first."""
    error: _Said = ""
    """Why what is wanted is not in force, as far as the node knows; empty: nothing is wrong."""


class Desired(_Strict, frozen=True, kw_only=True, omit_defaults=True):
    """What a node is to have in force."""

    bundle: _Maybe = ""
    """Digest; empty: what it has, whatever that is."""
    version: _Word = ""
    candidate: Candidate | None = None
    """Another bundle for a share of the callers. A proxy that doesn't know of such keeps what it has."""

    def __post_init__(self) -> None:
        """A candidate stands beside a base."""
        if self.candidate is not None and (not self.bundle or self.candidate.bundle == self.bundle):
            raise ValueError("a candidate needs another bundle beside it")
