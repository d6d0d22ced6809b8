"""What happens now, and what is in force. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.console.totals import Moved, Quantiles, Ring
from checkstream.core.terms import keeps_back
from checkstream.proxy.health import Status

_SHARES = (0.5, 0.95, 0.99)
_TIMES = (
    ("checkstream_added_ttft_seconds", "Added before the first text"),
    ("checkstream_hold_seconds", "Held, of text that was sent"),
    ("checkstream_ingress_seconds", "Checks of a prompt"),
)
_ROWS = 200


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rule fired."""

    rule: str
    action: str
    stage: str
    mode: str
    count: float


class Took(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took."""

    what: str
    quantiles: Quantiles


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How often something happened."""

    what: str
    count: float


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a chart; None where nothing is known."""

    name: str
    values: tuple[float | None, ...]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over time."""

    title: str
    unit: str
    at: tuple[float, ...]
    """Ends of the parts, seconds since 1970."""
    lines: tuple[Line, ...]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What happens now, and what is in force."""

    status: Status
    listen: str
    """Where callers connect."""
    seconds: float
    """How far back the counts reach."""
    requests: float
    failed: float
    """Answered with 5xx."""
    refused: float
    """Answered with 4xx."""
    kept_prompts: float
    """Rules that kept text of prompts from going on."""
    kept_answers: float
    exchanges: tuple[Counted, ...]
    fired: tuple[Fired, ...]
    more_fired: int
    times: tuple[Took, ...]
    degraded: tuple[Counted, ...]
    unscanned: tuple[Counted, ...]
    upstream: tuple[Counted, ...]
    tokens_in: float
    tokens_out: float
    charts: tuple[Chart, ...]

    @property
    def per_minute(self) -> float:
        """Requests."""
        return self.requests * 60 / self.seconds if self.seconds else 0.0

    @property
    def quiet(self) -> bool:
        """Nobody has asked anything."""
        return not self.requests


def overview(status: Status, ring: Ring, listen: str) -> Overview:
    """Return the view of a moment."""
    moved = ring.moved()
    fired = fired_of(moved)
    kept = [each for each in fired if each.mode == "enforce" and keeps_back(each.action, each.stage)]
    return Overview(
        status=status,
        listen=listen,
        seconds=moved.seconds,
        requests=moved.total("checkstream_requests_total"),
        failed=moved.total("checkstream_requests_total", lambda labels: labels["status"].startswith("5")),
        refused=moved.total("checkstream_requests_total", lambda labels: labels["status"].startswith("4")),
        kept_prompts=sum(each.count for each in kept if each.stage == "ingress"),
        kept_answers=sum(each.count for each in kept if each.stage != "ingress"),
        exchanges=_counted(moved, "checkstream_exchanges_total", "outcome"),
        fired=tuple(fired[:_ROWS]),
        more_fired=max(len(fired) - _ROWS, 0),
        times=tuple(Took(what=what, quantiles=moved.quantiles(name, _SHARES)) for name, what in _TIMES),
        degraded=_counted(moved, "checkstream_degraded_total", "reason"),
        unscanned=_counted(moved, "checkstream_unscanned_total", "stage"),
        upstream=_counted(moved, "checkstream_upstream_errors_total", "kind"),
        tokens_in=moved.total("checkstream_tokens_total", lambda labels: labels["direction"] == "in"),
        tokens_out=moved.total("checkstream_tokens_total", lambda labels: labels["direction"] == "out"),
        charts=charts_of(ring),
    )


def fired_of(moved: Moved) -> list[Fired]:
    """Return the rules that fired, the most frequent first."""
    found = moved.by_label("checkstream_verdicts_total", "rule_id", "action", "stage", "mode")
    rows = [
        Fired(rule=rule, action=action, stage=stage, mode=mode, count=count)
        for (rule, action, stage, mode), count in found.items()
    ]
    return sorted(rows, key=lambda row: (-row.count, row.rule, row.action, row.stage))


def _counted(moved: Moved, name: str, label: str) -> tuple[Counted, ...]:
    found = moved.by_label(name, label)
    rows = [Counted(what=what, count=count) for (what,), count in found.items()]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.what)))


def charts_of(ring: Ring) -> tuple[Chart, ...]:
    """Return the charts of the last hour; none where there is not yet a line to be drawn."""
    slots = list(ring.slots())
    if len(slots) < 2:
        return ()
    at = tuple(slot.start + slot.seconds for slot in slots)

    def rate(slot: Moved, count: float) -> float:
        return round(count * 60 / slot.seconds, 3) if slot.seconds else 0.0

    def kept(labels: Mapping[str, str]) -> bool:
        return labels["mode"] == "enforce" and keeps_back(labels["action"], labels["stage"])

    traffic = Chart(
        title="Requests",
        unit="a minute",
        at=at,
        lines=(
            Line(name="requests", values=tuple(rate(s, s.total("checkstream_requests_total")) for s in slots)),
            Line(name="kept back", values=tuple(rate(s, s.total("checkstream_verdicts_total", kept)) for s in slots)),
        ),
    )
    waits = Chart(
        title="Time, 95th percentile",
        unit="ms",
        at=at,
        lines=tuple(
            Line(name=name, values=tuple(_ms(slot.quantiles(metric, (0.95,)).at[0]) for slot in slots))
            for name, metric in (("held", "checkstream_hold_seconds"), ("added", "checkstream_added_ttft_seconds"))
        ),
    )
    return traffic, waits


def _ms(value: float | None) -> float | None:
    if value is None:
        return None
    return round(min(value, 5.0) * 1000, 3)  # beyond the last bin nothing is known but that it is more
