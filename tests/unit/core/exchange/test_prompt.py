"""What the record says of a prompt: what was scanned, by what, and what was not (G17)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.commands import StreamRecord
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from tests.guarded import CHAT, DONE, INJ, ends, plan
from tests.playbook import constant, play

RULES = INJ + (
    "  - {name: m, id: PII-1, stage: [ingress], channels: [user, tool_result], entities: [EMAIL], "
    "actions: [{type: redact}]}\n"
)
PROMPT: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "I am jo@x.io"},
                {"type": "image_url", "image_url": {"url": "data:,"}},
            ],
        },
        {"role": "assistant", "content": "hello"},
        {"role": "tool", "tool_call_id": "t", "content": "found ann@x.io"},
    ],
}


def record(prompt: dict[str, Any], **settings: object) -> StreamRecord:
    out = play(
        CHAT,
        plan(RULES, **settings),
        json.dumps(prompt).encode(),
        [ends(), DONE],
        scorer=constant(0.1, "lexicon.injection"),
    )
    assert out.record is not None
    return out.record


def test_g17_the_record_names_what_of_a_prompt_was_scanned_and_by_what() -> None:
    kept = record(PROMPT)
    assert kept.scanned == ("ingress:assistant", "ingress:system", "ingress:tool_result", "ingress:user")
    assert kept.detectors == ("match", "lexicon")
    assert kept.policies == ("t@1.0.0",)
    assert [(finding.detector, finding.channel.partition("/")[0]) for finding in kept.findings] == [
        ("entity:EMAIL", "user"),
        ("entity:EMAIL", "tool_result"),
    ]


def test_g17_the_record_names_what_of_a_prompt_was_not_scanned() -> None:
    kept = record({**PROMPT, "surprise": {"text": "x"}})
    assert kept.unscanned == ("ingress:image_url",)
    assert "ingress:surprise" in kept.scanned


@pytest.mark.parametrize(
    ("field", "value", "named"), [("surprise", 1, "surprise"), ("messages ", [], "?"), ("x" * 200, "y", "?")]
)
def test_g31_a_field_that_is_not_known_is_scanned_or_refused_as_the_route_says(
    field: str, value: object, named: str
) -> None:
    kept = record({**PROMPT, field: value})
    assert (kept.outcome, f"ingress:{named}" in "".join(kept.scanned)) == ("complete", True)
    assert kept.unscanned == ("ingress:image_url",)
    kept = record({**PROMPT, field: value}, unknown_fields="refuse")
    assert (kept.outcome, f"ingress:{named}" in "".join(kept.unscanned)) == ("invalid", True)


@pytest.mark.parametrize(
    "more",
    [
        {"provider": {"order": ["openai"]}},  # OpenRouter
        {"data_sources": [{"type": "azure_search", "parameters": {}}]},  # Azure
        {"safe_prompt": True, "random_seed": 7},  # Mistral
        {"min_p": 0.05, "chat_template_kwargs": {"enable_thinking": False}},  # vLLM
    ],
)
def test_g31_a_route_that_refuses_unknown_fields_takes_those_that_servers_are_known_by(more: dict[str, object]) -> None:
    assert record({**PROMPT, **more}, unknown_fields="refuse").outcome == "complete"


def test_g31_a_name_that_differs_in_case_only_is_refused() -> None:
    assert record({**PROMPT, "Messages": []}).outcome == "invalid"


ARGUMENTS = """pack: {name: p, version: 1.0.0}
policies:
  - {name: pii, id: PII-1, stage: ingress, entities: [CREDIT_CARD, EMAIL], actions: [{type: redact}]}
  - name: words
    id: WORD-1
    stage: ingress
    phrases: [zebra]
    actions: [{type: redact, text: 'a "b" \\ c'}]
  - name: keys
    id: KEY-1
    stage: ingress
    patterns: [{name: key, regex: '"key": ?1'}]
    actions: [{type: redact}]
"""


def calling(arguments: str) -> bytes:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    return json.dumps({"model": "m", "messages": messages}).encode()


@pytest.mark.parametrize(
    ("arguments", "forwarded"),
    [
        ('{"card": 4111111111111111, "n": 1}', '{"card": "[CREDIT_CARD]", "n": 1}'),
        ('{"card": "4111111111111111"}', '{"card": "[CREDIT_CARD]"}'),
        ('{"to": "joe\\u0040example.com"}', '{"to": "[EMAIL]"}'),
        ('{"text": "x\\nzebra"}', '{"text": "x\\na \\"b\\" \\\\ c"}'),
        ('{"text": zebra', '{"text": a "b" \\ c'),
    ],
)
def test_g08_the_arguments_of_a_call_in_a_prompt_stay_json(arguments: str, forwarded: str) -> None:
    plan = Plan(program=compile_sources([("p.yaml", ARGUMENTS)]))
    played = play(CHAT, plan, calling(arguments), [])
    assert played.forwarded is not None
    message = json.loads(played.forwarded)["messages"][1]
    assert message["tool_calls"][0]["function"]["arguments"] == forwarded


def test_g35_an_edit_over_parts_of_arguments_leaves_json() -> None:
    plan = Plan(program=compile_sources([("p.yaml", ARGUMENTS)]))
    played = play(CHAT, plan, calling('{"key": 1}'), [])
    assert played.forwarded is not None
    (call,) = json.loads(played.forwarded)["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"[REDACTED]": None}


def test_g08_a_prompt_whose_arguments_would_be_no_json_is_refused() -> None:
    braces = "patterns: [{name: b, regex: '\\{\"', max_chars: 4}]"
    rule = f"  - {{name: braces, id: B-1, stage: ingress, {braces}, actions: [{{type: redact}}]}}\n"
    plan = Plan(program=compile_sources([("p.yaml", ARGUMENTS + rule)]))
    played = play(CHAT, plan, calling('{"other": 1}'), [])
    assert played.forwarded is None
    assert played.reply is not None
    assert played.reply.status == 400
    assert b"the arguments of a tool call would be no JSON any more" in played.reply.body
