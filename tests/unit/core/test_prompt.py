"""What the record says of a prompt: what was scanned, by what, and what was not (G17)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.commands import StreamRecord
from tests.playbook import constant, play
from tests.unit.core.test_guard import CHAT, DONE, INJ, ends, plan

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
    kept = record({**PROMPT, "surprise": {"text": "x"}}, fail_mode="open")
    assert [name for name in kept.unscanned if "image_url" in name]
    assert [name for name in kept.unscanned if name.endswith("surprise")]
    assert all(name.startswith("ingress:") for name in kept.unscanned)


@pytest.mark.parametrize(("field", "value"), [("surprise", 1), ("Messages", []), ("messages ", [])])
def test_g31_a_field_that_is_not_known_is_not_forwarded(field: str, value: object) -> None:
    kept = record({**PROMPT, field: value})
    assert kept.outcome == "refused"
