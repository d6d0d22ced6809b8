"""G33: no step of reading, judging and writing a message of a tool or its server is long, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from checkstream.core import events as on
from checkstream.core.wire.mcp.surface import MCP
from tests.hostile_mcp import CALLS, RESULTS, STREAMS
from tests.mcp import call, event, request, said
from tests.watchdog import Step, answered, everything, guard_of, long_steps, steps

SIZE = 12_000
LONG = 900_000


def long_steps_of(events: Sequence[on.AnyEvent]) -> list[Step]:
    return long_steps(lambda: steps(guard_of(MCP, everything()), events))


def asked(name: str) -> bytes:
    return request("tools/list", {}) if "tool" in name else call()


def played(name: str, size: int, *, streaming: bool) -> list[on.AnyEvent]:
    body = RESULTS[name](size)
    return answered(asked(name), event(body) if streaming else body, streaming=streaming)


@pytest.mark.parametrize("name", RESULTS)
def test_g33_no_step_on_the_answer_of_a_server_of_tools_is_long(name: str) -> None:
    assert long_steps_of(played(name, SIZE, streaming=False)) == []


@pytest.mark.parametrize("name", ["parts to edit", "a value to edit said twice", "tools to refuse", "contents"])
def test_g33_no_step_on_such_an_answer_as_an_event_is_long(name: str) -> None:
    assert long_steps_of(played(name, SIZE, streaming=True)) == []


VERY_MANY = (
    "links", "a value of rows", "tools", "a value to edit", "a value to edit said twice",
    "a value to edit over each border",
)  # fmt: skip


@pytest.mark.parametrize("name", VERY_MANY)
def test_g33_no_step_on_an_answer_of_very_many_parts_is_long(name: str) -> None:
    """All that is done once for each of them is done in steps: reading them side by side, comparing, freeing."""
    assert long_steps_of(played(name, 4 * SIZE, streaming=False)) == []


@pytest.mark.parametrize("name", STREAMS)
def test_g33_no_step_on_the_stream_of_a_server_of_tools_is_long(name: str) -> None:
    assert long_steps_of(answered(call(), STREAMS[name](SIZE), streaming=True)) == []


@pytest.mark.parametrize("name", CALLS)
def test_g33_no_step_on_the_call_of_a_tool_is_long(name: str) -> None:
    assert long_steps_of(answered(CALLS[name](SIZE), said("a"), streaming=False)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_g33_no_step_on_a_long_answer_of_a_server_of_tools_is_long(name: str, streaming: bool) -> None:
    assert long_steps_of(played(name, LONG, streaming=streaming)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", STREAMS)
def test_g33_no_step_on_a_long_stream_of_a_server_of_tools_is_long(name: str) -> None:
    assert long_steps_of(answered(call(), STREAMS[name](LONG), streaming=True)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", CALLS)
def test_g33_no_step_on_a_long_call_of_a_tool_is_long(name: str) -> None:
    assert long_steps_of(answered(CALLS[name](LONG), said("a"), streaming=False)) == []
