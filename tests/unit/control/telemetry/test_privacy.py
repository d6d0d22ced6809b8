from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.audit.chain import Record, read
from checkstream.audit.entries import AnyEntry, PassEntry, StreamEntry
from checkstream.config import Told
from checkstream.control.telemetry import privacy as module
from checkstream.control.telemetry.delivery import At
from checkstream.control.telemetry.minutes import BOUNDS_MS, Minutes, bound_of, minute_of, moment_of
from checkstream.control.telemetry.privacy import STRICTNESS, Privacy, run_of
from checkstream.control.telemetry.records import counted_of, exchange_of
from tests.records import record, rescored, seal_all, start, stream, verdict

_MODES = st.sampled_from(STRICTNESS)
_SAID = st.none() | _MODES


@given(_MODES, _SAID, _SAID)
def test_where_route_and_caller_both_say_something_the_one_that_tells_less_counts(
    usual: Told, route: Told | None, caller: Told | None
) -> None:
    privacy = Privacy(
        usual=usual, routes={} if route is None else {"r": route}, callers={} if caller is None else {"c": caller}
    )
    said = [mode for mode in (route, caller) if mode is not None]
    assert privacy.of("r", "c") == (min(said, key=STRICTNESS.index) if said else usual)
    assert privacy.of("other", None) == usual


def pairs(entries: Sequence[AnyEntry]) -> list[tuple[bytes, Record]]:
    return [(one.line[:-1], read(one.line[:-1])) for one in seal_all(list(entries))]


def items(entries: Sequence[AnyEntry], privacy: Privacy) -> list[Any]:
    run = run_of("c1", At(), pairs(entries), privacy)
    return [json.loads(bytes(item)) for item in run.items]


def test_of_a_private_exchange_nothing_leaves_but_two_hashes_and_its_number() -> None:
    passed = PassEntry(stream="p", route="models", caller=None, method="GET", path="/v1/models", status=200)
    entries: list[AnyEntry] = [start(), stream(1), passed]
    modes: tuple[Literal["none", "aggregate"], ...] = ("none", "aggregate")
    for mode in modes:
        first, *others = items(entries, Privacy(usual=mode))
        assert first["kind"] == "start", "without it nobody could tell silence from an end"
        assert [sorted(other) for other in others] == [["digest", "hash", "seq"]] * 2
    assert [item["kind"] for item in items(entries, Privacy())] == ["start", "stream", "pass"]


def test_what_may_be_counted_is_and_what_is_not_to_be_is_not() -> None:
    entries = [stream(1, route="a"), stream(2, route="b"), stream(3, route="c")]
    privacy = Privacy(routes={"a": "aggregate", "b": "none"})
    counts = run_of("c1", At(), pairs(entries), privacy).counts
    assert {count.route for count in counts} == {"a"}
    assert {count.name: count.count for count in counts} == {
        "exchanges": 1, "outcome:complete": 1, "action:redact": 1, "kept_answers": 1, "held:15": 1, "held_us": 12_500,
        "rule:PII-001": 1, "confidence:PII-001": 930_000, "confidence2:PII-001": 864_900,
    }  # fmt: skip
    assert {count.minute for count in counts} == {minute_of("2026-01-02T03:04:05.678Z")}


def test_an_answer_that_was_judged_again_is_as_private_as_its_exchange() -> None:
    entries = [
        rescored(1, "a"),
        rescored(2, "a", violated=True),
        rescored(3, "a", violated=True, cutoff_ms=500.001),
        msgspec.structs.replace(rescored(4, "a"), result="unjudged"),
        rescored(5, "b", violated=True),
        rescored(6, "c", violated=True),
    ]
    privacy = Privacy(routes={"a": "aggregate", "b": "none"})
    run = run_of("c1", At(), pairs(entries), privacy)
    assert {(count.route, count.name): count.count for count in run.counts} == {
        ("a", "rescored"): 3, ("a", "violated"): 2, ("a", "unjudged"): 1, ("a", "cutoff:1000"): 1,
    }  # fmt: skip
    told = [json.loads(bytes(item)) for item in run.items]
    assert [sorted(each) for each in told[:5]] == [["digest", "hash", "seq"]] * 5
    assert (told[5]["kind"], told[5]["body"]["rules"]) == ("rescored", ["BLUE-1"])
    hidden = Privacy(callers={"app1": "none"})
    assert items(entries[:1], hidden)[0].keys() == {"digest", "hash", "seq"}


