"""G4 through the whole guard: no character of a condemned span is ever sent, whatever the entity and the cut.

G11 beside it: two exchanges fed in turns come to what each comes to alone.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.chance import examples
from tests.playbook import Exchange
from tests.unit.core.match.entities.examples import EXAMPLES

CHAT = OpenAIChat()
NAMES = ", ".join(sorted(ENTITIES))
RULE = f"""
pack: {{name: all, version: 1.0.0}}
policies:
  - {{name: all, id: ALL-1, stage: [midstream], entities: [{NAMES}], actions: [{{type: redact, scope: SCOPE}}]}}
"""
PLANS = {
    scope: Plan(program=compile_sources([("all.yaml", RULE.replace("SCOPE", scope))]))
    for scope in ("span", "word", "sentence")
}
PLAN = PLANS["span"]
REQUEST = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
END: list[AnyEvent] = [UpstreamBytes(b"data: [DONE]\n\n"), UpstreamClosed()]
POSITIVE = [example for example in EXAMPLES if example.spans and len(example.text) <= 400]


def says(text: str) -> UpstreamBytes:
    body = {**HEAD, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return UpstreamBytes(b"data: " + json.dumps(body).encode() + b"\n\n")


def text_of(data: bytes) -> str:
    lines = data.split(b"\n")
    return "".join(json.loads(line[6:])["choices"][0]["delta"]["content"] for line in lines if line[:7] == b"data: {")


def stream(pieces: list[str], plan: Plan = PLAN) -> tuple[Exchange, list[str]]:
    """Return the exchange and the text that each piece made leave, the end of the stream last."""
    exchange = Exchange(CHAT, plan)
    exchange.send(RequestReceived(REQUEST))
    exchange.send(UpstreamOpened(200, streaming=True))
    left = []
    events: list[list[AnyEvent]] = [[says(piece)] for piece in pieces]
    events.append(END)
    for together in events:
        before = len(exchange.out.sent)
        for event in together:
            exchange.send(event)
        left.append("".join(map(text_of, exchange.out.sent[before:])))
    return exchange, left


def test_every_entity_has_an_example() -> None:
    assert {example.entity for example in POSITIVE} == set(ENTITIES)


@pytest.mark.parametrize("entity", sorted(ENTITIES))
def test_g04_no_part_of_an_entity_leaves_at_any_cut(entity: str) -> None:
    for example in (example for example in POSITIVE if example.entity == entity):
        text = example.text
        expected = "".join(stream([text])[1])
        for start, end in example.spans:
            assert text[start:end] not in expected
        cuts = range(1, len(text), max(1, len(text) // examples(16)))
        for pieces in [*([text[:cut], text[cut:]] for cut in cuts), list(text)]:
            left = stream(pieces)[1]
            # All that leaves at any time is the beginning of what leaves in the end, in which no span stands.
            assert "".join(left) == expected, pieces


@pytest.mark.parametrize("scope", ["word", "sentence"])
@pytest.mark.parametrize("entity", sorted(ENTITIES))
def test_g04_no_part_of_the_word_or_sentence_of_an_entity_leaves_at_any_cut(entity: str, scope: str) -> None:
    known = [example for example in POSITIVE if example.entity == entity]
    for example in known[:4]:
        text = f"Hello there. {example.text} and so. Bye"
        expected = "".join(stream([text], PLANS[scope])[1])
        kept = [each for each in text.split() if each in expected.split()]
        for start, end in example.spans:
            assert not set(text[start + 13 : end + 13].split()) & set(kept) - {"and", "so.", "there.", "Hello", "Bye"}
        assert expected.startswith("Hello there.")
        assert expected.endswith("Bye")
        cuts = range(1, len(text), max(1, len(text) // examples(10)))
        for pieces in [*([text[:cut], text[cut:]] for cut in cuts), list(text)]:
            assert "".join(stream(pieces, PLANS[scope])[1]) == expected, pieces


@given(
    turns=st.lists(st.booleans(), max_size=60),
    one=st.integers(0, len(POSITIVE) - 1),
    two=st.integers(0, len(POSITIVE) - 1),
)
def test_g11_interleaved_streams_change_nothing(turns: list[bool], one: int, two: int) -> None:
    texts = (POSITIVE[one].text, POSITIVE[two].text)
    queues: tuple[list[AnyEvent], ...] = tuple(
        [RequestReceived(REQUEST), UpstreamOpened(200, streaming=True), *map(says, text), *END] for text in texts
    )
    exchanges = (Exchange(CHAT, PLAN), Exchange(CHAT, PLAN))
    for turn in turns:
        if queues[turn]:
            exchanges[turn].send(queues[turn].pop(0))
    for exchange, queue, text in zip(exchanges, queues, texts, strict=True):
        for event in queue:
            exchange.send(event)
        alone, _ = stream(list(text))
        assert exchange.out.joined == alone.out.joined
        assert exchange.out.record == alone.out.record
