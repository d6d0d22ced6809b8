"""Reads the scores of a day from metrics, as a proxy's admin listener shows them, or as somebody has saved them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from checkstream.errors import MetricsUnreadable
from checkstream.telemetry.drift import Key, histograms

_TODAY, _REFERENCE = "checkstream_score_day", "checkstream_score_reference"


class Day(msgspec.Struct, frozen=True):
    """What the scores of a day are, and what they are held against."""

    today: dict[Key, list[float]]
    reference: dict[Key, list[float]]


def read_day(data: bytes, source: str) -> Day:
    """Read metrics.

    Args:
        data: In the Prometheus text format.
        source: Where they are from, for errors.

    Raises:
        MetricsUnreadable: they are none, not those of a proxy, or those of one that doesn't count by day.
    """
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise MetricsUnreadable(f"{source}: that is no text; give metrics as `GET /metrics` answers") from error
    if not any(line.startswith("# HELP checkstream_") for line in lines):
        raise MetricsUnreadable(f"{source}: these are no metrics of checkstream; give the admin listener of a proxy")
    if not any(line.startswith(f"# HELP {_TODAY} ") for line in lines):
        raise MetricsUnreadable(f"{source}: this version counts no scores by day; update the proxy")
    return Day(*(histograms(_samples(name, lines, source)) for name in (_TODAY, _REFERENCE)))


def _samples(name: str, lines: Iterable[str], source: str) -> list[tuple[dict[str, str], float]]:
    own = "\n".join(line for line in lines if line.startswith(f"{name}{{"))
    try:
        families = list(text_string_to_metric_families(own))
        return [(sample.labels, sample.value) for family in families for sample in family.samples]
    except (ValueError, LookupError) as error:  # the library's parser says no more than that
        raise MetricsUnreadable(f"{source}: a line of `{name}` can't be read; save the metrics anew") from error
