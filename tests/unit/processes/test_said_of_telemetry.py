from __future__ import annotations

import io
import json
from typing import Any

from checkstream.control.telemetry.shipper import Shipped
from checkstream.processes.following import Said
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics


def test_what_deliveries_come_to_is_counted_each_time_and_said_when_it_is_news() -> None:
    written, metrics = io.BytesIO(), Metrics()
    said = Said(open_log("json", written), metrics)
    away: dict[str, Any] = {"shipping": "unreachable", "reason": "it can't be reached", "waiting": 700, "wait_s": 1.0}
    for each in (
        Shipped(shipping="sent", records=5, waiting=0, wait_s=1.0),
        Shipped(shipping="idle", waiting=0, wait_s=1.0),
        Shipped(**away),
        Shipped(**away),
        Shipped(shipping="refused", reason="who are you", waiting=900, wait_s=1.0),
        Shipped(shipping="sent", records=7, skipped=3, waiting=100, wait_s=0.0),
        Shipped(shipping="idle", waiting=10, wait_s=1.0),
    ):
        said.hear_shipped(each)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("telemetry.unreachable", "warning"), ("telemetry.refused", "error"), ("telemetry.skipped", "error"),
        ("telemetry.sent", "info"),
    ]  # fmt: skip
    assert (lines[0]["reason"], lines[0]["waiting_bytes"], lines[2]["records"]) == ("it can't be reached", 700, 3)
    shown = metrics.render().decode()
    for line in (
        'checkstream_telemetry_attempts_total{outcome="sent"} 2.0',
        'checkstream_telemetry_attempts_total{outcome="unreachable"} 2.0',
        'checkstream_telemetry_attempts_total{outcome="refused"} 1.0',
        'checkstream_telemetry_records_total{outcome="sent"} 12.0',
        'checkstream_telemetry_records_total{outcome="skipped"} 3.0',
        "checkstream_telemetry_waiting_bytes 10.0",
    ):
        assert line in shown
