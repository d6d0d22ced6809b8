"""Names that a conversation keeps: the same over its requests, also where two come at once (G38)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import ForwardRequest, KeepNames, RecallNames, Reply
from checkstream.core.events import (
    AnyEvent,
    Envelope,
    NamesFailed,
    NamesKept,
    NamesKnown,
    RequestReceived,
    Said,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Plan
from checkstream.core.wire.surfaces import SURFACES
from tests import responses
from tests.guarded import CHAT, DONE, ends, plan, says
from tests.playbook import Exchange

RULES = "  - {name: p, id: PSN-1, entities: [EMAIL], actions: [{type: pseudonymise}]}\n"
PLAN = msgspec.structs.replace(plan(RULES), keeps_names=True)


class Kept:
    """A store of one conversation, as a vault shows it."""

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.version = 0

    def answer(self, command: RecallNames | KeepNames) -> AnyEvent:
        if isinstance(command, KeepNames) and command.seen == self.version:
            self.state, self.version = command.state, self.version + 1
            return NamesKept()
        return NamesKnown(self.state, self.version)


class Shared:
    """A store of several, as a vault shows it."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}

    def answer(self, command: RecallNames | KeepNames) -> AnyEvent:
        return self.kept.setdefault(command.conversation, Kept()).answer(command)


def asked(prompt: str, conversation: str | None = "c") -> RequestReceived:
    extension = {"checkstream": {"conversation": conversation}} if conversation else {}
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}], **extension}
    return RequestReceived(json.dumps(body).encode(), "app")


def pending(exchange: Exchange) -> RecallNames | KeepNames | None:
    last = exchange.out.commands[-1]
    return last if isinstance(last, RecallNames | KeepNames) else None


def settle(exchange: Exchange, kept: Kept) -> str:
    """Answer from the store until the prompt is forwarded; return it as the model gets it."""
    while (command := pending(exchange)) is not None:
        exchange.send(kept.answer(command))
    assert exchange.out.forwarded is not None, exchange.out.reply
    said: str = json.loads(exchange.out.forwarded)["messages"][0]["content"]
    return said


def answer(exchange: Exchange, text: str) -> str:
    came: list[AnyEvent] = [
        UpstreamOpened(200, True),
        *map(UpstreamBytes, (says(text), ends(), DONE)),
        UpstreamClosed(),
    ]
    for event in came:
        exchange.send(event)
    events = [json.loads(line[6:]) for line in exchange.out.joined.split(b"\n") if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for one in events for choice in one["choices"])


def begun(prompt: str, conversation: str | None = "c", settings: Plan = PLAN) -> Exchange:
    exchange = Exchange(CHAT, settings)
    exchange.send(asked(prompt, conversation))
    return exchange


def test_g38_names_are_the_same_over_the_requests_of_a_conversation() -> None:
    kept = Kept()
    first = begun("Ask ann@x.io and bob@y.io.")
    assert settle(first, kept) == "Ask <EMAIL_1> and <EMAIL_2>."
    second = begun("Ask BOB@y.io and eve@z.io.")
    assert settle(second, kept) == "Ask <EMAIL_2> and <EMAIL_3>."
    assert answer(second, "<EMAIL_1>, <EMAIL_2>, <EMAIL_3>, <EMAIL_4>") == "ann@x.io, bob@y.io, eve@z.io, <EMAIL_4>"
    third = begun("And the first?")
    assert settle(third, kept) == "And the first?"
    assert kept.version == 2
    assert answer(third, "It is email 1.") == "It is ann@x.io."
    assert third.out.record is not None
    assert "x.io" not in str(third.out.record)


def test_g38_of_two_requests_at_once_neither_names_somebody_else() -> None:
    kept = Kept()
    one, two = begun("Ask ann@x.io."), begun("Ask bob@y.io.")
    for exchange in (one, two):  # both have read the store before either has written
        command = pending(exchange)
        assert isinstance(command, RecallNames)
        exchange.send(kept.answer(command))
    assert settle(one, kept) == "Ask <EMAIL_1>."
    assert settle(two, kept) == "Ask <EMAIL_2>."
    assert answer(one, "<EMAIL_1> <EMAIL_2>") == "ann@x.io <EMAIL_2>"
    assert answer(two, "<EMAIL_1> <EMAIL_2>") == "ann@x.io bob@y.io"


