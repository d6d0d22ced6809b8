"""Names that the shipped model finds, through the running proxy: those that the request tells come back as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.harness import Llm, Proxy, http

POLICY = """
pack: {name: names, version: 1.0.0}
policies:
  - name: people_of_others
    id: NAME-1
    stage: [midstream]
    entities: [PERSON, ORGANIZATION, LOCATION]
    unless: in_request
    in: [user, system]
    allow: {values: [Northwind Hospital]}
    actions: [{type: redact}]
"""
ANSWER = (
    "Anna Schmidt lives in Hamburg. Her doctor is Peter Jones of Northwind Hospital. "
    "Anna's sister Maria moved to Lisbon."
)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_names_that_the_request_tells_are_spared_and_others_are_not(
    llm: Llm, start: Callable[..., Proxy], *, streamed: bool
) -> None:
    model = llm.put("names", {"choices": [{"content": [ANSWER[at : at + 7] for at in range(0, len(ANSWER), 7)]}]})
    patient = {"ingress_ms": 60_000, "check_ms": 60_000}  # a busy machine must not decide what is found
    proxy = start(POLICY, chat_only=True, deadline=patient)

    def ask(*messages: dict[str, Any]) -> str:
        body = {"model": model, "stream": streamed, "messages": list(messages)}
        status, _, raw = http("POST", f"{proxy.url}/v1/chat/completions", body)
        assert status == 200
        if not streamed:
            return str(json.loads(raw)["choices"][0]["message"]["content"])
        events = [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]
        return "".join(choice["delta"].get("content") or "" for each in events for choice in each["choices"])

    user = {"role": "user", "content": "Where do ANNA  SCHMIDT\u2019s people live? She is from hamburg, I think."}
    system = {"role": "system", "content": "The doctor on duty is Dr. Peter Jones."}
    document = {"role": "tool", "tool_call_id": "c", "content": "Maria, Lisbon"}
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    history = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert ask(system, user, history, document) == (
        "Anna Schmidt lives in Hamburg. Her doctor is Peter Jones of Northwind Hospital. "
        "Anna's sister [PERSON] moved to [LOCATION]."
    )
    assert ask({"role": "user", "content": "Who?"}) == (
        "[PERSON] lives in [LOCATION]. Her doctor is [PERSON] of Northwind Hospital. "
        "[PERSON]'s sister [PERSON] moved to [LOCATION]."
    )
