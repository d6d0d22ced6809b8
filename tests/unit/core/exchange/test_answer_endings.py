"""What stands at the end of an answer: once, behind all that is sent, and whether or not the answer has it already."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import Played, play

CHAT = SURFACES["openai.chat"]
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"
STOP = """  - name: stop
    id: STOP-1
    stage: midstream
    channels: [content]
    phrases: [zero risk]
    actions: [{type: stop, message: Stopped.}]
"""
BEHIND = """  - name: behind
    id: BEHIND-1
    stage: midstream
    channels: [content]
    phrases: [guaranteed]
    actions: [{type: inject_disclaimer, position: after_sentence, text: Capital at risk.}]
"""
REQUIRED = """  - name: made
    id: MADE-1
    conditions: ["true"]
    actions: [{type: require_disclaimer, text: Made by AI.}]
"""


def run(rules: str, *texts: str, **more: object) -> Played:
    """Stream an answer of which each text comes in an event and a network read of its own."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True} | more
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": text} for text in texts)]
    pieces = [event(delta) for delta in deltas]
    plan = Plan(program=compile_sources([("p.yaml", HEAD + rules)]))
    return play(CHAT, plan, json.dumps(asked).encode(), [*pieces, event({}, "stop"), b"data: [DONE]\n\n"])


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


def content(played: Played) -> str:
    bodies = [json.loads(line[6:]) for line in played.joined.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for body in bodies for choice in body["choices"])


@pytest.mark.parametrize("texts", [("good zero risk. Made by AI.",), ("good zero ", "risk. ", "Made by AI.")])
def test_a_required_text_that_a_stop_has_cut_off_is_added(texts: tuple[str, ...]) -> None:
    assert content(run(STOP + REQUIRED, *texts)) == "good Stopped.\n\nMade by AI."


def test_a_required_text_of_which_a_part_was_redacted_is_added() -> None:
    redacted = (
        "  - {name: r, id: R, stage: midstream, channels: [content], phrases: [by ai], actions: [{type: redact}]}\n"
    )
    played = run(REQUIRED + redacted, "Good. Made by ", "AI. Bye.")
    assert content(played) == "Good. Made [REDACTED]. Bye.\n\nMade by AI."


def test_a_required_text_that_a_rewrite_has_written_is_there() -> None:
    rewritten = """  - name: r
    id: R
    stage: midstream
    channels: [content]
    phrases: [by hand]
    actions: [{type: rewrite_span, words: {by hand: by AI}, scope: span}]
"""
    assert content(run(REQUIRED + rewritten, "Good. Made by hand. Bye.")) == "Good. Made by AI. Bye."


def test_a_text_that_one_rule_adds_and_another_requires_comes_once() -> None:
    twice = REQUIRED.replace("}]", "}, {type: inject_disclaimer, text: Made by AI.}]")
    assert content(run(twice, "Good.")) == "Good.\n\nMade by AI."
    assert content(run(STOP.replace("Stopped.", "Stopped. Made by AI.") + REQUIRED, "So zero risk.")) == (
        "So Stopped. Made by AI."
    )


def test_texts_at_the_end_stand_in_the_order_of_the_rules() -> None:
    other = REQUIRED.replace("MADE-1", "BYE-1").replace(
        "require_disclaimer, text: Made by AI.", "inject_disclaimer, text: Bye."
    )
    rules = REQUIRED + other
    assert content(run(rules, "Good.")) == "Good.\n\nMade by AI.\n\nBye."


@pytest.mark.parametrize("required", ["", REQUIRED])
def test_a_text_behind_the_last_sentence_stands_before_what_ends_the_answer(required: str) -> None:
    text = "It is guaranteed to be so."
    for cut in range(1, len(text)):
        end = "\n\nMade by AI." if required else ""
        assert content(run(BEHIND + required, text[:cut], text[cut:])) == f"{text} Capital at risk.{end}"


def test_g03_a_text_behind_a_sentence_that_a_stop_cuts_comes_at_the_end_wherever_the_network_cuts() -> None:
    text = "It is guaranteed, zero risk. More. Yes."
    for one, two in itertools.combinations(range(1, len(text)), 2):
        played = run(BEHIND + STOP, text[:one], text[one:two], text[two:])
        assert content(played) == "It is guaranteed, Stopped. Capital at risk."


def test_a_text_behind_a_sentence_of_which_nothing_is_sent_is_not_added() -> None:
    both = STOP.replace("zero risk", "guaranteed")
    assert content(run(BEHIND + both, "It is guaranteed to be.")) == "It is Stopped."


def test_nothing_is_put_into_an_answer_that_has_a_form() -> None:
    form = '{"a": "It is guaranteed. Yes."}'
    played = run(BEHIND + REQUIRED, form, response_format={"type": "json_object"})
    assert content(played) == form
    assert played.record is not None
    assert "text_not_added:structured_answer" in played.record.degradations