def test_g38_without_a_name_or_a_store_names_are_of_one_request() -> None:
    for exchange in (begun("Ask ann@x.io.", None), begun("Ask ann@x.io.", "c", plan(RULES))):
        assert not any(isinstance(command, RecallNames | KeepNames) for command in exchange.out.commands)
        assert exchange.out.forwarded is not None


@pytest.mark.parametrize("fault", [NamesFailed(), NamesKnown(b"{}", 3), NamesKnown(b'[["EMAIL",0,"k","v",true]]', 3)])
def test_g38_names_that_can_not_be_read_meet_the_fail_mode(fault: AnyEvent) -> None:
    closed = begun("Ask ann@x.io.")
    closed.send(fault)
    assert isinstance(closed.out.reply, Reply)
    assert closed.out.reply.status == 503
    assert closed.out.forwarded is None
    opened = begun("Ask ann@x.io.", settings=msgspec.structs.replace(PLAN, fail_mode="open"))
    opened.send(fault)
    assert opened.out.forwarded is not None
    assert b"ann@x.io" not in opened.out.forwarded
    assert answer(opened, "<EMAIL_1>") == "ann@x.io"
    assert opened.out.record is not None
    assert opened.out.record.degradations == ("names_not_kept",)


STYLES = pytest.mark.parametrize("style", ["label", "surrogate"])


def styled(style: str) -> Plan:
    return plan(RULES.replace("pseudonymise}", f"pseudonymise, style: {style}}}"))


def gone_on(store: Shared, prompt: str, said: str, style: str, number: int, **kept: Any) -> tuple[str, str]:
    """Ask, and answer with the id `resp_NUMBER`; return what the model gets and what its caller reads."""
    settings = msgspec.structs.replace(styled(style), keeps_names=True)
    exchange = Exchange(responses.RESPONSES, settings)
    exchange.send(RequestReceived(responses.request(prompt, **kept), "app"))
    while isinstance(command := exchange.out.commands[-1], RecallNames | KeepNames):
        exchange.send(store.answer(command))
    assert exchange.out.forwarded is not None, exchange.out.reply
    forwarded: str = json.loads(exchange.out.forwarded)["input"]
    answer = responses.answer(responses.message(said or forwarded)).replace(b"resp_1", b"resp_%d" % number)
    for came in (UpstreamOpened(200, streaming=True), UpstreamBytes(answer), UpstreamClosed()):
        exchange.send(came)
    for command in exchange.out.commands:
        if isinstance(command, KeepNames) and command.later:
            assert isinstance(store.answer(command), NamesKept)
    return forwarded, responses.read(exchange.out.joined)["output"][0]["content"][0]["text"]


@STYLES
@pytest.mark.parametrize("by", ["previous_response_id", "conversation"])
def test_g38_names_are_the_same_where_the_provider_keeps_the_history(style: str, by: str) -> None:
    store = Shared()

    def then(number: int, prompt: str, said: str = "") -> tuple[str, str]:
        kept = {"conversation": "conv_1"} if by == "conversation" else {by: f"resp_{number - 1}"} if number > 1 else {}
        return gone_on(store, prompt, said, style, number, **kept)

    ann, back = then(1, "ann@x.io")
    assert back == "ann@x.io" != ann
    assert then(2, "And?", f"It is {ann}.") == ("And?", "It is ann@x.io.")
    both, back = then(3, "bob@y.io, ANN@x.io")
    bob, again = both.split(", ")
    assert (again, back) == (ann, "bob@y.io, ann@x.io")
    assert "@y" not in bob != ann
    assert then(4, "So?", f"{ann} and {bob}.")[1] == "ann@x.io and bob@y.io."


@STYLES
def test_g38_two_answers_to_one_are_two_conversations(style: str) -> None:
    store = Shared()
    ann = gone_on(store, "ann@x.io", "", style, 1)[0]
    bob = gone_on(store, "bob@y.io", "", style, 2, previous_response_id="resp_1")[0]
    eve = gone_on(store, "eve@z.io", "", style, 3, previous_response_id="resp_1")[0]
    told = gone_on(store, "Who?", f"{ann} {bob} {eve}", style, 4, previous_response_id="resp_2")[1]
    assert told == f"ann@x.io bob@y.io {eve if eve != bob else 'bob@y.io'}"


