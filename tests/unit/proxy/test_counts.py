"""What is counted and logged of exchanges: every answer, and no flood."""

from __future__ import annotations

import io
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.commands import Decided
from checkstream.core.terms import Channel, Stage, Verdict
from checkstream.errors import BodyTooLarge, CallerUnknown, RouteUnknown
from checkstream.proxy.counts import Counted, News
from checkstream.telemetry.logs import Log, _Sink
from checkstream.telemetry.metrics import Metrics
from tests.records import record

VERDICT = Verdict(
    action="redact", rule_id="R-1", policy="p", version="1", stage=Stage.INGRESS, channel=Channel("user"), mode="shadow"
)


class Lines(Log):
    """A log that keeps its lines."""

    def __init__(self) -> None:
        super().__init__(_Sink(io.BytesIO()), lambda _: b"", logging.DEBUG)
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def _say(self, number: int, level: str, event: str, fields: dict[str, Any]) -> None:
        assert number == logging.getLevelName(level.upper())
        self.lines.append((level, event, fields))

    def of(self, event: str) -> list[str]:
        return [level for level, name, _ in self.lines if name == event]


@pytest.fixture
def log() -> Lines:
    return Lines()


def test_every_answer_is_counted_by_route_and_status(log: Lines) -> None:
    counted = Counted(metrics := Metrics(), log)
    counts = counted.begun("s", "chat", None)
    counts.upstream_answered(429)
    counts.recorded(record())
    counts.ended(429)
    counted.refused("t", RouteUnknown("no"))
    counted.refused("t", CallerUnknown("no"))
    counted.refused("t", BodyTooLarge("no"), "chat")
    counted.crashed("t", ValueError(), "chat")
    counted.answered("chat", 204)
    counted.unheard(421, "host_not_allowed")
    text = metrics.render().decode()
    for line in (
        'checkstream_requests_total{route="chat",status="429"} 1.0',
        'checkstream_requests_total{route="-",status="404"} 1.0',
        'checkstream_requests_total{route="-",status="401"} 1.0',
        'checkstream_requests_total{route="chat",status="413"} 1.0',
        'checkstream_requests_total{route="chat",status="500"} 1.0',
        'checkstream_requests_total{route="chat",status="204"} 1.0',
        'checkstream_requests_total{route="-",status="421"} 1.0',
        'checkstream_upstream_responses_total{route="chat",status="429"} 1.0',
        'checkstream_exchanges_total{outcome="complete",route="chat"} 1.0',
    ):
        assert line in text


def test_g17_what_was_not_read_is_counted_by_stage_and_by_no_name_of_an_upstream(log: Lines) -> None:
    counts = Counted(metrics := Metrics(), log).begun("s", "chat", None)
    unread = ("ingress:image_url", "midstream:delta.a.data", "midstream:delta.b.data")
    counts.recorded(msgspec.structs.replace(record(), unscanned=unread))
    text = metrics.render().decode()
    assert 'checkstream_unscanned_total{stage="ingress"} 1.0' in text
    assert 'checkstream_unscanned_total{stage="midstream"} 1.0' in text
    assert "delta" not in text


def test_g38_pseudonyms_are_counted_and_none_is_named(log: Lines) -> None:
    counts = Counted(metrics := Metrics(), log).begun("s", "chat", None)
    counts.recorded(record())
    assert "checkstream_pseudonyms_total{" not in metrics.render().decode()
    counts.recorded(msgspec.structs.replace(record(), pseudonyms={"EMAIL": 2, "PERSON": 1}, restored=5, not_given=1))
    text = metrics.render().decode()
    for what, count in (("given", 3), ("restored", 5), ("not_given", 1)):
        assert f'checkstream_pseudonyms_total{{what="{what}"}} {count}.0' in text
    assert "EMAIL" not in text


def test_g37_a_log_names_fields_that_nobody_knows_that_were_not_read_and_that_are_gone_and_not_too_many(
    log: Lines,
) -> None:
    counts = Counted(Metrics(), log).begun("s", "chat", None)
    unknown = [f"ingress:field_{n}" for n in range(20)]
    told = msgspec.structs.replace(
        record(),
        scanned=("ingress:user", *unknown, "midstream:content", "midstream:extra:usage.note"),
        unscanned=("ingress:image_url",),
        removed=("chat_template",),
    )
    counts.recorded(told)
    counts.ended(200)
    (_, event, said), *_ = [line for line in log.lines if line[1] == "request.ended"]
    assert event == "request.ended"
    assert said["outcome"] == "complete"
    assert said["unknown_fields"] == [*unknown[:8], "13 more"]
    assert said["not_read"] == ["ingress:image_url"]
    assert said["removed_fields"] == ["chat_template"]
    counts.recorded(record())
    counts.ended(200)
    assert set(log.lines[-1][2]) == {"outcome", "stream", "route", "status", "seconds"}


def test_of_many_verdicts_all_are_counted_and_few_are_logged(log: Lines) -> None:
    counted = Counted(metrics := Metrics(), log)
    counts = counted.begun("s", "chat", None)
    for _ in range(300):
        counts.decided(Decided(VERDICT))
    counts.ended(200)
    assert 'action="redact",mode="shadow",policy="p",rule_id="R-1",stage="ingress"} 300.0' in metrics.render().decode()
    assert len(log.of("verdict")) == 16
    assert log.lines[-1][2]["verdicts"] == 300


def test_a_degradation_is_a_warning_once_a_minute_over_all_streams(log: Lines) -> None:
    counted = Counted(metrics := Metrics(), log)
    for number in range(50):
        counted.begun(str(number), "chat", None).degraded("check_over_budget")
    assert log.of("degraded").count("warning") == 1
    assert 'checkstream_degraded_total{reason="check_over_budget"} 50.0' in metrics.render().decode()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 50)), max_size=20))
def test_something_is_news_once_a_minute(said: list[tuple[str, float]]) -> None:
    news, now = News(), 0.0
    last: dict[str, float] = {}
    for name, after in said:
        now += after
        expected = name not in last or now - last[name] >= 60
        assert news.is_news(name, now) is expected
        if expected:
            last[name] = now
