"""What is handed over to be scored: what the caller got of the answer, and the prompt as it was forwarded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.commands import Enqueue, Record
from checkstream.core.events import (
    DownstreamClosed,
    Draining,
    RequestReceived,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.heard import Heard
from checkstream.core.terms import Circumstances, Dialogue, Document, Message
from tests.guarded import CHAT, DONE, MAIL, STOP, ends, event, plan, request, says, stream
from tests.playbook import Exchange, Played, play

SCORED = 10_000
PROMPT_MAIL = "  - {name: p, id: PII-2, stage: [ingress], entities: [EMAIL], actions: [{type: redact}]}\n"
NOTE = (
    "  - {name: n, id: NOTE-1, stage: [egress], phrases: [rates], "
    "actions: [{type: inject_disclaimer, text: Terms apply.}]}\n"
)


def handed_over(out: Played) -> Dialogue | None:
    found = [command for command in out.commands if isinstance(command, Enqueue)]
    assert len(found) <= 1
    if found:
        assert isinstance(out.commands[out.commands.index(found[0]) + 1 :][-1], Record)
    return found[0].dialogue if found else None


def answers(out: Played) -> dict[int, str]:
    dialogue = handed_over(out)
    return {} if dialogue is None else dict(dialogue.answers)


def whole(*texts: str) -> bytes:
    choices = [
        {"index": number, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for number, text in enumerate(texts)
    ]
    return json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}).encode()


@pytest.mark.parametrize("cut", [1, 4, 1000])
def test_an_answer_is_handed_over_as_the_caller_got_it_however_it_was_cut(cut: int) -> None:
    text = "Write to jo@x.io about rates of 4.2 %."
    pieces = [says(text[at : at + cut]) for at in range(0, len(text), cut)]
    out = stream(MAIL + NOTE, [*pieces, ends(), DONE], scored_chars=SCORED)
    assert b"Terms apply." in out.joined
    assert answers(out) == {0: "Write to [EMAIL] about rates of 4.2 %."}


def test_g01_a_whole_answer_is_handed_over_as_a_streamed_one() -> None:
    body = request(stream=False)
    out = play(
        CHAT,
        plan(MAIL + NOTE, scored_chars=SCORED),
        body,
        [whole("Write to jo@x.io about rates.", "No.")],
        streaming=False,
    )
    assert answers(out) == {0: "Write to [EMAIL] about rates.", 1: "No."}


def test_choices_without_words_are_not_handed_over() -> None:
    out = stream(MAIL, [says("Yes.", 0), says("  ", 1), ends(0), ends(1), DONE], request(n=2), scored_chars=SCORED)
    assert answers(out) == {0: "Yes."}
    call = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}
    assert handed_over(stream(MAIL, [event((0, call, None)), ends(), DONE], scored_chars=SCORED)) is None


def test_of_an_answer_that_a_rule_stops_the_part_that_went_out_is_handed_over() -> None:
    pieces = [says("It pays 4 %. There is "), says("zero risk in it"), ends(), DONE]
    out = stream(STOP, pieces, scored_chars=SCORED)
    assert answers(out) == {0: "It pays 4 %. There is "}
    one = play(CHAT, plan(STOP, scored_chars=SCORED), request(stream=False), [whole("zero risk")], streaming=False)
    assert one.reply is not None
    assert b"Halt." in one.reply.body
    assert handed_over(one) is None


@pytest.mark.parametrize("end", [UpstreamFailed("reset"), DownstreamClosed(), Draining()])
def test_of_an_answer_that_breaks_off_the_part_that_went_out_is_handed_over(end: Any) -> None:
    exchange = Exchange(CHAT, plan(STOP, scored_chars=SCORED))
    for happened in (RequestReceived(request()), UpstreamOpened(200, streaming=True), UpstreamBytes(says("Half of "))):
        exchange.send(happened)
    exchange.send(end)
    assert answers(exchange.out) == {0: "Half of "}


def test_an_answer_that_nobody_got_is_not_handed_over() -> None:
    refusal = "  - {name: r, id: R-1, stage: [ingress], phrases: [hi], actions: [{type: reject}]}\n"
    assert handed_over(stream(refusal, [], scored_chars=SCORED)) is None
    exchange = Exchange(CHAT, plan(MAIL, scored_chars=SCORED))
    exchange.send(RequestReceived(request(stream=False)))
    exchange.send(UpstreamOpened(200, streaming=False))
    exchange.send(UpstreamBytes(whole("Never heard.")))
    exchange.send(DownstreamClosed())
    assert handed_over(exchange.out) is None
    late = Exchange(CHAT, plan(MAIL, scored_chars=SCORED))
    late.send(RequestReceived(request(stream=False)))
    late.send(UpstreamOpened(500, streaming=False))
    late.send(UpstreamBytes(b'{"error": {"message": "it broke"}}'))
    late.send(UpstreamClosed())
    assert handed_over(late.out) is None


def test_nothing_is_handed_over_unless_the_plan_asks_and_never_more_than_it_allows() -> None:
    pieces = [says("12345"), says("67890"), ends(), DONE]
    assert handed_over(stream(MAIL, pieces)) is None
    assert answers(stream(MAIL, pieces, scored_chars=10)) == {0: "1234567890"}
    out = stream(MAIL, pieces, scored_chars=9)
    assert handed_over(out) is None
    assert out.record is not None
    assert out.record.degradations == ("answer_too_long_to_score",)


def test_the_prompt_is_handed_over_as_it_was_forwarded() -> None:
    body = request(
        messages=[
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "I am jo@x.io, hi."}, {"type": "text", "text": "Well?"}],
            },
        ],
        checkstream={
            "conversation": "c-1",
            "context": {"tenant": "acme"},
            "documents": [
                "Rates are 4.2 %.",
                {"id": "D7", "title": "Of ann@x.io", "url": "http://x/d", "text": "Ask ann@x.io."},
                {"id": 9, "body": "By bob@x.io", "more": {"list": ["or eve@x.io"]}},
            ],
        },
    )
    dialogue = handed_over(stream(PROMPT_MAIL, [says("Fine."), ends(), DONE], body, scored_chars=SCORED))
    assert dialogue == Dialogue(
        model="m",
        messages=(Message("system", "Be kind."), Message("user", "I am [EMAIL], hi.\nWell?")),
        answers={0: "Fine."},
        documents=(
            Document("Rates are 4.2 %."),
            Document("Ask [EMAIL].", title="Of [EMAIL]", url="http://x/d", id="D7"),
            Document("By [EMAIL]\nor [EMAIL]", id="9"),
        ),
        conversation="c-1",
        circumstances=Circumstances(
            context='{"tenant":"acme"}',
            request={
                "route": "", "model": "m", "surface": "openai.chat", "stream": True, "tools": (),
                "metadata": {},
            },
            edited=True,
        ),
    )  # fmt: skip


def test_what_is_kept_is_bounded_unless_all_of_it_is_needed() -> None:
    heard = Heard(most_chars=4)
    for text in ("abc", "d", "e", "f"):
        heard.feed(0, text)
    assert (heard.too_long, heard.text(0), dict(heard.answers)) == (True, "", {})
    heard = Heard(whole=True, most_chars=4)
    for text in ("abc", "d", "e"):
        heard.feed(0, text)
    assert (heard.too_long, heard.text(0)) == (True, "abcde")


@pytest.mark.parametrize(("word", "stopped"), [("forbidden", True), ("allowed", False)])
def test_of_an_answer_that_was_stopped_it_is_told_when_its_pieces_had_come(word: str, stopped: bool) -> None:
    rules = "  - {name: s, id: STOP-1, stage: [midstream], phrases: [forbidden], actions: [{type: stop}]}\n"
    exchange = Exchange(CHAT, plan(rules, scored_chars=SCORED))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    for piece in ("One two. ", "Three four. ", f"It is {word}. "):
        exchange.now += 0.25
        exchange.send(UpstreamBytes(says(piece)))
    exchange.send(UpstreamBytes(ends() + DONE))
    exchange.send(UpstreamClosed())
    dialogue = handed_over(exchange.out)
    assert dialogue is not None
    ages = {number: [(start, round(age, 3)) for start, age in told] for number, told in dialogue.ages.items()}
    assert ages == ({0: [(0, 0.5), (9, 0.25), (21, 0.0)]} if stopped else {})
