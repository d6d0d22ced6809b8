"""Laws of calm exchanges: of the same events the same commands come, whether or not they are taken quickly."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.policies import with_classifiers
from checkstream.bench.scenario import TEXTS
from checkstream.core.channel.checks import Check
from checkstream.core.channel.judge import Judge
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.calm import Calm
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from checkstream.demo.script import Choice, Script, Split
from tests.chance import examples
from tests.drawn import split
from tests.fingerprinted import file_of
from tests.fuzz.exchange import run_exchange
from tests.fuzz.mutate import Mutator
from tests.fuzz.test_fuzz import seeds
from tests.generated import APIS, told
from tests.generated import request as in_words
from tests.guarded import DONE, ends, event, request, says
from tests.playbook import Exchange
from tests.property.test_match_words import WORDS
from tests.transcripts.case import CORPUS, Case
from tests.twin import Twin, watched

TOXICITY = "lexicon.toxicity"
RULES = """
pack: {name: t, version: 1.0.0}
policies:
  - {name: mail, id: M-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD, PHONE], actions: [{type: redact}]}
  - {name: halt, id: H-1, stage: [midstream], phrases: [sword], actions: [{type: stop, message: Halt.}]}
  - {name: log, id: L-1, stage: [midstream], phrases: [tower], actions: [{type: log_event}]}
  - {name: end, id: E-1, stage: [egress], phrases: [john], actions: [{type: inject_disclaimer, text: Ask him.}]}
"""
SENTENCES = """
  - {name: word, id: W-1, stage: [midstream], phrases: [the wood], actions: [{type: rewrite_span, words: {wood: coal},
     scope: sentence}]}
"""
SCORED = """
  - {name: tox, id: T-1, stage: [midstream], channels: [content],
     classifiers: [{name: lexicon.toxicity, threshold: 0.8}], actions: [{type: redact}]}
"""
INSERTED = """
  - {name: say, id: S-1, stage: [midstream], phrases: [walk], actions: [{type: inject_disclaimer, text: Mind.,
     position: after_sentence}]}
"""
RESTORED = """
  - {name: psn, id: P-1, stage: [ingress], entities: [EMAIL], actions: [{type: pseudonymise}]}
"""
LABELS = (ClassifierLabel(TOXICITY),)
RECITED = """
  - {name: rec, id: C-1, stage: [midstream], fingerprints: [{file: books.fp}], actions: [{type: redact}]}
