"""Classifiers are asked about a prompt before its patterns are matched, and not waited for once those refuse it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.commands import Score
from checkstream.core.events import RequestReceived, Resumed, Scored
from tests.guarded import CHAT, INJ, plan, request
from tests.playbook import Exchange

CARD = "  - {name: c, id: CARD-1, stage: [ingress], entities: [CREDIT_CARD], actions: [{type: redact}]}\n"
PHRASE = "  - {name: p, id: BAD-1, stage: [ingress], phrases: [open sesame], actions: [{type: reject}]}\n"
WORDS = st.sampled_from(["hello ", "4111 1111 1111 1111 ", "evil ", " open sesame ", "\u200b", "\U000e0041", "x" * 300])
TEXTS = st.lists(st.lists(WORDS, max_size=4).map("".join), min_size=1, max_size=4)


def chat(texts: list[str]) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}).encode()


def says(score: Score) -> Scored:
    return Scored(score.ticket, {"lexicon.injection": 0.99 if "evil" in score.text else 0.0})


def played(body: bytes, *, turn: int, late: bool) -> Exchange:
    """Play a prompt in turns of so much work; scores come as soon as they are asked for, or all at the end."""
    exchange = Exchange(CHAT, plan(CARD + INJ + PHRASE, turn_work=turn))
    exchange.send(RequestReceived(body))
    for _ in range(10_000):
        if exchange.out.record is not None or exchange.out.forwarded is not None:
            break
        if exchange.unanswered and not late:
            exchange.send(says(exchange.unanswered.pop(0)))
        elif not _idle(exchange):
            exchange.send(Resumed())
        elif exchange.unanswered:
            exchange.send(says(exchange.unanswered.pop()))
    return exchange


def _idle(exchange: Exchange) -> bool:
    before = len(exchange.out.commands)
    exchange.send(Resumed())
    return len(exchange.out.commands) == before


def test_a_long_prompt_is_asked_about_in_the_first_turn() -> None:
    text = "call 4111 1111 1111 1111 now, it is a card. " * 500
    exchange = Exchange(CHAT, plan(CARD + INJ, turn_work=2_100))
    exchange.send(RequestReceived(request(text)))
    (asked,) = exchange.unanswered
    assert asked.text == text  # as it came: what is redacted for the model is not hidden from classifiers
    turns = 0
    while exchange.out.forwarded is None:
        turns += 1
        exchange.send(says(asked) if turns == 1 else Resumed())
    assert turns > 5
    assert b"4111" not in exchange.out.forwarded


@given(texts=TEXTS, turn=st.sampled_from([0, 1, 200]))
def test_it_does_not_matter_when_the_answers_come(texts: list[str], turn: int) -> None:
    soon, late = played(chat(texts), turn=turn, late=False), played(chat(texts), turn=0, late=True)
    assert soon.out.forwarded == late.out.forwarded
    first, second = soon.out.reply, late.out.reply
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert (first.status, json.loads(first.body)["error"]["code"]) == (second.status, "request_blocked")
        if any("open sesame" in text for text in texts):
            assert [json.loads(reply.body)["rule_id"] for reply in (first, second)] == ["BAD-1", "BAD-1"]


@given(texts=TEXTS)
def test_a_prompt_that_a_pattern_refuses_waits_for_no_classifier(texts: list[str]) -> None:
    exchange = Exchange(CHAT, plan(CARD + INJ + PHRASE, turn_work=50))
    exchange.send(RequestReceived(chat(["open sesame", *texts])))
    while not _idle(exchange):
        pass
    assert exchange.out.reply is not None
    assert exchange.out.forwarded is None
    assert exchange.out.record is not None
    assert exchange.out.record.detectors == ("match",)
    assert not exchange.guard._course.checking.waiting


def test_a_short_prompt_that_a_pattern_refuses_is_shown_to_no_classifier() -> None:
    exchange = Exchange(CHAT, plan(CARD + INJ + PHRASE))
    exchange.send(RequestReceived(request("open sesame")))
    assert exchange.out.reply is not None
    assert exchange.unanswered == []
