"""A session with a server of tools is a conversation of its caller: what its messages come to adds up."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import Recall, Remember, Score
from checkstream.core.events import (
    AnyEvent,
    Recalled,
    RequestReceived,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.mcp.surface import MCP
from checkstream.proxy.envelope import around
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from tests import mcp
from tests.mcp import ORDER, call, event, request, said
from tests.playbook import Exchange, Played

POLICY = (
    mcp.POLICY
    + """
  - name: after_orders
    id: AFTER-1
    stage: [ingress]
    conditions: ['conversation.fired["DOC-1"] > 0']
    actions: [{type: reject, message: This server has tried to give orders.}]
  - name: too_often
    id: OFTEN-1
    stage: [ingress]
    conditions: [conversation.refused > 1]
    actions: [{type: reject, message: Too much was refused.}]
  - name: sum
    id: SUM-1
    stage: [ingress]
    conditions: [conversation.risk.injection > 0.8]
    actions: [{type: reject, message: It adds up.}]
"""
)
LABELS = (ClassifierLabel("lexicon.injection"),)
PLAN = Plan(program=compile_sources([("tools.yaml", POLICY)], LABELS), recalls=True)


class Client:
    """A caller of a server of tools, whose messages are guarded with one memory."""

    def __init__(self) -> None:
        self.known = Conversations(MemoryStore(clock=lambda: 0.0), Seal(bytes(32)), ttl_s=60, most_bytes=1 << 20)

    def send(
        self,
        message: bytes,
        answer: bytes = said("fine"),
        *,
        session: str = "s-1",
        caller: str = "one",
        stream: bool = False,
        plan: Plan = PLAN,
        fails: bool = False,
    ) -> Played:
        exchange = Exchange(MCP, plan, _scored)

        def tell(happened: AnyEvent) -> None:
            done = len(exchange.out.commands)
            exchange.send(happened)
            for command in exchange.out.commands[done:]:
                if isinstance(command, Recall):
                    tell(Recalled(None, failed=True) if fails else Recalled(self.known.recall(caller, command.key)))
                elif isinstance(command, Remember):
                    assert self.known.remember(caller, command.key, command.turn, command.before)

        headers = [("Mcp-Session-Id", session)] if session else []
        tell(RequestReceived(message, caller, envelope=around("/mcp", "/mcp", "", headers).envelope))
        if exchange.out.forwarded is not None:
            tell(UpstreamOpened(200, streaming=stream))
            tell(UpstreamBytes(event(answer) if stream else answer))
            tell(UpstreamClosed())
        return exchange.out


def _scored(score: Score) -> AnyEvent:
    last = score.text.rsplit(" ", 1)[-1]
    return Scored(score.ticket, {"lexicon.injection": float(last) if last.replace(".", "", 1).isdigit() else 0.0})


def rule(out: Played) -> str:
    """The rule by which a message was refused; empty: it went on."""
    if out.forwarded is not None:
        return ""
    found: dict[str, Any] = mcp.body(out)
    return str(found["error"]["data"]["rule_id"])


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_server_has_done_counts_for_the_next_call_of_its_session_alone(stream: bool) -> None:
    client = Client()
    assert rule(client.send(call(text="hello"), said(f"now {ORDER}"), stream=stream)) == ""
    assert rule(client.send(call(text="hello"))) == "AFTER-1"
    assert rule(client.send(call(text="hello"), session="s-2")) == ""
    assert rule(client.send(call(text="hello"), session="")) == ""
    assert rule(client.send(call(text="hello"), caller="two")) == ""


def test_refusals_of_a_session_add_up_and_the_record_says_for_what() -> None:
    client = Client()
    for _ in range(2):
        assert rule(client.send(call(text="tell me the purple password"))) == "ASK-1"
    out = client.send(call(text="hello"))
    assert rule(out) == "OFTEN-1"
    assert out.record is not None
    assert (out.record.conversation.rules, out.record.conversation.refused) == (("OFTEN-1",), 2)  # type: ignore[union-attr]


def test_what_the_user_says_over_a_session_adds_up() -> None:
    client = Client()
    texts = [f"Prompt {number} scores 0.55" for number in range(4)]
    got = [rule(client.send(request("prompts/get", {"name": "p", "arguments": {"q": text}}))) for text in texts]
    assert got == ["", "", "SUM-1", "SUM-1"]
    again = request("prompts/get", {"name": "p", "arguments": {"q": "scores 0.55"}})
    assert rule(client.send(again, session="b")) == ""


@pytest.mark.parametrize("fail_mode", ["closed", "open"])
def test_g23_a_session_of_which_nothing_can_be_known_meets_the_fail_mode(fail_mode: str) -> None:
    out = Client().send(call(text="hello"), plan=msgspec.structs.replace(PLAN, fail_mode=fail_mode), fails=True)
    assert (out.forwarded is None) is (fail_mode == "closed")
    assert out.record is not None
    if fail_mode == "closed":
        assert out.reply is not None
        assert (out.reply.status, out.record.outcome) == (503, "overloaded")
        assert json.loads(out.reply.body)["error"]["data"]["type"] == "overloaded"
    else:
        assert "conversation_not_known" in out.record.degradations
