"""What an answer repeats of the instructions: the caller's own, whatever rules have put behind or into them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import responses
from tests.guarded import plan
from tests.playbook import play

MAIL = "john.doe@example.com"
TONE = (
    "  - {name: t, id: TONE-1, stage: [ingress], phrases: [hi], "
    "actions: [{type: adapt_tone, instruction: Be brief.}]}\n"
)
HIDE = "  - {name: m, id: PII-1, stage: [ingress, midstream], entities: [EMAIL], actions: [{type: redact}]}\n"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("own", [None, "Answer in French.", f"Ask {MAIL}."])
@pytest.mark.parametrize("rules", [TONE, HIDE, TONE + HIDE])
def test_an_answer_repeats_the_callers_own_instructions(rules: str, own: str | None, stream: bool) -> None:
    more: dict[str, Any] = {} if own is None else {"instructions": own}
    asked = responses.request(stream=stream, **more)
    forwarded = play(responses.RESPONSES, plan(rules), asked, [b""], streaming=stream).forwarded
    assert forwarded is not None
    sent = json.loads(forwarded).get("instructions")
    assert (sent == own) is not ("TONE" in rules or ("PII" in rules and own is not None and MAIL in own))
    data = responses.one(responses.message("Fine."), stream=stream, pieces=["Fine."])
    data = data.replace(b'"instructions": null', b'"instructions": ' + json.dumps(sent).encode())
    out = play(responses.RESPONSES, plan(rules), asked, [data], streaming=stream)
    if stream:
        told = [body["response"] for body in responses.events(out.joined) if "response" in body]
        assert responses.read(out.joined) == told[-1]
    else:
        assert out.reply is not None
        told = [responses.parsed(out.reply.body)]
    assert [each["instructions"] for each in told] == [own] * len(told)
    assert "Be brief." not in json.dumps(told)


def test_instructions_of_a_template_stay_and_are_read() -> None:
    data = responses.whole(responses.message("Fine."), instructions=f"From a template: {MAIL}.")
    out = play(responses.RESPONSES, plan(TONE + HIDE), responses.request(stream=False), [data], streaming=False)
    assert out.reply is not None
    assert json.loads(out.reply.body)["instructions"] == "From a template: [EMAIL]."
