"""From what holds now to what is told: a trouble's beginning, that it lasts, that it is over. Pure.

A trouble that comes and goes within `after_s` is told to nobody, and one that is gone for less than `calm_s` is still
there: what flutters makes one notice and not fifty. A silence mutes what is new and what is repeated. It doesn't mute
that a trouble is over which somebody was told of, or it would stay open in their books.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from checkstream.control.alerts.conditions import Finding


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """When notices come, in seconds."""

    after_s: float = 120.0
    """A trouble that is younger is not told. One that pages is told at once."""
    calm_s: float = 300.0
    """For how long nothing of a trouble must be seen until it is over."""
    again_s: float = 4 * 3600.0
    """A trouble that lasts is told again after this."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that stands, from its beginning to its end."""

    finding: Finding
    """As it was last seen."""
    since_s: float
    seen_s: float
    told_s: float | None = None
    """When somebody was last told; None: nobody was."""


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody wants to hear of these until then."""

    pattern: str
    """Of keys, with `*` and `?`: `node_stale:eu-*`."""
    until_s: float
    by: str
    """Who asked for it."""
    reason: str

    def covers(self, key: str, now_s: float) -> bool:
        """Tell whether a trouble is muted."""
        return now_s < self.until_s and fnmatchcase(key, self.pattern)


Event = Literal["fired", "reminded", "recovered"]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is told."""

    event: Event
    finding: Finding
    since_s: float
    """When the trouble began, seconds since 1970."""
    at_s: float
    """When this was said."""

    @property
    def id(self) -> str:
        """The same for the same notice, however often it is sent."""
        return f"{self.finding.key}:{self.since_s:.0f}:{self.event}:{self.at_s:.0f}"


def advance(
    standing: Mapping[str, Trouble],
    found: Iterable[Finding],
    now_s: float,
    pace: Pace,
    silences: Sequence[Silence] = (),
) -> tuple[dict[str, Trouble], tuple[Notice, ...]]:
    """Return what stands now, by key, and what is told of it, in the order of the keys.

    Args:
        standing: What stood at the last look.
        found: What holds now.
        now_s: Seconds since 1970. A clock that was set back makes nothing end earlier.
        pace: When notices come.
        silences: What nobody wants to hear of.
    """
    holds = {finding.key: finding for finding in found}
    kept: dict[str, Trouble] = {}
    notices: list[Notice] = []
    for key in sorted(standing.keys() | holds.keys()):
        if key in holds:
            muted = any(silence.covers(key, now_s) for silence in silences)
            trouble, event = _seen(standing.get(key), holds[key], now_s, pace, muted=muted)
            kept[key] = trouble
        else:
            trouble, event = standing[key], None
            if now_s - trouble.seen_s < pace.calm_s:
                kept[key] = trouble
            elif trouble.told_s is not None:
                event = "recovered"
        if event is not None:
            notices.append(Notice(event=event, finding=trouble.finding, since_s=trouble.since_s, at_s=now_s))
    return kept, tuple(notices)


def _seen(
    before: Trouble | None, finding: Finding, now_s: float, pace: Pace, *, muted: bool
) -> tuple[Trouble, Event | None]:
    """Return a trouble that holds now, and whether somebody is told."""
    since_s = now_s if before is None else before.since_s
    told_s = None if before is None else before.told_s
    event: Event | None = None
    if told_s is None and (finding.severity == "page" or now_s - since_s >= pace.after_s):
        event = "fired"
    elif told_s is not None and now_s - told_s >= pace.again_s:
        event = "reminded"
    if muted:
        event = None
    return Trouble(finding=finding, since_s=since_s, seen_s=now_s, told_s=told_s if event is None else now_s), event
