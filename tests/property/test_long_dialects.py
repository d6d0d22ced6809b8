"""G33: no step on an answer or a request of the Messages API or of Ollama's is long, whatever it is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from checkstream.core import events as on
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from tests import hostile_anthropic, hostile_ollama, messages
from tests.hostile_answers import Make
from tests.playbook import play
from tests.watchdog import Step, answered, everything, guard_of, long_steps, steps

SIZE = 12_000
LONG = 900_000


class Spoken(NamedTuple):
    """An API, what asks it for a stream or for a whole answer, and what is dear to read of it."""

    surface: Surface
    asked: Mapping[bool, bytes]
    streams: Mapping[str, Make]
    whole: Mapping[str, Make]
    requests: Mapping[str, Make]


APIS = {
    "messages": Spoken(
        messages.MESSAGES,
        {streaming: messages.request(stream=streaming) for streaming in (False, True)},
        hostile_anthropic.STREAMS,
        hostile_anthropic.WHOLE,
        hostile_anthropic.REQUESTS,
    ),
    "ollama": Spoken(
        SURFACES["ollama.chat"],
        {streaming: hostile_ollama.request(stream=streaming) for streaming in (False, True)},
        hostile_ollama.STREAMS,
        hostile_ollama.WHOLE,
        hostile_ollama.REQUESTS,
    ),
}
STREAMS = [(api, name) for api, spoken in APIS.items() for name in spoken.streams]
WHOLE = [(api, name) for api, spoken in APIS.items() for name in spoken.whole]
REQUESTS = [(api, name) for api, spoken in APIS.items() for name in spoken.requests]


def long_steps_of(api: str, events: Sequence[on.AnyEvent]) -> list[Step]:
    return long_steps(lambda: steps(guard_of(APIS[api].surface, everything()), events))


def streamed(api: str, name: str, size: int) -> list[on.AnyEvent]:
    return answered(APIS[api].asked[True], APIS[api].streams[name](size), streaming=True)


def whole(api: str, name: str, size: int) -> list[on.AnyEvent]:
    return answered(APIS[api].asked[False], APIS[api].whole[name](size), streaming=False)


def asked(api: str, name: str, size: int) -> list[on.AnyEvent]:
    return answered(APIS[api].requests[name](size), b"", streaming=True)


@pytest.mark.parametrize(("api", "name"), STREAMS)
def test_g33_no_step_on_a_stream_of_this_api_is_long(api: str, name: str) -> None:
    assert long_steps_of(api, streamed(api, name, SIZE)) == []


@pytest.mark.parametrize(("api", "name"), WHOLE)
def test_g33_no_step_on_a_whole_answer_of_this_api_is_long(api: str, name: str) -> None:
    assert long_steps_of(api, whole(api, name, SIZE)) == []


@pytest.mark.parametrize(("api", "name"), REQUESTS)
def test_g33_no_step_on_a_request_of_this_api_is_long(api: str, name: str) -> None:
    assert long_steps_of(api, asked(api, name, SIZE)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("size", [40_000, LONG])
@pytest.mark.parametrize(("api", "name"), STREAMS)
def test_g33_no_step_on_a_long_stream_of_this_api_is_long(api: str, name: str, size: int) -> None:
    assert long_steps_of(api, streamed(api, name, size)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("size", [40_000, LONG])
@pytest.mark.parametrize(("api", "name"), WHOLE)
def test_g33_no_step_on_a_long_whole_answer_of_this_api_is_long(api: str, name: str, size: int) -> None:
    assert long_steps_of(api, whole(api, name, size)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("size", [40_000, LONG])
@pytest.mark.parametrize(("api", "name"), REQUESTS)
def test_g33_no_step_on_a_long_request_of_this_api_is_long(api: str, name: str, size: int) -> None:
    assert long_steps_of(api, asked(api, name, size)) == []


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("api", APIS)
def test_g35_a_long_call_that_was_edited_leaves_as_json(api: str, streaming: bool) -> None:
    """A long edited text is written in pieces: one that is JSON was no text for the parser, and the guard failed."""
    name, spoken = "one call of many members to edit", APIS[api]
    body = (spoken.streams if streaming else spoken.whole)[name](8 * SIZE)
    out = play(spoken.surface, everything(), spoken.asked[streaming], [body], streaming=streaming)
    assert out.record is not None
    assert out.record.outcome == "complete"
    left = out.joined if out.reply is None else out.reply.body
    assert b"u7@example.com" in body
    assert b"@example.com" not in left
    lines = left.splitlines() if api == "ollama" else [each[5:] for each in left.splitlines() if each[:5] == b"data:"]
    for line in lines if streaming else [left]:
        assert isinstance(json.loads(line or b"{}"), dict)
