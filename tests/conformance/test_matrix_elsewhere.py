"""The matrix (G8) where there is no prompt or no text in the answer: messages of tools, figures, answers told again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.capabilities import (
    CAN,
    COUNTS,
    MCP,
    PROMPT_ONLY,
    RESPONSES,
    STORED,
    Target,
)
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Stage
from checkstream.core.wire.surfaces import SURFACES, spoken
from checkstream.errors import PolicyError
from tests import mcp
from tests.conformance.page import ROWS
from tests.conformance.surfaces import answer, message_request, received, response_request
from tests.conformance.test_action_matrix import ACTIONS, FOUND, policy
from tests.playbook import Played, play

STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
SAID = f"A {FOUND}. Then more."
BECOMES = {"redact": "[REDACTED]", "rewrite_span": "crosswalk", "pseudonymise": "<TERM_1>"}
"""Action -> what stands in place of what was found."""
ENDS = {"reject": 403, "require_confirmation": 409}
"""Action -> the status with which a request is refused."""


def plan(action: str, stage: Stage, channel: str, surface: str) -> Plan:
    target = Target(route="r", surface=surface, upstream="u", can=frozenset(CAN))
    return Plan(program=compile_sources([("p.yaml", policy(action, stage, channel))], (), (target,)))


def fired(played: Played) -> set[tuple[str, str]]:
    assert played.record is not None
    return {(verdict.rule_id, verdict.channel.kind) for verdict in played.record.verdicts}


# --- messages of tools, both ways

ON_TOOLS = sorted(action for action, row in ROWS.items() if MCP in row.surfaces)
SIDES = ("assistant", "user", "tool_result", "document")


def tool_cells() -> Iterator[tuple[str, str, bool]]:
    for action, channel, streamed in itertools.product(ON_TOOLS, SIDES, (True, False)):
        if action != "remove_message" or channel in {"tool_result", "document"}:
            yield action, channel, streamed


def asked(channel: str) -> bytes:
    if channel == "assistant":
        return mcp.call(text=SAID)
    if channel == "user":
        return mcp.request("prompts/get", {"name": "greet", "arguments": {"name": SAID}})
    return mcp.call() if channel == "tool_result" else mcp.request("resources/read", {"uri": "file:///a"})


def answered(channel: str) -> bytes:
    if channel == "document":
        return mcp.result(contents=[{"uri": "file:///a", "text": SAID}])
    return mcp.said(SAID if channel == "tool_result" else "Calm.")


@pytest.mark.parametrize(("action", "channel", "streamed"), list(tool_cells()))
def test_g08_what_the_matrix_allows_is_carried_out_on_messages_of_tools(
    action: str, channel: str, streamed: bool
) -> None:
    rules = plan(action, Stage.INGRESS, channel, MCP)
    sent = answered(channel)
    if streamed:
        played = mcp.streamed(asked(channel), [mcp.event(sent)], plan=rules)
    else:
        played = mcp.whole(asked(channel), sent, plan=rules)
    assert ("R-1", channel) in fired(played)
    of_caller = channel in {"assistant", "user"}
    if of_caller and action in ENDS:
        assert played.forwarded is None
        assert mcp.body(played)["error"]["data"]["rule_id"] == "R-1"
        return
    assert played.forwarded is not None
    told = mcp.events(played)[-1] if streamed else mcp.body(played)
    passed = played.forwarded.decode() if of_caller else json.dumps(told)
    if action in {"allow", "log_event"}:
        assert SAID in passed
    elif action in BECOMES:
        assert f"A {BECOMES[action]}. Then more." in passed
    else:  # the result of a call becomes one that the model reads as a failure, any other an error
        assert FOUND not in passed
        assert "R-1" in passed
        assert told["result"]["isError"] if channel == "tool_result" else told["error"]["data"]["rule_id"] == "R-1"


# --- APIs that answer with figures

FIGURES: dict[str, tuple[dict[str, Any], bytes]] = {
    "openai.embeddings": ({"model": "m", "input": SAID}, b'{"object":"list","data":[]}'),
    "openai.moderations": ({"model": "m", "input": SAID}, b'{"id":"m","results":[]}'),
    "cohere.rerank": ({"model": "m", "query": "which?", "documents": [SAID, "plain"]}, b'{"id":"r","results":[]}'),
    "ollama.embed": ({"model": "m", "input": SAID}, b'{"model":"m","embeddings":[[0.5]]}'),
    "ollama.embeddings": ({"model": "m", "prompt": SAID}, b'{"embedding":[0.5]}'),
    "anthropic.count_tokens": ({"model": "m", **message_request({"user": SAID})}, b'{"input_tokens":7}'),
    "openai.responses.input_tokens": (
        {"model": "m", **response_request({"user": SAID})}, b'{"object":"response.input_tokens","input_tokens":7}',
    ),
}  # fmt: skip
"""Surface -> a request in which something is found, and its answer."""


def figure_cells() -> Iterator[tuple[str, Stage, str]]:
    for action, surface in itertools.product(ACTIONS, sorted(PROMPT_ONLY)):
        for stage in ROWS[action].stages:
            if carried(action, stage, surface) and (action != "remove_message" or surface == "cohere.rerank"):
                yield action, stage, surface


def carried(action: str, stage: Stage, surface: str) -> bool:
    """Whether the matrix allows an action: what counts a request can do what the API of that request can."""
    return stage is not Stage.INGRESS or surface not in COUNTS or COUNTS[surface] in ROWS[action].surfaces


@pytest.mark.parametrize(
    ("action", "surface"),
    [each for each in itertools.product(ACTIONS, COUNTS) if not carried(each[0], Stage.INGRESS, each[1])],
)
def test_g08_what_can_not_be_sent_can_not_be_counted(action: str, surface: str) -> None:
    with pytest.raises(PolicyError) as raised:
        plan(action, Stage.INGRESS, "user", surface)
    assert f"`{action.partition(' ')[0]}` of rule `R-1` needs" in raised.value.faults[0].reason


def test_every_surface_that_answers_with_figures_is_asked() -> None:
    assert set(FIGURES) == PROMPT_ONLY


@pytest.mark.parametrize(("action", "stage", "surface"), list(figure_cells()))
def test_g08_rules_of_the_prompt_are_carried_out_where_the_answer_is_figures(
    action: str, stage: Stage, surface: str
) -> None:
    body, figures = FIGURES[surface]
    ingress = stage is Stage.INGRESS
    channel = "content" if not ingress else "document" if surface == "cohere.rerank" else "user"
    request = json.dumps({name: value for name, value in body.items() if name != "max_tokens"}).encode()
    played = play(SURFACES[surface], plan(action, stage, channel, surface), request, [figures], streaming=False)
    if ingress and action in ENDS:
        assert played.forwarded is None
        assert played.reply is not None
        assert played.reply.status == ENDS[action]
        assert json.loads(played.reply.body)["rule_id"] == "R-1"
        return
    assert played.forwarded is not None
    assert played.reply is not None
    kept = json.loads(played.reply.body)
    kept.pop("checkstream", None)
    assert kept == json.loads(figures)
    passed = played.forwarded.decode()
    assert fired(played) >= ({("R-1", channel)} if ingress else set())
    if ingress and action in BECOMES:
        assert BECOMES[action] in passed
        assert FOUND not in passed
    elif ingress and action == "remove_message":
        assert json.loads(passed)["documents"] == ["[removed by policy R-1]", "plain"]
    else:
        assert FOUND in passed


# --- answers that were given before

TOLD_AGAIN = ["redact", "rewrite_span", "stop", "allow", "log_event"]


@STREAMED
@pytest.mark.parametrize("surface", sorted(STORED))
@pytest.mark.parametrize("action", TOLD_AGAIN)
@pytest.mark.parametrize("channel", ["content", "refusal", "reasoning", "tool_arguments"])
def test_g08_rules_of_answers_are_carried_out_where_one_is_told_again(
    action: str, surface: str, channel: str, streamed: bool
) -> None:
    if streamed and surface.endswith("cancel"):
        return  # which is answered whole
    text = f'{{"q": "{SAID}"}}' if channel == "tool_arguments" else SAID
    pieces = answer(RESPONSES, streamed, {channel: text})
    again = spoken(surface)
    played = play(again, plan(action, Stage.MIDSTREAM, channel, surface), b"", pieces, streaming=streamed, method="GET")
    assert ("R-1", channel) in fired(played)
    got = received(played, RESPONSES)
    if action == "stop":
        assert got["finish"] == "content_filter"
        assert FOUND not in "".join(got.values())
    else:
        assert got[channel].endswith(text.replace(FOUND, BECOMES.get(action, FOUND)))
