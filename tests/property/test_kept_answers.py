"""Answers that the provider keeps: asked for again they repeat their request, and what the caller has sent stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import KeepNames, Recall, RecallNames, Remember
from checkstream.core.conversation import KEY_BYTES, MOST_SENT, Conversation, Turn
from checkstream.core.events import (
    AnyEvent,
    Envelope,
    NamesKept,
    NamesKnown,
    Recalled,
    RequestReceived,
    Said,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from tests import responses
from tests.chance import examples
from tests.guarded import plan
from tests.playbook import Exchange, Played
from tests.responses import RESPONSES, message

STORED = SURFACES["openai.responses.stored"]
CARD, OTHER = "4111 1111 1111 1111", "5555 5555 5555 4444"
CARDS = "  - {name: c, id: PCI-1, stage: [midstream], entities: [CREDIT_CARD], actions: [{type: redact}]}\n"
STOPS = "  - {name: c, id: PCI-1, stage: [midstream], entities: [CREDIT_CARD], actions: [{type: stop}]}\n"
NAMES = "  - {name: n, id: N-1, stage: [ingress], entities: [EMAIL], actions: [{type: pseudonymise}]}\n"
MAIL = "ann.lee@northwind.example"
SAYS: dict[str, Any] = {
    "instructions": f"The card is {CARD}.",
    "metadata": {"card": CARD, CARD: "yes"},
    "tools": [{"type": "function", "name": "pay", "description": f"Pays by {CARD}.", "parameters": {"type": "object"}}],
    "user": f"u-{CARD}",
}
SENT: dict[str, Any] = {
    **SAYS,
    "input": [{"role": "user", "content": [{"type": "input_text", "text": f"Pay with {CARD}."}]}],
}


class Provider:
    """Keeps what was forwarded to it, and says it again."""

    def __init__(self, rules: str = CARDS, **settings: Any) -> None:
        self.plan = plan(rules, recalls=True, upstream="p", **settings)
        self.known = Conversations(MemoryStore(clock=lambda: 0.0), Seal(bytes(32)), ttl_s=60, most_bytes=1 << 20)
        self.names: dict[str, bytes] = {}
        self.turns: list[Turn] = []
        self.request: dict[str, Any] = {}
        self.spoken = "Done."

    def ask(self, caller: str = "one", **body: Any) -> Played:
        """Ask for an answer."""
        asked = RequestReceived(json.dumps({"model": "gpt", **body}).encode(), caller)

        def answer(forwarded: bytes) -> bytes:
            self.request = json.loads(forwarded)
            return responses.whole(message(self.spoken), **self._echo())

        return self._play(RESPONSES, asked, answer, caller)

    def again(self, caller: str = "one", *, stream: bool = False, answer: str = "resp_1", **more: Any) -> Played:
        """Ask for the answer once more."""
        item = message(self.spoken)
        told = self._echo() | more
        body = responses.answer(item, **told) if stream else responses.whole(item, **told)
        return self._get(body, caller, answer, stream=stream)

    def items(self, caller: str = "one", *more: Any) -> Played:
        """Ask for what it was asked with."""
        given = self.request["input"]
        listed = [{"role": "user", "content": given}] if isinstance(given, str) else given
        listed = [{"type": "message", "id": f"msg_in_{at}", **each} for at, each in enumerate(listed)]
        return self._get(json.dumps({"object": "list", "data": [*listed, *more], "has_more": False}).encode(), caller)

    def _echo(self) -> dict[str, Any]:
        return {name: self.request[name] for name in SAYS if name in self.request}

    def _get(self, body: bytes, caller: str, answer: str = "resp_1", *, stream: bool = False) -> Played:
        said = (Said("path", "id", answer),)
        asked = RequestReceived(b"", caller, envelope=Envelope(said=said))
        return self._play(STORED, asked, lambda _: body, caller, stream=stream)

    def _play(
        self, surface: Surface, asked: RequestReceived, answer: Callable[[bytes], bytes], caller: str, *,
        stream: bool = False,
    ) -> Played:  # fmt: skip
        exchange = Exchange(surface, self.plan)
        self._tell(exchange, asked, caller)
        assert exchange.out.forwarded is not None
        self._tell(exchange, UpstreamOpened(200, streaming=stream), caller)
        self._tell(exchange, UpstreamBytes(answer(exchange.out.forwarded)), caller)
        if exchange.out.record is None:
            self._tell(exchange, UpstreamClosed(), caller)
        return exchange.out

    def _tell(self, exchange: Exchange, event: AnyEvent, caller: str) -> None:
        done = len(exchange.out.commands)
        exchange.send(event)
        for command in exchange.out.commands[done:]:
            match command:
                case Recall():
                    self._tell(exchange, Recalled(self.known.recall(caller, command.key)), caller)
                case Remember():
                    self.turns.append(command.turn)
                    assert self.known.remember(caller, command.key, command.turn, command.before)
                case RecallNames():
                    self._tell(exchange, NamesKnown(self.names.get(command.conversation)), caller)
                case KeepNames():
                    self.names[command.conversation] = command.state
                    if not command.later:
                        self._tell(exchange, NamesKept(), caller)


def came(out: Played) -> str:
    """Return all that the caller got."""
    return out.joined.decode() if out.reply is None else out.reply.body.decode()


STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@STREAMS
@pytest.mark.parametrize("rules", [CARDS, STOPS], ids=["redact", "stop"])
def test_what_the_caller_has_sent_is_told_again_as_it_was(rules: str, stream: bool) -> None:
    provider = Provider(rules)
    provider.ask(**SENT)
    out = provider.again(stream=stream)
    assert out.record is not None
    assert (out.record.action, out.record.outcome) == ("allow", "complete")
    told = responses.read(out.joined) if stream else json.loads(came(out))
    assert {name: told[name] for name in SAYS} == SAYS
    listed = json.loads(came(provider.items()))
    assert listed["data"][0]["content"] == SENT["input"][0]["content"]


@STREAMS
def test_what_nobody_here_knows_is_read_as_the_rest(stream: bool) -> None:
    provider = Provider()
    provider.ask(**SENT)
    assert CARD not in came(provider.again("two", stream=stream)), "another caller's"
    assert CARD not in came(provider.again(stream=stream, answer="resp_2")), "another answer's"
    assert CARD not in came(provider.items("two"))
    provider.ask(**SENT, store=False)
    provider = Provider()
    provider.ask(**SENT, store=False)
    assert CARD not in came(provider.again(stream=stream)), "not kept"


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "instructions": lambda text: {"instructions": text},
    "behind instructions": lambda text: {"instructions": f"{SAYS['instructions']} {text}"},
    "metadata": lambda text: {"metadata": {"card": CARD, "b": text}},
    "name": lambda text: {"metadata": {text: CARD}},
    "tools": lambda text: {"tools": [{"type": "function", "name": "pay", "description": text}]},
    "nobody knows": lambda text: {"x_more": {"card": CARD, "b": text}},
    "number": lambda text: {"metadata": {"n": int(text.replace(" ", ""))}},
    "usage": lambda text: {"usage": {"note": text}},
}


@STREAMS
@pytest.mark.parametrize("place", sorted(PLACES))
def test_g34_what_the_caller_has_not_sent_is_read_wherever_it_stands(place: str, stream: bool) -> None:
    provider = Provider()
    provider.ask(**SENT)
    told = came(provider.again(stream=stream, **PLACES[place](OTHER)))
    assert OTHER not in told
    assert OTHER.replace(" ", "") not in told


@STREAMS
def test_g34_what_the_model_says_is_its_own_though_the_caller_has_said_it_before(stream: bool) -> None:
    provider = Provider()
    provider.spoken = f"Pay with {CARD}."
    provider.ask(**SENT)
    out = provider.again(stream=stream)
    told = responses.read(out.joined) if stream else json.loads(came(out))
    assert responses.said(told) == "Pay with [CREDIT_CARD]."
    assert "[CREDIT_CARD]" in came(provider.again(stream=stream, x_more=f"Pay with {CARD}.")).split('"x_more"')[1]


def test_g34_of_a_list_what_the_caller_has_not_sent_is_read() -> None:
    provider = Provider()
    provider.ask(**SENT)
    more = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": OTHER}]}
    told = json.loads(came(provider.items("one", more)))
    assert CARD in json.dumps(told["data"][0])
    assert OTHER not in json.dumps(told)
    assert "[CREDIT_CARD]" in json.dumps(told["data"][1])


def test_names_of_the_request_come_back_where_it_is_told_again() -> None:
    provider = Provider(CARDS + NAMES, keeps_names=True)
    provider.ask(input=f"Write to {MAIL}.", instructions=f"Ask {MAIL} by {CARD}.", metadata={"card": CARD})
    assert MAIL not in json.dumps(provider.request)
    told = json.loads(came(provider.again()))
    assert told["metadata"] == {"card": CARD}
    assert told["instructions"] == f"Ask {MAIL} by [CREDIT_CARD]."  # read again, since something comes back in it
    assert json.loads(came(provider.items()))["data"][0]["content"] == f"Write to {MAIL}."


def test_what_goes_on_from_an_answer_knows_what_was_sent_before_it() -> None:
    provider = Provider()
    provider.ask(**SENT)
    first = provider.request
    provider.ask(input="And now?", previous_response_id="resp_1")
    provider.request = first
    assert CARD in came(provider.items())


def test_g22_what_is_kept_of_a_request_has_a_bound_and_no_text() -> None:
    provider = Provider()
    many = [{"role": "user", "content": f"Part {number} of {CARD}"} for number in range(3 * MOST_SENT)]
    provider.ask(input=many, metadata={"card": CARD})
    (kept,) = (turn.sent for turn in provider.turns if turn.sent)
    assert 0 < len(kept) <= MOST_SENT * KEY_BYTES
    told = json.loads(came(provider.items()))["data"]
    assert CARD in told[-1]["content"]
    assert CARD not in told[0]["content"]
    assert json.loads(came(provider.again()))["metadata"] == {"card": CARD}
    conversation = Conversation()
    for _ in range(3):
        conversation = conversation.after(Turn(sent=kept)).after(Turn(sent=bytes(range(KEY_BYTES))))
    assert len(conversation.sent) <= MOST_SENT * KEY_BYTES
    assert conversation.sent.endswith(bytes(range(KEY_BYTES)))


texts = st.text(st.sampled_from(' ."\\\n\u00e9\U0001f600a1'), max_size=9).map(lambda text: f"{text} {CARD}{text}")


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(texts, texts, max_size=4), texts, st.lists(texts, min_size=1, max_size=4), st.booleans())
def test_whatever_was_sent_is_told_again_as_it_was(
    metadata: dict[str, str], instructions: str, said: list[str], stream: bool
) -> None:
    provider = Provider(STOPS)
    provider.ask(metadata=metadata, instructions=instructions, input=[{"role": "user", "content": t} for t in said])
    out = provider.again(stream=stream)
    told = responses.read(out.joined) if stream else json.loads(came(out))
    assert (told["metadata"], told["instructions"]) == (metadata, instructions)
    assert [each["content"] for each in json.loads(came(provider.items()))["data"]] == said
