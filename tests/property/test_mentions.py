"""What a conversation has said is spared alike where its history is sent whole and where the provider keeps it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Recall, Remember, Score
from checkstream.core.conversation import MOST_VALUES, MOST_WORDS, VALUE_BYTES, WORD_BYTES, Conversation, Mentioned
from checkstream.core.conversation import Turn as Came
from checkstream.core.events import AnyEvent, Recalled, RequestReceived, Scored, UpstreamBytes, UpstreamClosed
from checkstream.core.events import UpstreamOpened as Opened
from checkstream.core.exchange.guard import Plan
from checkstream.core.match.names import APART_DIGEST, tells_digests, word_digest
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from tests import guarded, responses
from tests.chance import examples
from tests.guarded import CHAT, plan
from tests.playbook import Exchange, Played, capitalised
from tests.responses import RESPONSES, message

ROLES = ("user", "system", "tool_result", "document")
Turns = list[list[tuple[str, str]]]
"""Of each request what is said, by whom."""
KNOWN = {
    "ann.lee@a.example": "ANN.LEE [at] a.example",
    "bob@b.example": "bob@b.example",
    "+1 415 555 0132": "+1-415-555-0132",
    "Carla Weiss": "carla  WEISS",
    "Dan": "Dan's",
}
"""What is said -> another way to write it."""


def rules(roles: tuple[str, ...]) -> Plan:
    asked = ", ".join(roles)
    entities = "[EMAIL, PHONE, PERSON]"
    return plan(
        f"  - {{name: p, id: P-1, stage: [midstream], entities: {entities}, unless: in_request, in: [{asked}], "
        "actions: [{type: redact, text: '#'}]}\n",
        recalls=True,
    )


class Client:
    """Tells a conversation in one way."""

    def __init__(self, way: str, plan: Plan, *, caller: str = "one", stream: bool = False) -> None:
        self.way, self.plan, self.caller, self.stream = way, plan, caller, stream
        self.known = Conversations(MemoryStore(clock=lambda: 0.0), Seal(bytes(32)), ttl_s=60, most_bytes=1 << 20)
        self.history: list[dict[str, Any]] = []
        self.previous: str | None = None
        self.number = 0

    def ask(self, said: list[tuple[str, str]], answer: str) -> str:
        """Say something; return the answer as it came."""
        given = [self._item(role, text) for role, text in said]
        more: dict[str, Any] = {}
        if self.way == "previous" and self.previous:
            more = {"previous_response_id": self.previous}
        elif self.way == "conversation":
            more = {"conversation": "conv_1"}
        items = [*self.history, *given]
        if self.way == "chat":
            body = json.dumps({"model": "m", "stream": self.stream, "messages": items}).encode()
        else:
            body = responses.request(items, stream=self.stream, **more)
        exchange = Exchange(CHAT if self.way == "chat" else RESPONSES, self.plan, _people)
        self._tell(exchange, RequestReceived(body, self.caller))
        self.number += 1
        for event in (Opened(200, streaming=self.stream), UpstreamBytes(self._answer(answer)), UpstreamClosed()):
            self._tell(exchange, event)
        self.previous = f"resp_{self.number}"
        came = self._text(exchange.out)
        if self.way in {"chat", "history"}:
            self.history += [*given, {"role": "assistant", "content": came}]
        return came

    def _item(self, role: str, text: str) -> dict[str, Any]:
        if role == "tool_result":
            if self.way == "chat":
                return {"role": "tool", "tool_call_id": "c", "content": text}
            return {"type": "function_call_output", "call_id": "c", "output": text}
        if role == "document":
            data = "data:text/plain;base64," + b64encode(text.encode()).decode()
            file = {"filename": "a.txt", "file_data": data}
            part = {"type": "file", "file": file} if self.way == "chat" else {"type": "input_file", **file}
            return {"role": "user", "content": [part]}
        return {"role": role, "content": text}

    def _answer(self, text: str) -> bytes:
        if self.way == "chat":
            events = [guarded.says(text), guarded.ends(), guarded.DONE]
            return b"".join(events) if self.stream else guarded.whole(text)
        item = message(text, id=f"msg_{self.number}")
        whole = responses.answer(item) if self.stream else responses.whole(item)
        return whole.replace(b'"resp_1"', f'"resp_{self.number}"'.encode())

    def _text(self, out: Played) -> str:
        if self.way == "chat":
            if self.stream:
                return guarded.text_of(out)
            assert out.reply is not None
            text: str = json.loads(out.reply.body)["choices"][0]["message"]["content"]
            return text
        if self.stream:
            lines = [line for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
            events = [json.loads(line[6:]) for line in lines]
            return "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        assert out.reply is not None
        body = json.loads(out.reply.body)
        return "".join(part["text"] for item in body["output"] for part in item["content"])

    def _tell(self, exchange: Exchange, event: AnyEvent) -> None:
        done = len(exchange.out.commands)
        exchange.send(event)
        for command in exchange.out.commands[done:]:
            if isinstance(command, Recall):
                self._tell(exchange, Recalled(self.known.recall(self.caller, command.key)))
            elif isinstance(command, Remember):
                assert self.known.remember(self.caller, command.key, command.turn, command.before)


def _people(score: Score) -> AnyEvent:
    """Call a person what is written as the names here are."""
    scored = capitalised(score)
    assert isinstance(scored, Scored)
    found = [each for each in scored.entities if score.text[each.start : each.end] in {"Carla Weiss", "Dan"}]
    return msgspec.structs.replace(scored, entities=tuple(found))


said = st.tuples(st.sampled_from(ROLES), st.sampled_from(sorted(KNOWN)), st.booleans())
turns = st.lists(st.lists(said, max_size=3), min_size=1, max_size=4)


@settings(max_examples=examples(25), deadline=None)
@given(turns, st.lists(st.sampled_from(ROLES), min_size=1, unique=True), st.booleans())
def test_g03_the_way_in_which_a_conversation_is_told_changes_nothing_of_what_is_spared(
    told: list[list[tuple[str, str, bool]]], roles: list[str], stream: bool
) -> None:
    asked = rules(tuple(roles))
    clients = [Client(way, asked, stream=stream) for way in ("chat", "history", "previous", "conversation")]
    answer = "".join(f"see {value} ; " for value in KNOWN)
    known = set[str]()
    for turn in told:
        known.update(value for role, value, _ in turn if role in roles)
        asks = [("user", "and now?"), *((role, f"it is {KNOWN[v] if way else v} ok") for role, v, way in turn)]
        expected = "".join(f"see {value if value in known else '#'} ; " for value in KNOWN)
        assert [client.ask(asks, answer) for client in clients] == [expected] * len(clients)


@pytest.mark.parametrize("way", ["previous", "conversation"])
def test_what_one_caller_has_said_another_does_not_have(way: str) -> None:
    one = Client(way, rules(("user",)))
    assert one.ask([("user", "I am Dan, bob@b.example")], "Dan, bob@b.example") == "Dan, bob@b.example"
    two = Client(way, one.plan, caller="two")
    two.known, two.previous, two.number = one.known, one.previous, 1
    assert two.ask([("user", "and?")], "Dan, bob@b.example") == "#, #"
    assert one.ask([("user", "and?")], "Dan, bob@b.example") == "Dan, bob@b.example"


@pytest.mark.parametrize("way", ["previous", "conversation"])
def test_what_is_kept_has_nothing_of_what_was_said(way: str) -> None:
    client = Client(way, rules(("user",)))
    seen: list[Came] = []
    keep = client.known.remember

    def remember(caller: str, key: str, turn: Came, on_top_of: Conversation | None = None) -> bool:
        seen.append(turn)
        return keep(caller, key, turn, on_top_of)

    client.known.remember = remember  # type: ignore[method-assign]
    client.ask([("user", "I am Dan, bob@b.example")], "Fine.")
    kept = [turn.mentioned for turn in seen if turn.mentioned]
    assert kept
    assert all(each.values.keys() == each.words.keys() == {"user"} for each in kept)
    written = msgspec.msgpack.encode(seen)
    assert not any(word in written for word in (b"bob", b"dan", b"Dan", b"example"))


@pytest.mark.parametrize("rule", [guarded.MAIL, guarded.TOX])
def test_policies_that_spare_nothing_have_nothing_kept(rule: str) -> None:
    client = Client("previous", plan(rule, recalls=True))
    seen = Exchange(RESPONSES, client.plan)
    client._tell(seen, RequestReceived(responses.request("I am bob@b.example"), "one"))
    conversation = seen.guard._course.prompt.conversation
    assert (conversation.mentions.key, bool(conversation.mentions.new)) == (b"", False)


pieces = st.lists(st.integers(0, 900), max_size=600)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(pieces, max_size=4))
def test_of_many_values_the_latest_are_known(said: list[list[int]]) -> None:
    kept, order = Mentioned(), dict[int, None]()
    for given_ in said:
        turn = list(dict.fromkeys(given_))[-MOST_VALUES:]
        kept = kept.after(Mentioned({"user": b"".join(each.to_bytes(VALUE_BYTES) for each in turn)}))
        for each in turn:
            order.pop(each, None)
            order[each] = None
    latest = b"".join(each.to_bytes(VALUE_BYTES) for each in list(order)[-MOST_VALUES:])
    assert kept.values.get("user", b"") == latest


words = st.lists(st.sampled_from(["a", "b", "ab", "\u5f20", "c"]), max_size=6)


@given(st.lists(words, max_size=4), words)
def test_a_name_is_found_among_digests_where_its_words_stand_one_after_the_other(
    texts: list[list[str]], name: list[str]
) -> None:
    heard = b"".join(b"".join(word_digest(word, b"k") for word in text) + APART_DIGEST for text in texts)
    stands = any(text[at : at + len(name)] == name for text in texts for at in range(len(text) - len(name) + 1))
    assert tells_digests(heard, " ".join(name), b"k") is (bool(name) and stands)


def test_words_beyond_the_bound_are_forgotten_whole() -> None:
    kept = Mentioned().after(Mentioned(words={"user": b"12345" * MOST_WORDS}))
    kept = kept.after(Mentioned(words={"user": b"abcde"}))
    assert len(kept.words["user"]) == MOST_WORDS * WORD_BYTES
    assert kept.words["user"].endswith(b"12345abcde")
