"""G33: no step on an answer or a request of the Responses API is long, which says most things more than once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from checkstream.core import events as on
from checkstream.core.exchange.guard import Guard
from tests.hostile_responses import REQUESTS, STREAMS, WHOLE
from tests.responses import RESPONSES, request
from tests.watchdog import Step, answered, everything, guard_of, long_steps, steps

SIZE = 12_000
LONG = 900_000


def long_steps_of(events: Sequence[on.AnyEvent]) -> list[Step]:
    return long_steps(lambda: steps(guard_of(RESPONSES, everything()), events))


@pytest.mark.parametrize("name", STREAMS)
def test_g33_no_step_on_a_stream_of_responses_is_long(name: str) -> None:
    assert long_steps_of(answered(request(), STREAMS[name](SIZE), streaming=True)) == []


@pytest.mark.parametrize(
    "name",
    [
        "messages to edit, in the last word alone",
        "parts to edit, streamed",
        "a last word of tools",
        "events nobody knows",
    ],
)
def test_g33_no_step_on_a_stream_of_very_many_parts_is_long(name: str) -> None:
    """What is said once more of each, written and freed at the end, goes in steps, too."""
    assert long_steps_of(answered(request(), STREAMS[name](40_000), streaming=True)) == []


@pytest.mark.parametrize("name", WHOLE)
def test_g33_no_step_on_a_whole_response_is_long(name: str) -> None:
    assert long_steps_of(answered(request(stream=False), WHOLE[name](SIZE), streaming=False)) == []


@pytest.mark.parametrize("name", REQUESTS)
def test_g33_no_step_on_a_request_for_a_response_is_long(name: str) -> None:
    assert long_steps_of(answered(REQUESTS[name](SIZE), b"", streaming=True)) == []


def work_of(events: Sequence[on.AnyEvent]) -> int:
    guard = guard_of(RESPONSES, everything())
    assert isinstance(guard, Guard)
    for _ in steps(guard, events):
        pass
    return guard._course.checking.meter.spent


@pytest.mark.parametrize("name", ["unknown members", "a search of many members"])
def test_g10_what_members_of_items_say_is_read_once_in_a_stream_not_with_all_before_each(name: str) -> None:
    """The words of a list are read as one text, as in the whole answer: each was read with 256 characters before it."""
    streamed = [
        work_of(answered(request(), STREAMS[f"{name}, in the last word alone"](size), streaming=True))
        for size in (SIZE // 2, SIZE)
    ]
    assert streamed[1] < 2.6 * streamed[0]
    assert streamed[1] < 12 * SIZE


@pytest.mark.nightly
@pytest.mark.parametrize("name", STREAMS)
def test_g33_no_step_on_a_long_stream_of_responses_is_long(name: str) -> None:
    assert long_steps_of(answered(request(), STREAMS[name](LONG), streaming=True)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", WHOLE)
def test_g33_no_step_on_a_long_whole_response_is_long(name: str) -> None:
    assert long_steps_of(answered(request(stream=False), WHOLE[name](LONG), streaming=False)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", REQUESTS)
def test_g33_no_step_on_a_long_request_for_a_response_is_long(name: str) -> None:
    assert long_steps_of(answered(REQUESTS[name](LONG), b"", streaming=True)) == []
