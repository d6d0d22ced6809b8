"""A conversation whose history the provider keeps adds up as one does that is sent whole, for its caller alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import ConversationRecord, Recall, Remember, Score
from checkstream.core.events import AnyEvent, Recalled, RequestReceived, Scored, UpstreamBytes, UpstreamClosed
from checkstream.core.events import UpstreamOpened as Opened
from checkstream.core.exchange.guard import Plan
from checkstream.core.exchange.ingress.recollection import Recollection
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from tests import responses
from tests.chance import examples
from tests.guarded import INJ, plan
from tests.playbook import Exchange, Played, digest
from tests.responses import RESPONSES, message, reasoning

LABEL = "lexicon.injection"
RULES = (
    f"{INJ}  - {{name: sum, id: SUM-1, stage: [ingress], conditions: [conversation.risk.injection > 0.8], "
    "actions: [{type: reject, message: It adds up.}]}\n"
    "  - {name: a, id: SAID-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
    "  - {name: g, id: AGAIN-1, stage: [ingress], conditions: ['conversation.fired[\"SAID-1\"] > 0'], "
    "actions: [{type: log_event}]}\n"
)
PLAN = plan(RULES, recalls=True)
SCORES = st.lists(st.sampled_from([0.0, 0.04, 0.2, 0.4, 0.5, 0.79, 0.95]), min_size=1, max_size=6)
WAYS = ["history", "previous", "conversation", "object", "references", "thoughts"]


def memory() -> Conversations:
    return Conversations(MemoryStore(clock=lambda: 0.0), Seal(bytes(32)), ttl_s=60, most_bytes=1 << 20)


class Client:
    """Goes on with one conversation, in one of the ways in which clients of the API tell what was before."""

    def __init__(
        self, known: Conversations, way: str, *, caller: str = "one", stream: bool = False, plan: Plan = PLAN
    ) -> None:
        self.known = known
        self.plan = plan
        self.way = way
        self.caller = caller
        self.stream = stream
        self.answers = ["Fine."]
        self.ids = set[str]()
        """Of the conversation, in records."""
        self.input: list[dict[str, Any]] = []
        self.previous: str | None = None
        self.said = 0

    def say(self, text: str) -> Played:
        """Say a text that ends with its score; what was refused is taken back."""
        asked = {"role": "user", "content": text}
        more: dict[str, Any] = {}
        if self.way == "previous" and self.previous:
            more = {"previous_response_id": self.previous}
        elif self.way in ("conversation", "object"):
            more = {"conversation": "conv_1" if self.way == "conversation" else {"id": "conv_1"}}
        given: Any = [*self.input, asked] if self.input else text
        exchange = Exchange(RESPONSES, self.plan, _scored)
        self._tell(exchange, RequestReceived(responses.request(given, stream=self.stream, **more), self.caller))
        if exchange.out.forwarded is not None:
            self._answer(exchange)
            self._keep(asked)
        record = exchange.out.record
        if record is not None and isinstance(record.conversation, ConversationRecord):
            self.ids.add(record.conversation.id)
        return exchange.out

    def _answer(self, exchange: Exchange) -> None:
        self.said += 1
        number = f"{self.caller}_{self.said}"
        self.previous = f"resp_{number}"
        items = [reasoning("Hm.", id=f"rs_{number}"), *self._messages(number)]
        data = responses.answer(*items) if self.stream else responses.whole(*items)
        data = data.replace(b'"resp_1"', f'"{self.previous}"'.encode())
        for event in (Opened(200, streaming=self.stream), UpstreamBytes(data), UpstreamClosed()):
            self._tell(exchange, event)

    def _messages(self, number: str) -> list[dict[str, Any]]:
        ids = [f"msg_{number}", *(f"msg_{number}_{at}" for at in range(1, len(self.answers)))]
        return [message(text, id=each) for each, text in zip(ids, self.answers, strict=True)]

    def _keep(self, asked: dict[str, Any]) -> None:
        number = f"{self.caller}_{self.said}"
        if self.way == "history":
            self.input += [asked, reasoning("Hm.", id="rs"), *self._messages(number)]
        elif self.way == "references":
            self.input += [asked, *({"type": "item_reference", "id": f"{kind}_{number}"} for kind in ("rs", "msg"))]
        elif self.way == "thoughts":  # as some clients do: what the model said, they say themselves
            self.input += [asked, {"id": f"rs_{number}"}, {"role": "assistant", "content": self.answers[0]}]

    def _tell(self, exchange: Exchange, event: AnyEvent) -> None:
        done = len(exchange.out.commands)
        exchange.send(event)
        for command in exchange.out.commands[done:]:
            if isinstance(command, Recall):
                self._tell(exchange, Recalled(self.known.recall(self.caller, command.key)))
            elif isinstance(command, Remember):
                assert self.known.remember(self.caller, command.key, command.turn, command.before)


def _scored(score: Score) -> AnyEvent:
    last = score.text.rsplit(" ", 1)[-1]
    value = float(last) if last.replace(".", "", 1).isdigit() else 0.0
    return Scored(score.ticket, {LABEL: value, "lexicon.toxicity": 0.0})


def _told(out: Played) -> tuple[str, int, float]:
    """Return what came of a request, and what its conversation has come to."""
    assert out.record is not None
    if out.record.action == "reject":
        return "reject", 0, 0.0
    found = out.record.conversation
    return out.record.action, found.turns, found.risks[LABEL]  # type: ignore[union-attr]


@settings(max_examples=examples(12))
@given(SCORES, st.booleans())
def test_the_way_in_which_a_client_goes_on_changes_nothing(scores: list[float], stream: bool) -> None:
    clients = [Client(memory(), way, stream=stream) for way in WAYS]
    for number, score in enumerate(scores):
        came = [_told(client.say(f"Text {number} scores {score}")) for client in clients]
        assert came == [came[0]] * len(clients)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", [False, True])
def test_what_rules_found_in_an_answer_is_known_to_its_caller_alone(way: str, stream: bool) -> None:
    known = memory()
    client = Client(known, way, stream=stream)
    client.answers = ["Ask a@b.example.com."]
    first = client.say("Who? 0.4")
    client.answers = ["Ask [EMAIL]."]  # as it was sent
    client.input = json.loads(json.dumps(client.input).replace("a@b.example.com", "[EMAIL]"))
    for caller, fired in (("two", False), ("one", True)):
        other = Client(known, way, caller=caller, stream=stream)
        other.answers, other.input, other.previous = client.answers, list(client.input), client.previous
        then = other.say("And then? 0.0")
        assert then.record is not None
        assert first.record is not None
        assert ("AGAIN-1" in {verdict.rule_id for verdict in then.record.verdicts}) is fired
        same = then.record.conversation.id == first.record.conversation.id  # type: ignore[union-attr]
        assert same is fired


RECENT = plan(
    f"{RULES}  - {{name: r, id: RECENT-1, stage: [ingress], conditions: [conversation.recent.injection > 0.99], "
    "actions: [{type: log_event}]}\n",
    recalls=True,
    recalls_texts=True,
)


SHORT = plan(
    f"{RULES}  - {{name: r, id: RECENT-1, stage: [ingress], conditions: [conversation.recent.injection > 0.99 || "
    "conversation.short.injection > 0.99], actions: [{type: log_event}]}\n",
    recalls=True,
    recalls_texts=True,
)


@pytest.mark.parametrize("asked", [RECENT, SHORT], ids=["recent", "short"])
@settings(max_examples=examples(10))
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.4, 0.5, 0.7]), st.sampled_from([1, 1, 80])), min_size=1, max_size=10))
def test_what_was_said_last_is_the_same_text_in_whatever_way_a_client_goes_on(
    asked: Plan, texts: list[tuple[float, int]]
) -> None:
    clients = [Client(memory(), way, plan=asked) for way in WAYS]
    for number, (score, times) in enumerate(texts):
        outs = [client.say(f"{'Text ' * times}{number} scores {score}") for client in clients]
        read = [[each.text for each in out.commands if isinstance(each, Score) and "\n" in each.text] for out in outs]
        assert read == [read[0]] * len(clients)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_said_first_is_read_with_what_was_said_last(way: str) -> None:
    client = Client(memory(), way, plan=RECENT)
    client.say("First 0.7")
    texts = [each.text for each in client.say("Then 0.5").commands if isinstance(each, Score)]
    assert "First 0.7\nThen 0.5" in texts


def test_what_goes_on_from_one_answer_twice_are_two_conversations() -> None:
    known = memory()
    client = Client(known, "previous")
    client.say("Text scores 0.5")
    begun = client.previous
    for _ in range(3):
        client.previous = begun
        assert _told(client.say("Another scores 0.4"))[1] == 2
    client.say("Text scores 0.2")
    assert _told(client.say("Text scores 0.2"))[1] == 4  # said twice: both count


def test_refusals_count_for_the_answer_that_was_to_be_gone_on_from() -> None:
    client = Client(memory(), "previous")
    client.say("Text scores 0.0")
    for refused in range(3):
        out = client.say("This alone scores 0.95")
        assert out.record is not None
        assert (out.record.action, out.record.conversation.refused) == ("reject", refused)  # type: ignore[union-attr]
    assert _told(client.say("Text scores 0.0"))[1] == 2


def test_what_a_named_conversation_came_to_is_known_where_a_request_goes_on_from_an_answer_of_it() -> None:
    known = memory()
    named, follows = Client(known, "conversation"), Client(known, "previous")
    first = named.say("Text scores 0.5")
    follows.previous = named.previous
    then = follows.say("One scores 0.0")
    assert _told(then)[1] == 2
    assert first.record is not None
    assert then.record is not None
    assert first.record.conversation.id == then.record.conversation.id  # type: ignore[union-attr]


def test_an_answer_of_several_messages_is_told_by_its_text() -> None:
    client = Client(memory(), "history")
    client.answers = ["Let me see. ", "Fine.", " So it is."]
    for number in range(4):
        assert _told(client.say(f"Text {number} scores 0.1"))[1] == number + 1
    assert len(client.ids) == 1


def test_an_answer_that_was_not_given_here_begins_a_conversation() -> None:
    client = Client(memory(), "previous")
    client.previous = "resp_of_somebody"
    first = client.say("Text scores 0.5")
    then = client.say("Text scores 0.4")
    assert [_told(first)[1], _told(then)[1]] == [1, 2]
    assert first.record is not None
    assert then.record is not None
    assert first.record.conversation.id == then.record.conversation.id  # type: ignore[union-attr]


@given(st.lists(st.lists(st.text(max_size=5), max_size=6), max_size=6))
def test_of_the_ids_of_an_answer_three_are_kept(ids: list[list[str]]) -> None:
    conversation = Recollection(PLAN.program, digest)
    for each in ids:
        conversation.keep_as(each)
    known = list(dict.fromkeys(each for some in ids for each in some))
    assert len(conversation.kept_as) == min(len(known), 3)
    assert list(conversation.kept_as[:2]) == known[:2]
