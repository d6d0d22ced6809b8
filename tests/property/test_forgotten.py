"""G33: what an exchange has known is freed in steps: nothing is left that takes long to free at once, whatever came."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from checkstream.core import events as on
from checkstream.core.wire.mcp.surface import MCP, Mcp
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from tests import hostile_answers, hostile_mcp, hostile_responses, mcp, responses
from tests.property.test_long_dialects import APIS
from tests.property.test_long_prompts import messages
from tests.property.test_long_steps import request
from tests.watchdog import answered, everything, guard_of, steps

SIZE = 40_000
MOST = 1500
"""Objects: as many are freed in less than half a millisecond."""
_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, str, bytes, int, float)
CHAT = SURFACES["openai.chat"]

Played = tuple[Surface | Mcp, Sequence[on.AnyEvent]]


def reached(roots: Iterable[object], known: set[int]) -> int:
    """Return how many objects some have that are not known yet; then they are."""
    pending, found = list(roots), 0
    while pending:
        each = pending.pop()
        if id(each) in known or isinstance(each, _SHARED):
            continue
        known.add(id(each))
        found += 1
        pending += gc.get_referents(each)
    return found


def left_by(surface: Surface | Mcp, events: Sequence[on.AnyEvent]) -> int:
    """Return how many objects are left of an exchange when all of it has been taken apart."""
    guard: Any = guard_of(surface, everything())
    held: Any = Held(guard)
    steps(held, events)
    assert guard.over
    calm: Any = guard_of(surface, everything())
    known = {id(everything())}
    reached([calm, everything().program, events], known)
    return reached([guard], known)


class Held:
    """A guard that is not freed with its exchange."""

    def __init__(self, guard: Any) -> None:
        self.receive = guard.receive


def chat(name: str) -> Played:
    body = hostile_answers.STREAMS[name](SIZE) + hostile_answers.END
    return CHAT, answered(request(stream=True), body, streaming=True)


def whole(name: str) -> Played:
    return CHAT, answered(request(stream=False), hostile_answers.WHOLE[name](SIZE), streaming=False)


def response(name: str) -> Played:
    return responses.RESPONSES, answered(responses.request(), hostile_responses.STREAMS[name](SIZE), streaming=True)


def dialect(api: str, name: str) -> Played:
    return APIS[api].surface, answered(APIS[api].asked[True], APIS[api].streams[name](SIZE), streaming=True)


def tool(name: str) -> Played:
    return MCP, answered(mcp.call(), hostile_mcp.RESULTS[name](SIZE), streaming=False)


PLAYED: Mapping[str, Callable[[], Played]] = {
    "an answer that lists many parts": lambda: chat("parts"),
    "an answer of many choices": lambda: chat("choices"),
    "an answer of many calls": lambda: chat("tool calls"),
    "an answer in letters": lambda: chat("letters"),
    "an answer of addresses": lambda: chat("addresses in letters"),
    "a whole answer of strings": lambda: whole("strings to edit"),
    "a whole answer of parts": lambda: whole("parts to edit"),
    "a whole answer of numbers": lambda: whole("lists of numbers"),
    "messages of a response": lambda: response("messages to edit, streamed"),
    "parts of a response": lambda: response("parts, streamed"),
    "calls of a response": lambda: response("calls, streamed"),
    "events nobody knows of a response": lambda: response("events nobody knows"),
    "items of a response that only begin": lambda: response("items that begin"),
    "blocks of a message": lambda: dialect("messages", "blocks to edit"),
    "calls of a message": lambda: dialect("messages", "calls"),
    "lines of Ollama": lambda: dialect("ollama", next(iter(APIS["ollama"].streams))),
    "parts of a tool's result": lambda: tool("parts to edit"),
    "a value of a tool's result": lambda: tool("a value of objects"),
    "many messages": lambda: (
        CHAT,
        answered(
            messages(*({"role": "user", "content": f"number {n}"} for n in range(1500))),
            b'{"choices":[]}',
            streaming=False,
        ),
    ),
}


@pytest.mark.parametrize("name", PLAYED)
def test_g33_nothing_is_left_that_would_be_freed_at_once(name: str) -> None:
    assert left_by(*PLAYED[name]()) < MOST
