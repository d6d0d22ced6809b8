"""What stands in a request is no secret to who has sent it, wherever a surface has its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.guarded import plan
from tests.guarded import request as chat
from tests.playbook import play

OWN = "ann.lee@northwind.example"
SAID = f"Write to {OWN}."
RULE = (
    "  - {{name: o, id: PII-1, stage: midstream, entities: [EMAIL], unless: in_request{}, "
    "actions: [{{type: redact}}]}}\n"
)
_LINE = json.dumps({"model": "m", "created_at": "x", "message": {"role": "assistant", "content": SAID}, "done": True})
_MESSAGE = {"role": "user", "content": SAID}
_RESULT = {"type": "function_call_output", "call_id": "c", "output": SAID}
ANSWERS = {
    "openai.responses": responses.answer(responses.message(SAID)),
    "anthropic.messages": b"".join([messages.head(), *messages.text(0, SAID)]),
    "ollama.chat": _LINE.encode() + b"\n",
}


@pytest.mark.parametrize(
    ("surface", "asked", "channel"),
    [
        ("openai.responses", responses.request(SAID), "user"),
        ("openai.responses", responses.request([_MESSAGE]), "user"),
        ("openai.responses", responses.request([{**_MESSAGE, "role": "system"}]), "system"),
        ("openai.responses", responses.request(instructions=SAID), "system"),
        ("openai.responses", responses.request([_RESULT]), "tool_result"),
        ("anthropic.messages", messages.request(SAID), "user"),
        ("anthropic.messages", messages.request(system=SAID), "system"),
        ("ollama.chat", chat(SAID), "user"),
    ],
)
def test_what_the_request_says_is_spared_on_every_surface(surface: str, asked: bytes, channel: str) -> None:
    def says_it(within: str) -> bool:
        rules: Any = RULE.format(f", in: [{within}]")
        return OWN.encode() in play(SURFACES[surface], plan(rules), asked, [ANSWERS[surface]]).joined

    assert says_it(channel)
    assert not says_it("document")