"""
BOOKS = file_of(["The wood, the tower, a I is at the tower: go, walk the wood. Tower, tower, the wood at a key."], 6)
PLANS = {
    "patterns": Plan(program=compile_sources([("t.yaml", RULES)], LABELS)),
    "sentences": Plan(program=compile_sources([("t.yaml", RULES + SENTENCES + SCORED)], LABELS)),
    "scored": Plan(program=compile_sources([("t.yaml", RULES + SCORED)], LABELS)),
    "inserted": Plan(program=compile_sources([("t.yaml", RULES + INSERTED)], LABELS)),
    "restored": Plan(program=compile_sources([("t.yaml", RULES + RESTORED)], LABELS)),
    "small": Plan(program=compile_sources([("t.yaml", RULES + SCORED)], LABELS), held_bytes=700, answer_bytes=9000),
    "recited": Plan(program=compile_sources([("t.yaml", RULES + RECITED), ("allow:t.yaml:books.fp", BOOKS)], LABELS)),
    "defaults": Plan(program=compile_sources([("d.yaml", with_classifiers())])),
}
REASONS = ("reasoning_content", "refusal")


def _told(draw: st.DrawFn) -> list[bytes]:
    """Return the events of a stream: mostly more of one text, now and then something else."""
    said = draw(
        st.lists(
            st.one_of(WORDS, WORDS, WORDS, st.sampled_from([" x", "\n", '"', "\\", "\u2028", " <EMAIL_1>"])),
            max_size=40,
        )
    )
    pieces = [event((0, {"role": "assistant", "content": ""}, None))]
    calm = draw(st.sampled_from([60, 60, 20]))
    for text in said:
        pieces.append(says(text))
        other = draw(st.integers(0, calm))
        if other == 0:
            pieces.append(event((0, {draw(st.sampled_from(REASONS)): text}, None)))
        elif other == 1:
            pieces.append(says(text, choice=1))
        elif other == 2:
            pieces.append(says(text, system_fingerprint="fp " + text))
        elif other == 3:
            pieces.append(b": a comment\n\n")
        elif other == 4:
            pieces.append(event((0, {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}, None)))
    return [*pieces, ends(), DONE]


@st.composite
def _streams(draw: st.DrawFn) -> list[AnyEvent]:
    pieces = _told(draw)
    cut = draw(st.sampled_from(["events", "some", "bytes", "anywhere"]))
    if cut == "some":
        size = draw(st.integers(1, 60))
        pieces = [b"".join(pieces[at : at + size]) for at in range(0, len(pieces), size)]
    elif cut == "bytes":
        said, size = b"".join(pieces), draw(st.integers(100, 4000))
        pieces = [said[at : at + size] for at in range(0, len(said), size)]
    elif cut == "anywhere":
        pieces = split(draw, b"".join(pieces))
    played: list[AnyEvent] = [UpstreamOpened(200, streaming=True)]
    for piece in pieces:
        played.append(UpstreamBytes(piece))
        other = draw(st.integers(0, 80))
        if other == 0:
            played.append(TimerFired("stall"))
        elif other == 1:
            played.append(TimerFired("keepalive"))
        elif other == 2 and draw(st.booleans()):
            last: list[AnyEvent] = [Draining(), DownstreamClosed(), UpstreamClosed()]
            played.append(draw(st.sampled_from(last)))
    return [*played, UpstreamClosed()]


def _play(plan: Plan, events: list[AnyEvent], patience: int) -> None:
    """Play one exchange; a classifier answers when so many questions wait."""
    exchange = Exchange(SURFACES["openai.chat"], plan)
    exchange.send(RequestReceived(request("Write to ann.lee@northwind.example.")))
    _take(exchange, events, patience)


def _take(exchange: Exchange, events: list[AnyEvent], patience: int) -> None:
    for each in events:
        exchange.now += 0.02
        if exchange.out.record is None:
            exchange.send(each)
        while len(exchange.unanswered) > patience:
            asked = exchange.unanswered.pop(0)
            exchange.send(Scored(asked.ticket, {TOXICITY: 0.9 if "fed" in asked.text else 0.1}))


@pytest.mark.parametrize("name", PLANS)
@given(events=_streams(), patience=st.integers(0, 3))
@settings(max_examples=examples(40))
def test_g03_g04_calm_events_come_to_what_they_come_to_in_full(
    name: str, events: list[AnyEvent], patience: int
) -> None:
    with watched():
        _play(PLANS[name], events, patience)


@pytest.mark.parametrize("name", PLANS)
def test_g03_texts_that_come_by_turns_come_to_what_they_come_to_in_full(name: str) -> None:
    """It is calm for a few events at a time, and what waits is of several texts."""
    chance = random.Random(f"turns {name}")
    calm, words = ("the", "lighthouse", "a", "keeper", "walked"), (
        "ann.lee@northwind", ".example", "4111", "1111", "12", "sword", "swo", "tower", "fed", "the wood", "john", ".",
    )  # fmt: skip
    for _ in range(examples(150)):
        pieces = [event((0, {"role": "assistant", "content": ""}, None)), says("A ")]
        often = chance.choice((6, 18))
        for _ in range(30):
            text = f" {chance.choice(calm if chance.random() < 0.7 else words)}"
            kind = chance.choice((*("content",) * often, *REASONS, "other"))
            if kind == "other":
                pieces.append(says(text, choice=1) if chance.random() < 0.5 else says(text, system_fingerprint=text))
            else:
                pieces.append(event((0, {kind: text}, None)))
        size = chance.choice((1, 1, 4, 40))
        data = [b"".join(pieces[at : at + size]) for at in range(0, len(pieces), size)]
        events: list[AnyEvent] = [UpstreamOpened(200, streaming=True)]
        for piece in (*data, ends(), ends(1), DONE):
            events.append(UpstreamBytes(piece))
            if chance.random() < 0.03:
                events.append(TimerFired("stall"))
        with watched():
            _play(PLANS[name], [*events, UpstreamClosed()], chance.randrange(4))


@pytest.mark.parametrize("kind", REASONS)
def test_g04_what_waits_of_another_text_does_not_leave_with_this_one(kind: str) -> None:
    """It is calm for one text, then for another that has come behind it, then for the first again, behind both."""
    rules = """
