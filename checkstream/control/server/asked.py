"""What people ask of the control server, and the bounds of it: the API reads bodies by these forms, pages their own."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.control.review.terms import Word
from checkstream.control.server.allowed import Kind

Name = Annotated[str, Meta(max_length=64)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
_Value = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[!-~]+\Z")]
_Reason = Annotated[str, Meta(max_length=1000)]
_Number = Annotated[int, Meta(ge=1, le=2**53 - 1)]


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request; unknown fields are refused."""


class RolloutAsked(Asked, frozen=True, kw_only=True):
    """Which bundle a fleet is to have."""

    fleet: Name
    version: Annotated[str, Meta(min_length=1, max_length=200)]
    """As people call it, or eight or more digits of its digest; one that is signed now."""
    reason: _Reason = ""


class RolloutMoved(Asked, frozen=True, kw_only=True):
    """Which rollout, and why."""

    rollout: _Number
    reason: _Reason = ""


class AllowanceAsked(Asked, frozen=True, kw_only=True):
    """What nodes of a fleet may be, or may no longer."""

    fleet: Name
    kind: Kind
    value: _Value
    allowed: bool = True
    reason: _Reason = ""


class SilenceAsked(Asked, frozen=True, kw_only=True):
    """What is to be muted."""

    pattern: Annotated[str, Meta(min_length=1, max_length=200)]
    """Of keys of alerts, with `*` and `?`: `node_stale:shop/eu-*`."""
    seconds: Annotated[int, Meta(ge=1, le=30 * 86_400)]
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    """Why; others read it."""


class LabelAsked(Asked, frozen=True, kw_only=True):
    """What somebody says of an item of the review."""

    item: Id
    word: Word
    note: Annotated[str, Meta(max_length=500)] = ""
    """Why; others read it."""


class FlagAsked(Asked, frozen=True, kw_only=True):
    """What people should look at."""

    stream: Id
    rule: Id


class EndAsked(Asked, frozen=True, kw_only=True):
    """Which silence ends."""

    id: _Number


_Path = Annotated[str, Meta(min_length=1, max_length=200)]


class DraftAsked(Asked, frozen=True, kw_only=True):
    """A new draft."""

    title: Annotated[str, Meta(min_length=1, max_length=120)]
    reason: _Reason = ""
    files: Annotated[dict[_Path, str | None], Meta(max_length=500)] = {}
    """Path -> text that differs from the sources; null: the file goes."""


class DraftChanged(Asked, frozen=True, kw_only=True):
    """What is changed of a draft."""

    draft: _Number
    version: _Number
    """The one that it was changed from: nobody overwrites what somebody else has just written."""
    files: Annotated[dict[_Path, str | None], Meta(min_length=1, max_length=500)]
    """Path -> text; null: the file goes."""
    reason: _Reason = ""


class DraftMoved(Asked, frozen=True, kw_only=True):
    """What becomes of a draft."""

    draft: _Number
    move: Literal["propose", "approve", "refuse", "withdraw", "export"]
    digest: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    """Of the content that is meant."""
    reason: _Reason = ""


class DraftRebased(Asked, frozen=True, kw_only=True):
    """Which draft takes the sources over as they are now."""

    draft: _Number
    version: _Number
