"""An attack spread over turns adds up, whoever sends what of the history, and nobody's adds to another's."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Recall, Remember, Score
from checkstream.core.conversation import (
    KEPT,
    KEY_BYTES,
    MOST_TEXTS,
    RECENT_TEXTS,
    SHORT_CHARS,
    SHORT_TEXTS,
    Conversation,
    Said,
    Turn,
    latest,
    short,
)
from checkstream.core.events import (
    AnyEvent,
    Recalled,
    RequestReceived,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Plan
from checkstream.core.exchange.ingress.recollection import Recollection
from checkstream.core.wire.surfaces import SURFACES
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from tests.chance import examples
from tests.guarded import CHAT, DONE, INJ, ends, plan, says, text_of, whole
from tests.playbook import Exchange, Played, digest

LABEL = "lexicon.injection"
ADDS_UP = (
    f"{INJ}  - {{name: sum, id: SUM-1, stage: [ingress], conditions: [conversation.risk.injection > 0.8], "
    "actions: [{type: reject, message: It adds up.}]}\n"
)
PLAN = plan(ADDS_UP, recalls=True)
SCORES = st.lists(st.sampled_from([0.0, 0.04, 0.2, 0.4, 0.5, 0.79, 0.95]), min_size=1, max_size=8)


class Chat:
    """A client that goes on with one conversation through guards that share what is known of it."""

    def __init__(self, known: Conversations | None, *, caller: str | None = None, sends: str = "all") -> None:
        self.known = known
        self.caller = caller
        self.sends = sends
        self.history: list[dict[str, str]] = []
        self.cut = 0

    def say(self, text: str, name: str = "c") -> Played:
        """Say a text that ends with its score; what was refused is taken back."""
        message = {"role": "user", "content": text}
        exchange = self.begin(message, name)
        if exchange.out.forwarded is not None:
            self.end(exchange)
            self.history += [message, {"role": "assistant", "content": "Fine."}]
        return exchange.out

    def begin(self, message: dict[str, str], name: str = "c", plan: Plan = PLAN) -> Exchange:
        """Send a message, whose answer is not there yet."""
        messages = [*self.history, message] if self.sends == "all" else [message]
        body = {"model": "m", "messages": messages, "checkstream": {"conversation": name}}
        exchange = Exchange(CHAT, plan, _scored)
        self._tell(exchange, RequestReceived(json.dumps(body).encode(), self.caller))
        return exchange

    def end(self, exchange: Exchange) -> None:
        """Have it answered."""
        for event in (UpstreamOpened(200, streaming=False), UpstreamBytes(whole("Fine.")), UpstreamClosed()):
            self._tell(exchange, event)

    def _tell(self, exchange: Exchange, event: AnyEvent) -> None:
        done = len(exchange.out.commands)
        exchange.send(event)
        for command in exchange.out.commands[done:]:
            caller = self.caller or ""
            if isinstance(command, Recall):
                known = None if self.known is None else self.known.recall(caller, command.key)
                self._tell(exchange, Recalled(known))
            elif isinstance(command, Remember) and self.known is not None:
                assert self.known.remember(caller, command.key, command.turn, command.before)


def _scored(score: Score) -> AnyEvent:
    last = score.text.rsplit(" ", 1)[-1]
    value = float(last) if last.replace(".", "", 1).isdigit() else 0.0
    return Scored(score.ticket, {LABEL: value, "lexicon.toxicity": 0.0})


def _memory() -> Conversations:
    return Conversations(MemoryStore(clock=lambda: 0.0), Seal(bytes(32)), ttl_s=60, most_bytes=1 << 20)


def _outcomes(chat: Chat, scores: Sequence[float]) -> list[tuple[str, str | None]]:
    outs = [chat.say(f"Text {number} scores {score}") for number, score in enumerate(scores)]
    return [_outcome(out) for out in outs]


def _outcome(out: Played) -> tuple[str, str | None]:
    assert out.record is not None
    rules = [verdict.rule_id for verdict in out.record.verdicts]
    return out.record.action, rules[0] if rules else None


MAIL = "  - {name: mail, id: MAIL-1, stage: ingress, entities: [EMAIL], actions: [{type: redact}]}\n"
SUM = (
    "  - {name: sum, id: SUM-1, stage: [ingress], conditions: [conversation.risk.injection > 0.6],\n"
    "     actions: [{type: reject}]}\n"
)
COUNTING = plan(f"{MAIL}{SUM}", recalls=True)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.5]), st.booleans()), max_size=7), st.randoms())
def test_requests_at_once_know_what_was_found_in_the_prompts_of_each_other_and_all_count_once(
    texts: list[tuple[float, bool]], chance: Random
) -> None:
    """Whenever each is answered, it comes to what it had come to, had each waited for the one before."""
    came = []
    for waits in (True, False):
        known, out, running = _memory(), [], []
        chat = Chat(known, sends="last")
        for number, (score, has_mail) in enumerate(texts):
            text = f"{'Ask ann@x.io. ' if has_mail else ''}Text {number} scores {score}"
            exchange = chat.begin({"role": "user", "content": text}, plan=COUNTING)
            if exchange.out.forwarded is not None:
                running.append(exchange)
            out.append(exchange.out.forwarded is None)
            while running and (waits or chance.random() < 0.3):
                chat.end(running.pop(chance.randrange(len(running))))
        for exchange in sorted(running, key=lambda _: chance.random()):
            chat.end(exchange)
        [key] = {c.key for c in exchange.out.commands if isinstance(c, Recall)} if texts else {""}
        came.append((out, known.recall("", key)))
    assert came[0] == came[1]
    if came[0][1] is not None:
        assert came[0][1].fired.get("MAIL-1", 0) == sum(has_mail for _, has_mail in texts)


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7]), min_size=2, max_size=5), st.randoms())
def test_of_prompts_that_are_read_at_the_same_time_none_goes_on_over_what_all_come_to(
    scores: list[float], chance: Random
) -> None:
    """However their questions of what is known are answered, and their findings kept, in turns."""
    known, out = _memory(), list[Exchange]()
    asking, told = list[tuple[Exchange, Recall]](), list[tuple[Exchange, Conversation | None]]()
    for number, score in enumerate(scores):
        said = {"role": "user", "content": f"Text {number} scores {score}"}
        body = {"model": "m", "messages": [said], "checkstream": {"conversation": "c"}}
        exchange = Exchange(CHAT, COUNTING, _scored)
        exchange.send(RequestReceived(json.dumps(body).encode()))
        asking += [(exchange, each) for each in exchange.out.commands if isinstance(each, Recall)]
        out.append(exchange)
    while asking or told:
        if asking and (not told or chance.random() < 0.5):
            exchange, asked = asking.pop(chance.randrange(len(asking)))
            told.append((exchange, known.recall("", asked.key)))
            continue
        exchange, seen = told.pop(chance.randrange(len(told)))  # what it is told may be old by now
        done = len(exchange.out.commands)
        exchange.send(Recalled(seen))
        for each in exchange.out.commands[done:]:
            if isinstance(each, Remember):
                assert known.remember("", each.key, each.turn, each.before)
            elif isinstance(each, Recall):
                told.append((exchange, known.recall("", each.key)))
    refused = [exchange for exchange in out if exchange.out.forwarded is None]
    assert bool(refused) >= (_least([score for score in scores if score > 0.05]) > 0.6)
    assert all(exchange.out.reply is not None for exchange in refused)


def _least(scores: Sequence[float]) -> float:
    """Return the highest risk on the way, in the order of texts in which that is least."""
    least = 1.0
    for order in set(itertools.permutations(scores)):
        course, highest = Conversation(), 0.0
        for number, score in enumerate(order):
            course = course.after(Turn(said=(Said(bytes([number] * KEY_BYTES), {LABEL: score}),)))
            highest = max(highest, course.risks.get(LABEL, 0.0))
        least = min(least, highest)
    return least


@settings(max_examples=examples(20))
@given(SCORES)
def test_what_of_the_history_is_sent_and_what_is_remembered_changes_nothing(scores: list[float]) -> None:
    remembered = _outcomes(Chat(_memory()), scores)
    assert _outcomes(Chat(None), scores) == remembered
    assert _outcomes(Chat(_memory(), sends="last"), scores) == remembered


@settings(max_examples=examples(20))
@given(SCORES, st.integers(0, 7))
def test_a_memory_that_is_lost_lets_nothing_pass_that_a_request_alone_would_not(scores: list[float], lost: int) -> None:
    chat, alone = Chat(_memory(), sends="last"), Chat(None, sends="last")
    for number, score in enumerate(scores):
        if number == lost:
            chat.known = _memory()
        text = f"Text {number} scores {score}"
        by_itself, came = _outcome(alone.say(text)), _outcome(chat.say(text))
        assert by_itself[0] == "allow" or came == by_itself


@settings(max_examples=examples(12))
@given(SCORES, SCORES)
def test_callers_and_conversations_never_mix(first: list[float], second: list[float]) -> None:
    known = _memory()
    one = Chat(known, caller="one", sends="last")
    others = [Chat(known, caller="two", sends="last"), Chat(known, caller=None, sends="last")]
    _outcomes(one, first)
    for other in others:
        assert _outcomes(other, second) == _outcomes(Chat(_memory(), caller=other.caller, sends="last"), second)
    mine = Chat(known, caller="one", sends="last")
    fresh = Chat(_memory(), caller="one", sends="last")
    for number, score in enumerate(second):
        text = f"Text {number} scores {score}"
        assert _outcome(mine.say(text, "another")) == _outcome(fresh.say(text, "another"))


@given(st.lists(st.floats(0, 1), max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_how_texts_are_spread_over_requests_changes_nothing(scores: list[float], cuts: list[int]) -> None:
    said = [Said(bytes([number]) * KEY_BYTES, {LABEL: score}) for number, score in enumerate(scores)]
    at_once = Conversation().after(Turn(said=tuple(said)))
    in_turns = Conversation()
    for cut in sorted({*cuts, len(said)}):
        in_turns = in_turns.after(Turn(said=tuple(said[:cut])))  # the history comes again each time
    assert in_turns == at_once
    assert all(0.0 <= risk <= 1.0 for risk in at_once.risks.values())


def test_calm_texts_lower_the_risk_and_borderline_ones_raise_it() -> None:
    told = [Conversation()]
    for number in range(10):
        told.append(told[-1].after(Turn(said=(Said(bytes([number]) * KEY_BYTES, {LABEL: 0.4}),))))
    risks = [each.risks.get(LABEL, 0.0) for each in told]
    assert risks == sorted(risks)
    assert risks[-1] > 0.7
    assert risks[1] < 0.4
    calmed = told[-1].after(Turn(said=(Said(b"calm....", {LABEL: 0.01}),)))
    assert calmed.risks[LABEL] == pytest.approx(KEPT * risks[-1])


def test_what_is_kept_of_a_conversation_is_bounded() -> None:
    known = Conversation()
    for number in range(MOST_TEXTS + 50):
        rule = f"R-{number}"
        known = known.after(
            Turn(said=(Said(number.to_bytes(KEY_BYTES, "big"), {LABEL: 0.0}, (rule,)),), entities=(rule,))
        )
    assert (known.turns, len(known.texts)) == (MOST_TEXTS + 50, MOST_TEXTS * KEY_BYTES)
    assert len(known.fired) == len(known.entities) == 256


def test_a_refused_request_counts_as_refused_and_its_texts_count_when_they_come_again() -> None:
    chat = Chat(_memory(), sends="last")
    for number in range(2):
        chat.say(f"Text {number} scores 0.55")
    first, again = chat.say("Text 2 scores 0.55"), chat.say("Text 2 scores 0.55")
    assert _outcome(first) == _outcome(again) == ("reject", "SUM-1")
    assert first.reply is not None
    assert json.loads(first.reply.body)["error"]["param"] == "messages[0]"
    calm = chat.say("Thanks, and goodbye. 0.0")
    assert calm.record is not None
    assert calm.record.action == "allow"
    assert (calm.record.conversation.refused, calm.record.conversation.turns) == (2, 3)  # type: ignore[union-attr]


def test_classifiers_that_fail_leave_the_risk_unknown_and_the_fail_mode_decides() -> None:
    only = ADDS_UP.removeprefix(INJ)
    for fail_mode, action in (("closed", "reject"), ("open", "allow")):
        exchange = Exchange(CHAT, plan(only, fail_mode=fail_mode), lambda score: Scored(score.ticket, {}))
        exchange.send(
            RequestReceived(json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode())
        )
        exchange.send(UpstreamOpened(200, streaming=False))
        exchange.send(UpstreamBytes(whole("Fine.")))
        exchange.send(UpstreamClosed())
        assert exchange.out.record is not None
        assert exchange.out.record.action == action
        assert "rule_undecided:SUM-1" in exchange.out.record.degradations


def _recent(score: Score) -> AnyEvent:
    value = 0.99 if "alpha" in score.text and "omega" in score.text else 0.9 if "alpha" in score.text else 0.0
    return Scored(score.ticket, {LABEL: value, "lexicon.toxicity": 0.0})


@pytest.mark.parametrize(
    ("said", "asked", "action"),
    [
        (["alpha", "omega"], 3, "reject"),
        (["alpha", "calm", "omega"], 4, "reject"),
        (["alpha", "calm", "calm", "omega"], 5, "allow"),  # too long ago
        (["calm", "omega"], 2, "allow"),
        (["omega alpha"], 1, "allow"),  # one text is judged by itself
    ],
)
def test_what_was_said_last_is_read_as_one_text_where_the_risk_has_added_up(
    said: list[str], asked: int, action: str
) -> None:
    rule = (
        "  - {name: r, id: SUM-2, stage: [ingress], conditions: [conversation.recent.injection > 0.9], "
        "actions: [{type: reject}]}\n"
    )
    messages = [{"role": "user", "content": text} for text in said]
    exchange = Exchange(CHAT, plan(rule), _recent)
    exchange.send(RequestReceived(json.dumps({"model": "m", "messages": messages}).encode()))
    assert sum(isinstance(command, Score) for command in exchange.out.commands) == asked
    assert (exchange.out.forwarded is None) is (action == "reject")


@pytest.mark.parametrize(
    ("said", "action"),
    [
        (["alpha", "omega"], "reject"),
        (["alpha", "calm", "calm", "omega"], "reject"),
        (["alpha", *["calm"] * (SHORT_TEXTS - 2), "omega"], "reject"),
        (["alpha", *["calm"] * (SHORT_TEXTS - 1), "omega"], "allow"),  # too long ago
        (["alpha", "c" * (SHORT_CHARS - len("alpha\n\nomega")), "omega"], "reject"),
        (["alpha", "c" * (SHORT_CHARS - len("alpha\n\nomega") + 1), "omega"], "allow"),  # too long together
        (["alpha " + "c" * SHORT_CHARS, "omega"], "allow"),
        (["alpha", "c" * 1000, "calm", "omega"], "allow"),  # what is too long is not left out of the middle
        (["calm", "omega"], "allow"),
        (["omega alpha"], "allow"),  # one text is judged by itself
    ],
)
@pytest.mark.parametrize("beside", ["", "conversation.recent.injection > 2.0 || "])
def test_more_of_what_was_said_last_is_read_as_one_text_where_it_is_short(
    said: list[str], action: str, beside: str
) -> None:
    rule = (
        f"  - {{name: r, id: SUM-2, stage: [ingress], conditions: ['{beside}conversation.short.injection > 0.9'], "
        "actions: [{type: reject}]}\n"
    )
    messages = [{"role": "user", "content": text} for text in said]
    exchange = Exchange(CHAT, plan(rule), _recent)
    exchange.send(RequestReceived(json.dumps({"model": "m", "messages": messages}).encode()))
    assert (exchange.out.forwarded is None) is (action == "reject")
    asked = [command.text for command in exchange.out.commands if isinstance(command, Score)]
    assert len(asked) == len(set(asked)) + len(said) - len(set(said))  # the same text is asked about once


@given(st.lists(st.sampled_from(["", "a", "calm", "c" * 60, "c" * 299, "c" * 300, "c" * 301]), max_size=12), st.data())
def test_what_is_kept_of_what_was_said_is_enough_for_what_is_read_as_one(texts: list[str], data: st.DataObject) -> None:
    known = Conversation()
    while texts:
        count = data.draw(st.integers(1, len(texts)))
        new, texts = tuple(texts[:count]), texts[count:]
        whole = (*known.spoken, *new)
        assert short(latest(whole)) == short(whole)
        assert latest(whole)[-RECENT_TEXTS:] == whole[-RECENT_TEXTS:]
        known = known.after(Turn(spoken=new))
        assert len(known.spoken) <= SHORT_TEXTS
        assert sum(map(len, known.spoken[:-RECENT_TEXTS])) <= SHORT_CHARS


COUNTED = (
    "  - {name: s, id: SEEN-1, stage: [ingress], channels: [user], phrases: [red flag], actions: [{type: log_event}]}\n"
    "  - {name: a, id: SAID-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
    "  - {name: g, id: AGAIN-1, stage: [ingress], conditions: "
    '[\'conversation.fired["SEEN-1"] > 0 && conversation.fired["SAID-1"] > 0\'], actions: [{type: log_event}]}\n'
)
UNNAMED = plan(COUNTED, recalls=True)


def _asks(
    known: Conversations, messages: Sequence[object], *, caller: str = "one", said: Sequence[str] = ("Fine.",)
) -> tuple[Played, str]:
    """Send a request without a name for its conversation; return what came of it, and the answer as it was sent."""
    stream = len(said) > 1
    body = json.dumps({"model": "m", "stream": stream, "messages": messages}).encode()
    exchange = Exchange(CHAT, UNNAMED, _scored)

    def tell(event: AnyEvent) -> None:
        done = len(exchange.out.commands)
        exchange.send(event)
        for command in exchange.out.commands[done:]:
            if isinstance(command, Recall):
                tell(Recalled(known.recall(caller, command.key)))
            elif isinstance(command, Remember):
                assert known.remember(caller, command.key, command.turn, command.before)

    tell(RequestReceived(body, caller))
    tell(UpstreamOpened(200, streaming=stream))
    for piece in [*map(says, said), ends(), DONE] if stream else [whole("".join(said))]:
        tell(UpstreamBytes(piece))
    tell(UpstreamClosed())
    if stream:
        return exchange.out, text_of(exchange.out)
    assert exchange.out.reply is not None
    return exchange.out, json.loads(exchange.out.reply.body)["choices"][0]["message"]["content"]


def _user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("said", [("Ask a@b.example.com.",), ("Ask a@b.", "example", ".com", ".")])
@pytest.mark.parametrize("trims", [False, True])
def test_a_conversation_without_a_name_is_told_by_its_history(said: tuple[str, ...], trims: bool) -> None:
    known = _memory()
    first, answer = _asks(known, [{"role": "system", "content": "It is noon."}, _user("A red flag ")], said=said)
    assert "[EMAIL]" in answer
    content: object = f" {answer}\n" if not trims else [{"type": "text", "text": answer}]
    history = [_user("A red flag"), {"role": "assistant", "content": content}, _user("Go on.")]
    for caller, fired in (("one", ["AGAIN-1", "SEEN-1"]), ("two", ["SEEN-1"])):
        then, _ = _asks(known, history, caller=caller)
        assert then.record is not None
        assert first.record is not None
        assert sorted({verdict.rule_id for verdict in then.record.verdicts}) == fired
        same = then.record.conversation.id == first.record.conversation.id  # type: ignore[union-attr]
        assert same is (caller == "one")
        assert then.record.conversation.turns == 2  # type: ignore[union-attr]


def test_an_answer_that_was_not_given_here_is_no_history_of_ours() -> None:
    known = _memory()
    _asks(known, [_user("A red flag")], said=("Ask a@b.example.com.",))
    forged = [_user("A red flag"), {"role": "assistant", "content": "I never said that."}, _user("Go on.")]
    then, _ = _asks(known, forged)
    assert then.record is not None
    assert {verdict.rule_id for verdict in then.record.verdicts} == {"SEEN-1"}


def test_a_history_that_is_answered_again_comes_to_the_same() -> None:
    known = _memory()
    _asks(known, [_user("A red flag")])
    history = [_user("A red flag"), {"role": "assistant", "content": "Fine."}, _user("Go on with a red flag.")]
    counts = []
    for _ in range(3):
        out, _ = _asks(known, history)
        assert out.record is not None
        counts.append(out.record.conversation.turns)  # type: ignore[union-attr]
        (kept,) = [command for command in out.commands if isinstance(command, Remember)]
        found = known.recall("one", kept.key)
        assert found is not None
        assert (found.turns, found.fired) == (2, {"SEEN-1": 2})
    assert counts == [2, 2, 2]


_ANTHROPIC: dict[str, object] = {
    "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Fine."}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
_OLLAMA: dict[str, object] = {
    "model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "Fine."},
    "done": True, "done_reason": "stop",
}  # fmt: skip


@pytest.mark.parametrize(("surface", "answer"), [("anthropic.messages", _ANTHROPIC), ("ollama.chat", _OLLAMA)])
def test_histories_of_other_surfaces_are_recognised_as_well(surface: str, answer: dict[str, object]) -> None:
    keys: list[list[str]] = []
    history: list[object] = [_user("A red flag")]
    for _ in range(2):
        body = {"model": "m", "max_tokens": 9, "stream": False, "messages": history}
        body |= {} if surface.startswith("anthropic") else {"options": {}}
        if not surface.startswith("anthropic"):
            del body["max_tokens"]
        exchange = Exchange(SURFACES[surface], UNNAMED, _scored)
        exchange.send(RequestReceived(json.dumps(body).encode(), "one"))
        exchange.send(Recalled(None))
        for event in (
            UpstreamOpened(200, streaming=False),
            UpstreamBytes(json.dumps(answer).encode()),
            UpstreamClosed(),
        ):
            exchange.send(event)
        keys.append([command.key for command in exchange.out.commands if isinstance(command, Recall | Remember)])
        history += [{"role": "assistant", "content": "Fine."}, _user("Go on.")]
    (kept,), (asked, _) = keys
    assert asked == kept


def test_a_prompt_of_very_many_messages_is_recognised_in_short_steps() -> None:
    """In work that is counted: between two steps nothing of a conversation is done that grows with the prompt."""
    messages = [{"role": "assistant" if at % 2 else "user", "content": f"text {at}"} for at in range(3001)]
    request = CHAT.read_request(json.dumps({"model": "m", "messages": messages}).encode())
    recollection = Recollection(UNNAMED.program, lambda text: f"{len(text):064x}")
    steps = sum(1 for _ in recollection.finding("one", request))
    assert recollection.key
    assert steps >= 2 * (len(messages) // 256)
    long = [_user("word " * 70_000), {"role": "assistant", "content": "x"}, _user("y")]
    request = CHAT.read_request(json.dumps({"model": "m", "messages": long}).encode())
    assert sum(1 for _ in Recollection(UNNAMED.program, digest).finding("one", request)) > 20


LATE = plan(ADDS_UP.removeprefix(INJ), recalls=True)
ONCE_REFUSED = plan(
    "  - {name: o, id: OFTEN-1, stage: [ingress], conditions: [conversation.refused > 0], actions: [{type: reject}]}\n",
    recalls=True,
)
SHADOWED = plan(
    "  - {name: o, id: OFTEN-1, stage: [ingress], mode: shadow, conditions: [conversation.refused > 0], "
    "actions: [{type: reject}]}\n",
    recalls=True,
)
_HISTORY = [_user("Hi"), {"role": "assistant", "content": "Fine."}, _user("Go on.")]


@pytest.mark.parametrize("fail_mode", ["closed", "open"])
@pytest.mark.parametrize(
    ("plan_", "named", "loses"),
    [
        (LATE, True, True),
        (LATE, False, False),  # the history tells it
        (ONCE_REFUSED, True, True),
        (ONCE_REFUSED, False, True),
        (SHADOWED, True, False),
        (plan(INJ, recalls=True), True, False),  # nobody asks
    ],
)
def test_g23_where_the_memory_fails_the_fail_mode_decides_if_rules_ask_for_what_only_it_knows(
    fail_mode: str, plan_: Plan, named: bool, loses: bool
) -> None:
    extension = {"checkstream": {"conversation": "c"}} if named else {}
    exchange = Exchange(CHAT, msgspec.structs.replace(plan_, fail_mode=fail_mode), _scored)
    exchange.send(RequestReceived(json.dumps({"model": "m", "messages": _HISTORY, **extension}).encode(), "one"))
    assert [command for command in exchange.out.commands if isinstance(command, Recall)]
    exchange.send(Recalled(None, failed=True))
    refused = loses and fail_mode == "closed"
    assert (exchange.out.forwarded is None) is refused
    if refused:
        assert exchange.out.reply is not None
        assert exchange.out.reply.status == 503
        assert exchange.out.record is not None
        assert exchange.out.record.outcome == "overloaded"
    else:
        for event in (UpstreamOpened(200, streaming=False), UpstreamBytes(whole("Fine.")), UpstreamClosed()):
            exchange.send(event)
        assert exchange.out.record is not None
        assert "conversation_not_known" in exchange.out.record.degradations