pack: {name: t, version: 1.0.0}
policies: [{name: s, id: S-1, stage: [midstream], phrases: [sword], actions: [{type: redact, scope: sentence}]}]
"""
    plan = Plan(program=compile_sources([("t.yaml", rules)]))
    other = [event((0, {kind: text}, None)) for text in (" home", " with a sword.", " Now.")]
    first, then = ("A ", " keeper", " walked.", " a", " lighthouse"), (" keeper", " walked.", " .")
    pieces = [event((0, {"role": "assistant", "content": ""}, None)), *map(says, first), other[0]]
    pieces += [says(" a", system_fingerprint="a"), *map(says, then), *other[1:], ends(), DONE]
    events: list[AnyEvent] = [UpstreamOpened(200, streaming=True), *map(UpstreamBytes, pieces), UpstreamClosed()]
    with watched() as made:
        _play(plan, events, 0)
    assert sum(twin.calm_events for twin in made) > 1
    exchange = Exchange(SURFACES["openai.chat"], plan)
    exchange.send(RequestReceived(request("hi")))
    _take(exchange, events, 0)
    assert b"home" not in exchange.out.joined


@pytest.mark.parametrize("name", sorted(PLANS.keys() - {"small"}))
def test_g03_most_events_of_prose_are_taken_quickly(name: str) -> None:
    said = [f" {word}" for word in " ".join((TEXTS / "benign.txt").read_text("utf-8").split()).split(" ")]
    events = [UpstreamBytes(each) for each in (says("A"), *map(says, said), ends(), DONE)]
    with watched() as made:
        _play(PLANS[name], [UpstreamOpened(200, streaming=True), *events, UpstreamClosed()], 0)
    assert sum(twin.calm_events for twin in made) > (0.6 if name in ("scored", "sentences") else 0.85) * len(events)


@pytest.mark.parametrize("name", sorted(PLANS.keys() - {"small", "recited"}))  # recitals are looked for word by word
def test_g03_where_several_events_are_read_as_one_nothing_is_to_be_decided_behind_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nothing could have been decided between them, either."""
    many: list[int] = []
    read_some = Calm._read_some

    def look(self: Calm, judge: Judge, texts: Sequence[str], at: int) -> tuple[int, list[Check] | None]:
        end, checks = read_some(self, judge, texts, at)
        if checks is not None and end - at > 1:
            many.append(end - at)
            assert judge.rests(judge.holdback.releasable)
        return end, checks

    monkeypatch.setattr(Calm, "_read_some", look)
    said = [says(f" {word}") for word in (TEXTS / "benign.txt").read_text("utf-8").split()] * 2
    data = [*said[:4], *(b"".join(said[at : at + 40]) for at in range(4, len(said), 40)), ends(), DONE]
    _play(PLANS[name], [UpstreamOpened(200, streaming=True), *map(UpstreamBytes, data), UpstreamClosed()], 0)
    assert many


@pytest.mark.parametrize("count", [127, 128, 129, 400])
def test_g03_more_events_than_leave_at_a_time_come_to_what_they_come_to_in_full(count: int) -> None:
    said = (*[says(" keeper")] * 4, says(" keeper") * count, ends(), DONE)
    events: list[AnyEvent] = [UpstreamOpened(200, streaming=True), *map(UpstreamBytes, said), UpstreamClosed()]
    with watched() as made:
        _play(PLANS["patterns"], events, 0)
    assert sum(twin.calm_events for twin in made) > 2


@pytest.mark.parametrize("folder", sorted(CORPUS.iterdir()), ids=lambda folder: folder.name)
def test_g03_transcripts_come_to_what_they_come_to_in_full(folder: Path) -> None:
    if not (folder / "case.yaml").exists():
        pytest.skip("no case")
    case = Case(folder)
    with watched():
        for cut in case.script.cuts[:2]:
            case.play(case.plan(), cut)


def test_g03_fuzzed_exchanges_come_to_what_they_come_to_in_full() -> None:
    mutator = Mutator("exchange", seeds("exchange"), random.Random("calm"))
    inputs = [*seeds("exchange"), *(mutator.draw() for _ in range(150))]
    with watched():
        for data in inputs:
            run_exchange(data)


def test_g03_texts_of_all_kinds_come_to_what_they_come_to_in_full() -> None:
    chance = random.Random("texts")
    for path in sorted(TEXTS.glob("*.txt")):
        text = path.read_text("utf-8")[:3000]
        at, pieces = 0, list[bytes]()
        while at < len(text):
            size = chance.choice((1, 2, 3, 5, 8))
            pieces.append(says(json.loads(json.dumps(text[at : at + size]))))
            at += size
        many = chance.choice((1, 1, 7, 40))
        pieces = [b"".join(pieces[low : low + many]) for low in range(0, len(pieces), many)]
        events: list[AnyEvent] = [UpstreamOpened(200, streaming=True), *map(UpstreamBytes, [*pieces, ends(), DONE])]
        for name in ("scored", "defaults"):
            with watched() as made:
                _play(PLANS[name], [*events, UpstreamClosed()], chance.randrange(3))
            assert isinstance(made[0], Twin)


