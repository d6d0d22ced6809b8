"""A short whole answer that leaves as it came comes to what it comes to judged, whatever it says beside its text.

What was read of it in full is the oracle, as in `test_calm`.
"""

from __future__ import annotations

import base64
import json
import random

import pytest

from checkstream.core.events import Recalled, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from checkstream.demo.script import Choice, Script
from tests.generated import request as in_words
from tests.generated import told
from tests.guarded import request
from tests.playbook import Exchange
from tests.twin import Twin, watched

RULES = """
pack: {name: t, version: 1.0.0}
policies:
  - {name: mail, id: M-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
"""
AGAIN = """
  - {name: again, id: A-1, stage: [ingress], conditions: ['conversation.fired["M-1"] > 0'],
     actions: [{type: log_event}]}
"""
PLAN = Plan(program=compile_sources([("t.yaml", RULES)]))
RECALLING = Plan(program=compile_sources([("t.yaml", RULES + AGAIN)]), recalls=True)
_CHANCE = random.Random("untouched").randbytes(300)
_SOUND = base64.b64encode(b"RIFF\x24\x08\x00\x00WAVEfmt " + _CHANCE).decode()
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_SAID = {"role": "assistant", "content": "All is well there."}
_CHOICE = {"index": 0, "message": _SAID, "finish_reason": "stop"}
BODIES: dict[str, dict[str, object]] = {
    "bytes": {"choices": [{**_CHOICE, "message": {**_SAID, "audio": {"id": "a", "data": _SOUND, "transcript": ""}}}]},
    "sealed": {
        "choices": [{**_CHOICE, "message": {**_SAID, "encrypted_content": base64.b64encode(_CHANCE).decode()}}],
    },
    "call": {"choices": [{**_CHOICE, "finish_reason": "tool_calls", "delta": {"tool_calls": [_CALL]}}]},
    "error": {"choices": [_CHOICE], "error": {"message": "it broke", "type": "server_error"}},
}
"""What stands in the record, or is done to the answer, besides what rules do: by name."""


def _played(exchange: Exchange, asked: bytes, body: bytes) -> None:
    exchange.send(RequestReceived(asked, "one"))
    if exchange.out.forwarded is None:
        exchange.send(Recalled(None))
    for each in (UpstreamOpened(200, streaming=False), UpstreamBytes(body), UpstreamClosed()):
        exchange.send(each)


def _is_untouched(made: list[Twin]) -> bool:
    return any(twin._course.whole.untouched for twin in made)


@pytest.mark.parametrize("name", BODIES)
def test_g01_g17_an_answer_with_more_than_its_text_is_judged(name: str) -> None:
    with watched() as made:
        _played(Exchange(SURFACES["openai.chat"], PLAN), request("Hi."), json.dumps(BODIES[name]).encode())
    assert not _is_untouched(made)
    with watched() as made:  # its text alone is no reason
        _played(Exchange(SURFACES["openai.chat"], PLAN), request("Hi."), json.dumps({"choices": [_CHOICE]}).encode())
    assert _is_untouched(made)


def test_g01_who_goes_on_from_an_answer_is_known_though_nothing_was_decided_about_it() -> None:
    script = Script(choices=[Choice(content="All is well there.")])
    asked, body = (of("openai.responses", script, stream=False) for of in (in_words, told))
    with watched() as made:
        _played(Exchange(SURFACES["openai.responses"], RECALLING), asked, body)
    assert _is_untouched(made)
