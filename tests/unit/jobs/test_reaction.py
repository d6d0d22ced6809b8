from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import JobInvalid
from checkstream.jobs.exchange import Exchange
from checkstream.jobs.reaction import Reaction, is_high, react, read_webhook_job
from checkstream.jobs.terms import Result
from tests.jobs_store import job

EXCHANGE = Exchange(stream="s1", route="chat", surface="x", answer="secret words", conversation="c" * 64)
ALL = Reaction(high=70, on_high=("metric", "log", "webhook", "marker"), marker_s=60)


def result(risk: float) -> Result:
    return Result(stream="s1", route="chat", scorer="watchdog", version="1", risk=risk, report=b"{}", at_ms=1000)


def test_a_high_risk_calls_the_webhook_and_marks_the_conversation() -> None:
    (call,), marker = react(ALL, EXCHANGE, result(70))
    assert (call.kind, call.stream, call.id) == ("webhook", "s1", "webhook:s1:watchdog:1")
    assert b"secret" not in call.body
    route, notice = read_webhook_job(call)
    assert route == "chat"
    assert (notice.stream, notice.risk, notice.at_ms) == ("s1", 70, 1000)
    assert marker is not None
    assert (marker.conversation, marker.expires_ms) == ("c" * 64, 61_000)


def test_from_a_risk_below_nothing_follows() -> None:
    assert react(ALL, EXCHANGE, result(69.9)) == ((), None)
    assert not is_high(ALL, result(69.9))


def test_a_conversation_without_a_name_is_not_marked() -> None:
    nameless = Exchange(stream="s1", route="chat", surface="x", answer="")
    assert react(ALL, nameless, result(90))[1] is None
    assert react(Reaction(), EXCHANGE, result(90)) == ((), None)


@given(st.binary(max_size=100))
def test_any_other_body_of_a_webhook_is_refused(body: bytes) -> None:
    with pytest.raises(JobInvalid, match="can't be read"):
        read_webhook_job(job(1, body=body))
