"""What operators see of a running process: logs and metrics. It decides nothing and holds no text of callers."""

from __future__ import annotations

from checkstream.telemetry.logs import Log, open_log
from checkstream.telemetry.metrics import CONTENT_TYPE, SPECS, Metrics

__all__ = ["CONTENT_TYPE", "SPECS", "Log", "Metrics", "open_log"]
