"""Which conversation a request is part of, where the provider keeps it: told by its id, or the last answer's."""

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
from checkstream.core.wire.surfaces import SURFACES
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from tests.guarded import plan
from tests.playbook import Exchange, Played

SURFACE = SURFACES["openai.responses"]
PLAN = plan(
    "  - {name: s, id: SEEN-1, stage: [ingress], channels: [user], phrases: [red flag], actions: [{type: log_event}]}\n"
    "  - {name: n, id: NO-1, stage: [ingress], channels: [user], phrases: [nonsense], actions: [{type: reject}]}\n"
    "  - {name: g, id: AGAIN-1, stage: [ingress], conditions: "
    "['conversation.fired[\"SEEN-1\"] > 0'], actions: [{type: log_event}]}\n"
    "  - {name: r, id: OFTEN-1, stage: [ingress], conditions: [conversation.refused > 1], actions: [{type: reject}]}\n",
    recalls=True,
)


def _answer(name: str, said: str = "Fine.") -> dict[str, Any]:
    part = {"type": "output_text", "text": said, "annotations": []}
    thought = {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    message = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]}
    return {"id": name, "object": "response", "status": "completed", "model": "m", "output": [thought, message]}


def _events(answer: dict[str, Any]) -> bytes:
    begun = {**answer, "status": "in_progress", "output": []}
    events = [
        {"type": "response.created", "response": begun},
        *(
            {"type": f"response.output_item.{step}", "output_index": at, "item": item}
            for at, item in enumerate(answer["output"])
            for step in ("added", "done")
        ),
        {"type": "response.completed", "response": answer},
    ]
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


class Client:
    """Sends requests that are guarded one after the other, with one memory."""

    def __init__(self, plan: Plan = PLAN) -> None:
        self.plan = plan
        self.store = MemoryStore(clock=lambda: 0.0)
        self.known = Conversations(self.store, Seal(bytes(32)), ttl_s=60, most_bytes=1 << 20)

    def ask(
        self, said: object, answer: str = "resp_1", *, caller: str = "one", stream: bool = False, **more: Any
    ) -> Played:
        body = json.dumps({"model": "m", "input": said, "stream": stream, **more}).encode()
        return self._tell(SURFACE, RequestReceived(body, caller), answer, stream=stream)

    def get(self, answer: str, *, caller: str = "one") -> Played:
        """Ask for an answer that the provider keeps."""
        return self._tell(SURFACES["openai.responses.stored"], RequestReceived(b"", caller, method="GET"), answer)

    def _tell(self, surface: Any, asked: RequestReceived, answer: str, *, stream: bool = False) -> Played:
        exchange = Exchange(surface, self.plan, _recent)
        caller = asked.caller or ""

        def tell(event: AnyEvent) -> None:
            done = len(exchange.out.commands)
            exchange.send(event)
            for command in exchange.out.commands[done:]:
                if isinstance(command, Recall):
                    tell(Recalled(self.known.recall(caller, command.key)))
                elif isinstance(command, Remember):
                    assert self.known.remember(caller, command.key, command.turn, command.before)

        tell(asked)
        if exchange.out.forwarded is not None:
            whole = _answer(answer)
            tell(UpstreamOpened(200, streaming=stream))
            tell(UpstreamBytes(_events(whole) if stream else json.dumps(whole).encode()))
            tell(UpstreamClosed())
        return exchange.out


def fired(out: Played) -> list[str]:
    assert out.record is not None
    return sorted({verdict.rule_id for verdict in out.record.verdicts})


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_goes_on_from_the_answer_that_it_names(stream: bool) -> None:
    client = Client()
    first = client.ask("A red flag", "resp_1", stream=stream)
    second = client.ask("Go on.", "resp_2", stream=stream, previous_response_id="resp_1")
    third = client.ask("And then?", "resp_3", stream=stream, previous_response_id="resp_2")
    assert [fired(each) for each in (first, second, third)] == [["SEEN-1"], ["AGAIN-1"], ["AGAIN-1"]]
    records = [each.record.conversation for each in (first, second, third) if each.record is not None]
    assert [each.turns for each in records] == [1, 2, 3]  # type: ignore[union-attr]
    assert len({each.id for each in records}) == 1  # type: ignore[union-attr]
    other = client.ask("Go on.", "resp_4", stream=stream, previous_response_id="resp_0")
    assert fired(other) == []


def test_to_ask_for_an_answer_that_is_kept_is_no_turn_of_its_conversation() -> None:
    client = Client()
    client.ask("A red flag", "resp_1")
    client.ask("Go on.", "resp_2", previous_response_id="resp_1")
    client.get("resp_2")
    third = client.ask("And then?", "resp_3", previous_response_id="resp_2")
    assert fired(third) == ["AGAIN-1"]


def test_two_requests_that_go_on_from_one_answer_know_nothing_of_each_other() -> None:
    client = Client()
    client.ask("Hello", "resp_1")
    client.ask("A red flag", "resp_2", previous_response_id="resp_1")
    assert fired(client.ask("Go on.", "resp_3", previous_response_id="resp_1")) == []
    assert fired(client.ask("Go on.", "resp_4", previous_response_id="resp_2")) == ["AGAIN-1"]


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_that_the_provider_keeps_is_one(conversation: object) -> None:
    client = Client()
    client.ask("A red flag", "resp_1", conversation=conversation)
    assert fired(client.ask("Go on.", "resp_2", conversation="conv_1")) == ["AGAIN-1"]
    assert fired(client.ask("Go on.", "resp_3", conversation="conv_2")) == []
    assert fired(client.ask("Go on.", "resp_4", previous_response_id="resp_2")) == ["AGAIN-1"]
    named = client.ask("Go on.", "resp_5", checkstream={"conversation": "conv_1"})
    assert fired(named) == []  # the caller's name is another than the provider's


