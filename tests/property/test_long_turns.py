"""G33: no step is long where a rule turns a long answer, whether the upstream goes on with it or will not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

import pytest

from checkstream.core import events as on
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.continued import RULES, answer, request
from tests.watchdog import READ_BYTES, Step, guard_of, long_steps, steps

SIZE = 400_000
NAMES = ("openai.chat", "anthropic.messages", "openai.responses", "ollama.chat")
MAIL = "write to a@b.example.com, "
_PLAN = Plan(program=compile_sources([("p.yaml", RULES)]))


def answered(body: bytes, *, stream: bool, status: int = 200) -> list[on.AnyEvent]:
    reads = [on.UpstreamBytes(body[at : at + READ_BYTES]) for at in range(0, len(body), READ_BYTES)]
    return [on.UpstreamOpened(status, stream and status < 400), *reads, on.UpstreamClosed()]


def turned(name: str, asked: bytes, body: bytes, *, stream: bool, status: int) -> list[Step]:
    again = answered(answer(name, ["fine. ", "good"], stream=stream), stream=stream, status=status)
    events = [on.RequestReceived(asked), *answered(body, stream=stream)]
    return steps(guard_of(SURFACES[name], _PLAN), events, again=again)


@pytest.mark.parametrize("status", [200, 500], ids=["goes on", "does not"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", NAMES)
def test_g33_no_step_is_long_where_a_long_answer_turns(name: str, stream: bool, status: int) -> None:
    pieces = [MAIL * 150] * (SIZE // len(MAIL) // 150)
    body = answer(name, [*pieces, "launder money", "x"], stream=stream)
    asked = request(name, stream=stream)
    assert long_steps(lambda: turned(name, asked, body, stream=stream, status=status)) == []


@cache
def parted() -> Mapping[str, bytes]:
    """Return answers that say something in very many places besides the text that turns."""
    message = {"role": "assistant", "content": "You could launder money so."}

    def told(**more: object) -> bytes:
        choice = {"index": 0, "finish_reason": "stop", "message": {**message, **more}}
        return json.dumps({"id": "x", "object": "o", "created": 1, "model": "m", "choices": [choice]}).encode()

    return {
        "members": told(**{f"field {n}": f"said {n}" for n in range(3000)}),
        "members to edit": told(**{f"field {n}": f"{n}@b.example.com" for n in range(1500)}),
        "a list": told(sources=[f"said {n}" for n in range(8000)]),
        "thoughts": told(reasoning_content=MAIL * 4000),
    }


@pytest.mark.parametrize("status", [200, 500], ids=["goes on", "does not"])
@pytest.mark.parametrize("kind", sorted(parted()))
def test_g33_no_step_is_long_where_an_answer_of_many_places_turns(kind: str, status: int) -> None:
    asked = request("openai.chat", stream=False)
    assert long_steps(lambda: turned("openai.chat", asked, parted()[kind], stream=False, status=status)) == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("said", ["messages", "messages to edit", "a text to edit", "a long text"])
def test_g33_no_step_is_long_where_the_answer_to_a_long_prompt_turns(said: str, stream: bool) -> None:
    texts = {
        "messages": [f"number {n}" for n in range(3000)],
        "messages to edit": [f"{n}@b.example.com" for n in range(1500)],
        "a text to edit": [MAIL * 4000],
        "a long text": ["word " * 100_000],
    }
    messages = [{"role": "user", "content": text} for text in texts[said]]
    asked = json.dumps({**json.loads(request("openai.chat", stream=stream)), "messages": messages}).encode()
    body = answer("openai.chat", ["You could ", "launder money", " so."], stream=stream)
    rules = RULES.replace("stage: midstream, entities", "stage: [ingress, midstream], entities")
    plan = Plan(program=compile_sources([("p.yaml", rules)]))
    again = answered(answer("openai.chat", ["fine."], stream=stream), stream=stream)
    events = [on.RequestReceived(asked), *answered(body, stream=stream)]
    assert long_steps(lambda: steps(guard_of(SURFACES["openai.chat"], plan), events, again=again)) == []