@pytest.mark.parametrize(
    "body",
    [
        *({"cutoff_ms": ms} for ms in ("nan", "inf", "-1.000000", "1e300", "x", [1])),
        *({"result": result} for result in ("", "bad", 7, None)),
        {"rules": "BLUE-1"},
        {"route": None},
    ],
)
def test_what_no_worker_says_of_an_answer_counts_for_nothing(body: dict[str, object]) -> None:
    (one,) = seal_all([rescored(violated=True, cutoff_ms=40.0)])
    sound = read(one.line[:-1])
    assert counted_of(sound) is not None
    assert counted_of(msgspec.structs.replace(sound, body={**sound.body, **body})) is None


def test_a_record_that_is_very_long_leaves_as_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 10)
    (item,) = items([stream(1)], Privacy())
    assert sorted(item) == ["digest", "hash", "seq"]


def changed(**more: object) -> Record:
    (one,) = seal_all([stream(1)])
    found = read(one.line[:-1])
    return msgspec.structs.replace(found, body={**found.body, **more})


@pytest.mark.parametrize(
    "body",
    [{"route": 7}, {"route": None}, {"caller": ["x"]}, {"caller": 1}],
)
def test_an_exchange_of_which_nobody_can_say_whose_it_is_stays(body: dict[str, object]) -> None:
    odd = changed(**body)
    run = run_of("c1", At(), [(b'{"body":{', odd)], Privacy())
    assert sorted(json.loads(bytes(run.items[0]))) == ["digest", "hash", "seq"]
    assert run.counts == ()


@pytest.mark.parametrize("held", ["nan", "inf", "-1.000000", "1e300", "x", None, [1]])
def test_times_that_are_none_make_no_exchange(held: object) -> None:
    (one,) = seal_all([stream(1)])
    told = dict(read(one.line[:-1]).body)
    for name in ("held_ms", "checked_ms"):
        odd = {**told, "record": {**told["record"], name: held}}  # type: ignore[dict-item]
        assert exchange_of(changed(**odd)) is None
    verdicts = [{**each, "latency_ms": held} for each in told["record"]["verdicts"]]  # type: ignore[index]
    assert exchange_of(changed(**{**told, "record": {**told["record"], "verdicts": verdicts}})) is None  # type: ignore[dict-item]


def test_what_is_of_no_exchange_is_none() -> None:
    (one,) = seal_all([start()])
    assert exchange_of(read(one.line[:-1])) is None


@given(st.floats(0, 1e9))
def test_a_time_is_counted_at_the_bound_above_it(held_ms: float) -> None:
    bound = float(bound_of(held_ms))
    below = [other for other in map(float, BOUNDS_MS) if other < bound]
    assert max(below, default=-1.0) < held_ms <= bound


def test_shadows_and_rules_that_the_record_doesn_t_list_are_counted_by_their_names() -> None:
    shadow = msgspec.structs.replace(verdict("S-1"), mode="shadow")
    told = msgspec.structs.replace(record(verdicts=(verdict("A-1"), verdict("A-1"), shadow)), fired={"A-1": 9, "B": 2})
    minutes = Minutes()
    for _ in range(2):
        minutes.add(5, StreamEntry(stream="s", route="r", caller=None, record=told))
    found = {name: count for minute, route, name, count in minutes if (minute, route) == (5, "r")}
    assert found["rule:A-1"] == 18
    assert found["rule:B"] == 4
    assert found["shadow:S-1"] == 2
    assert found["confidence:A-1"] == 4 * 930_000


@pytest.mark.parametrize(
    "time", ["", "yesterday", "2026-01-02T03:04:05", "9999-99-99T00:00:00Z", "0001-01-01T00:00:00+23:59"]
)
def test_what_is_no_moment_is_none(time: str) -> None:
    assert moment_of(time) in (None, 0)