def test_nobody_goes_on_with_another_callers_answer() -> None:
    client = Client()
    client.ask("A red flag", "resp_1", conversation="conv_1")
    client.ask("A red flag", "resp_2")
    mine: list[dict[str, Any]] = [{"previous_response_id": f"resp_{n}"} for n in (1, 2)]
    for more in (*mine, {"conversation": "conv_1"}):
        assert fired(client.ask("Go on.", "resp_1", caller="two", **more)) == []
    assert fired(client.ask("Go on.", "resp_3", previous_response_id="resp_2")) == ["AGAIN-1"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_of_items_that_is_sent_again_is_recognised(stream: bool) -> None:
    client = Client()
    client.ask("A red flag", "resp_1", stream=stream, store=False)
    said = [{"role": "user", "content": "A red flag"}, *_answer("resp_1")["output"], {"role": "user", "content": "Hm"}]
    assert fired(client.ask(said, "resp_2", stream=stream)) == ["AGAIN-1", "SEEN-1"]


@pytest.mark.parametrize("more", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_refusals_add_up_where_a_request_goes_on_from_what_only_one_has(more: dict[str, Any]) -> None:
    client = Client()
    client.ask("Hello", "resp_1", conversation=more.get("conversation"))
    assert fired(client.ask("nonsense", **more)) == ["NO-1"]
    assert fired(client.ask("nonsense indeed", **more)) == ["NO-1"]
    assert fired(client.ask("And now?", **more)) == ["OFTEN-1"]
    assert fired(client.ask("And now?")) == []


def test_who_has_begun_alike_does_not_answer_for_anothers_refusals() -> None:
    client = Client()
    begun = [{"role": "user", "content": "Hello"}, *_answer("resp_1")["output"]]
    client.ask("Hello", "resp_1")
    for _ in range(3):
        assert fired(client.ask([*begun, {"role": "user", "content": "nonsense"}])) == ["NO-1"]
    assert fired(client.ask([*begun, {"role": "user", "content": "And now?"}])) == []


def test_names_of_any_length_are_told_apart() -> None:
    client = Client()
    client.ask("A red flag", "resp_1", conversation="c" * 100_000)
    assert fired(client.ask("Go on.", "resp_2", conversation="c" * 100_000)) == ["AGAIN-1"]
    assert fired(client.ask("Go on.", "resp_3", conversation="c" * 100_001)) == []


def _recent(score: Score) -> AnyEvent:
    value = 0.6 * ("alpha" in score.text) + 0.39 * ("omega" in score.text)
    return Scored(score.ticket, {"lexicon.injection": value, "lexicon.toxicity": 0.0})


RECENT = plan(
    "  - {name: r, id: SUM-2, stage: [ingress], conditions: [conversation.recent.injection > 0.95], "
    "actions: [{type: reject}]}\n",
    recalls=True,
)


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("between", [0, 1, 2])
@pytest.mark.parametrize("by_name", [True, False])
def test_what_was_said_in_earlier_requests_is_read_with_what_is_said_now(
    keeps: bool, between: int, by_name: bool
) -> None:
    client = Client(msgspec.structs.replace(RECENT, recalls_texts=keeps))

    def ask(text: str, number: int, **more: Any) -> Played:
        more |= {"conversation": "conv_1"} if by_name else {"previous_response_id": f"resp_{number}"}
        return client.ask(text, f"resp_{number + 1}", **more)

    assert fired(ask("The first is alpha.", 0)) == []
    for number in range(between):
        assert fired(ask(f"Calm text {number}.", number + 1)) == []
    assert fired(ask("And omega?", between + 1, caller="two")) == []
    last = ask("And omega?", between + 1)
    assert fired(last) == (["SUM-2"] if keeps and between < 2 else [])
    shares = client.store._shares.values()
    assert all(b"alpha" not in entry.sealed for share in shares for entry in share.values())
    if keeps and between < 2:
        assert last.reply is not None


@pytest.mark.parametrize(("between", "chars", "refused"), [(2, 9, True), (6, 9, True), (7, 9, False), (2, 150, False)])
@pytest.mark.parametrize("by_name", [True, False])
def test_more_of_what_was_said_in_earlier_requests_is_read_where_it_is_short(
    between: int, chars: int, refused: bool, by_name: bool
) -> None:
    program = plan(
        "  - {name: r, id: SUM-2, stage: [ingress], conditions: [conversation.short.injection > 0.95], "
        "actions: [{type: reject}]}\n",
        recalls=True,
    )
    client = Client(msgspec.structs.replace(program, recalls_texts=True))
    texts = ["It is alpha.", *(f"Calm {number}.".ljust(chars, "!") for number in range(between)), "And omega?"]
    found = []
    for number, text in enumerate(texts):
        more: dict[str, Any] = {"conversation": "conv_1"} if by_name else {"previous_response_id": f"resp_{number}"}
        found += fired(client.ask(text, f"resp_{number + 1}", **more))
    assert found == (["SUM-2"] if refused else [])


def test_a_caller_that_names_a_conversation_and_sends_its_history_says_each_text_once() -> None:
    client = Client(msgspec.structs.replace(RECENT, recalls_texts=True))
    history: list[dict[str, object]] = []
    for number, text in enumerate(["The first is alpha.", *(f"Calm {number}." for number in range(1)), "And omega?"]):
        history.append({"role": "user", "content": text})
        out = client.ask(history, f"resp_{number}", checkstream={"conversation": "c"})
        assert fired(out) == (["SUM-2"] if number == 2 else [])
        history += _answer("resp")["output"]