@pytest.mark.parametrize("surface", APIS)
def test_g03_texts_on_each_surface_come_to_what_they_come_to_in_full(surface: str) -> None:
    chance = random.Random(f"surfaces {surface}")
    for path in sorted(TEXTS.glob("*.txt")):
        said = Choice(content=path.read_text("utf-8")[: chance.choice((900, 2500))])
        script = Script(choices=[said], split=chance.choice((Split(by="words"), Split(by="random", size=9))))
        data, size = told(surface, script), chance.choice((90, 600, 2000, 9000))
        events: list[AnyEvent] = [UpstreamBytes(data[at : at + size]) for at in range(0, len(data), size)]
        for name in ("scored", "defaults"):
            with watched():
                exchange = Exchange(SURFACES[surface], PLANS[name])
                exchange.send(RequestReceived(in_words(surface, script)))
                _take(exchange, [UpstreamOpened(200, streaming=True), *events, UpstreamClosed()], chance.randrange(3))


_MORE: list[dict[str, object]] = [
    {},
    {"refusal": "No."},
    {"reasoning_content": "fed"},
    {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
]
_BESIDES: list[dict[str, object]] = [
    {},
    {"usage": {"total_tokens": 3}},
    {"id": "ann.lee@northwind.example"},
    {"odd": "sword"},
]


@st.composite
def _wholes(draw: st.DrawFn) -> list[AnyEvent]:
    """Return an answer that is not streamed: mostly one text, now and then something else."""
    pieces = st.one_of(WORDS, WORDS, WORDS, st.sampled_from([" x", "\n", " <EMAIL_1>", " \u00a0s\u00adword"]))
    message = {"role": "assistant", "content": "".join(draw(st.lists(pieces, max_size=40)))}
    message |= draw(st.sampled_from([{}, {}, {}, *_MORE]))
    reason = draw(st.sampled_from(["stop", "stop", "length", "tool_calls", None]))
    choices = range(draw(st.sampled_from([1, 1, 1, 1, 2, 0])))
    told = [{"index": number, "message": message, "finish_reason": reason} for number in choices]
    body = json.dumps({"model": "m", "choices": told, **draw(st.sampled_from([{}, {}, *_BESIDES]))}).encode()
    status, last = (
        draw(st.sampled_from([200, 200, 200, 503])),
        draw(st.sampled_from([None, Draining(), DownstreamClosed()])),
    )
    events: list[AnyEvent] = [UpstreamOpened(status, streaming=False), UpstreamBytes(body)]
    return [*events, *([] if last is None else [last]), UpstreamClosed()]


@pytest.mark.parametrize("name", PLANS)
@given(events=_wholes())
@settings(max_examples=25)
def test_g01_g03_whole_answers_come_to_what_they_come_to_judged(name: str, events: list[AnyEvent]) -> None:
    with watched():
        _play(PLANS[name], events, 0)


@pytest.mark.parametrize("surface", APIS)
def test_g03_whole_answers_whose_names_are_kept_come_to_what_they_come_to_judged(surface: str) -> None:
    """Who goes on from an answer is to know its names, though the answer says none."""
    plan = msgspec.structs.replace(PLANS["restored"], keeps_names=True)
    script = Script(choices=[Choice(content="All is well there.")])
    body = told(surface, script, stream=False)
    with watched():
        exchange = Exchange(SURFACES[surface], plan)
        exchange.send(RequestReceived(in_words(surface, script, stream=False)))
        _take(exchange, [UpstreamOpened(200, streaming=False), UpstreamBytes(body), UpstreamClosed()], 0)


@pytest.mark.parametrize("surface", APIS)
def test_g01_g03_short_whole_answers_of_prose_leave_as_they_came(surface: str) -> None:
    untouched = 0
    for path in sorted(TEXTS.glob("*.txt")):
        for chars in (90, 400, 700):
            script = Script(choices=[Choice(content=path.read_text("utf-8")[:chars])])
            body = told(surface, script, stream=False)
            events: list[AnyEvent] = [UpstreamOpened(200, streaming=False), UpstreamBytes(body), UpstreamClosed()]
            with watched() as made:
                exchange = Exchange(SURFACES[surface], PLANS["defaults"])
                exchange.send(RequestReceived(in_words(surface, script, stream=False)))
                _take(exchange, events, 0)
            untouched += made[0]._course.whole.untouched
            assert exchange.out.reply is not None
            assert not made[0]._course.whole.untouched or exchange.out.reply.body == body
    assert untouched >= 4