@STYLES
def test_g38_of_a_history_that_nobody_here_knows_nothing_is_somebody_else(style: str) -> None:
    store = Shared()
    ann = gone_on(store, "ann@x.io", "", style, 1)[0]
    store.kept.clear()
    asked, told = gone_on(store, "bob@y.io", f"{ann} <EMAIL_1>", style, 2, previous_response_id="resp_1")
    assert told == f"{ann} <EMAIL_1>"
    assert asked.startswith("<EMAIL_")  # a surrogate could be that of somebody whom the history names


@STYLES
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_g38_an_answer_that_is_asked_for_again_says_what_it_said(style: str, stream: bool) -> None:
    store = Shared()
    ann, first = gone_on(store, "ann@x.io", "", style, 1)
    kept = dict(store.kept)

    def again(answer: str, by: str | None = None) -> str:
        settings = msgspec.structs.replace(styled(style), keeps_names=True)
        exchange = Exchange(SURFACES["openai.responses.stored"], settings)
        path = Envelope((Said("path", "id", answer),))
        exchange.send(RequestReceived(b"", by, envelope=path, method="GET"))
        command = exchange.out.commands[-1]
        assert isinstance(command, RecallNames)
        exchange.send(store.answer(command) if by == "app" else NamesKnown())
        item = responses.message(f"It is {ann}.")
        body = responses.answer(item) if stream else responses.whole(item)
        for came in (UpstreamOpened(200, streaming=stream), UpstreamBytes(body), UpstreamClosed()):
            exchange.send(came)
        assert not any(isinstance(command, KeepNames) for command in exchange.out.commands)
        told = responses.read(exchange.out.joined) if stream else json.loads(exchange.out.reply.body)  # type: ignore[union-attr]
        text: str = told["output"][0]["content"][0]["text"]
        return text

    assert first == "ann@x.io"
    assert again("resp_1", "app") == "It is ann@x.io."
    assert again("resp_1", "another") == again("resp_2", "app") == f"It is {ann}."
    assert {name: store.kept[name].version for name in kept} == dict.fromkeys(kept, 1)


def of_channels(*restored: str) -> Plan:
    return msgspec.structs.replace(
        plan(RULES.replace("pseudonymise}", f"pseudonymise, restore: [{', '.join(restored)}]}}")), keeps_names=True
    )


def test_g38_what_comes_back_is_for_the_policy_that_is_in_force_now() -> None:
    kept = Kept()
    settle(begun("Ask ann@x.io.", settings=of_channels("user")), kept)
    told = begun("Who?", settings=of_channels("system"))
    settle(told, kept)
    assert answer(told, "<EMAIL_1>") == "<EMAIL_1>"
    again = begun("Who?", settings=of_channels("system", "user"))
    settle(again, kept)
    assert answer(again, "<EMAIL_1>") == "ann@x.io"


def test_g38_a_rule_says_what_comes_back_of_the_channels_that_it_reads() -> None:
    """Another names the same kind elsewhere, and lets less come back."""
    rules = (
        "  - {name: p, id: PSN-1, entities: [EMAIL], channels: [user], actions: [{type: pseudonymise}]}\n"
        "  - {name: q, id: PSN-2, entities: [EMAIL], channels: [system],\n"
        "     actions: [{type: pseudonymise, restore: []}]}\n"
    )
    kept, both = Kept(), msgspec.structs.replace(plan(rules), keeps_names=True)
    body = {
        "model": "m",
        "stream": True,
        "messages": [{"role": "system", "content": "bob@y.io"}, {"role": "user", "content": "ann@x.io"}],
        "checkstream": {"conversation": "c"},
    }
    first = Exchange(CHAT, both)
    first.send(RequestReceived(json.dumps(body).encode(), "app"))
    settle(first, kept)
    for exchange in (first, begun("Who?", settings=both)):
        settle(exchange, kept)
        assert answer(exchange, "<EMAIL_1> <EMAIL_2>") == "<EMAIL_1> ann@x.io"


def test_names_that_others_change_each_time_are_given_up() -> None:
    exchange = begun("Ask ann@x.io.")
    for version in range(1, 20):
        exchange.send(NamesKnown(None, version))
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == 503
    assert not any(isinstance(command, ForwardRequest) for command in exchange.out.commands)
