"""The first law: what the caller receives does not depend on how the upstream's bytes were cut (G1, G3, G12)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.playbook import Played, capitalised, play

POLICY = """
pack: {name: law, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}
  - {name: stop, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Stopped.}]}
  - name: code
    id: PAT-1
    stage: [midstream]
    patterns: [{name: code, regex: 'code-[0-9]{2,6}', max_chars: 16}]
    actions: [{type: redact, text: "<code>"}]
  - {name: seen, id: LOG-1, stage: [midstream], mode: shadow, phrases: [hello], actions: [{type: redact}]}
  - name: fca
    id: FCA-1
    stage: [midstream]
    phrases: [guaranteed]
    actions: [{type: inject_disclaimer, text: Capital at risk., position: end}]
"""
TOXIC = """
  - name: tox
    id: TOX-1
    stage: [midstream]
    channels: [content]
    classifiers: [{name: lexicon.toxicity, threshold: 0.8}]
    actions: [{type: stop, message: Stopped.}]
"""
WIDE = """
  - {name: w, id: W-1, stage: [midstream], phrases: [hello], actions: [{type: redact, style: mask, scope: word}]}
  - name: s
    id: S-1
    stage: [midstream]
    patterns: [{name: digits, regex: '[0-9]{5,8}'}]
    actions: [{type: redact, style: text, text: "<gone>", scope: sentence}]
  - name: soft
    id: SOFT-1
    stage: [midstream]
    channels: [content]
    phrases: [guaranteed]
    actions:
      - {type: rewrite_span, editor: lexicon, words: {guaranteed: possible}}
      - {type: inject_disclaimer, text: Capital at risk., position: after_sentence}
"""
BEHIND = """
  - name: risk
    id: RISK-1
    stage: [midstream]
    channels: [content]
    phrases: [risk, guaranteed]
    actions: [{type: inject_disclaimer, text: Capital at risk., position: after_sentence}]
"""
SOFTER = """
  - name: tox
    id: TOX-1
    stage: [midstream]
    channels: [content]
    classifiers: [{name: lexicon.toxicity, threshold: 0.8}]
    actions: [{type: rewrite_span, editor: lexicon, words: {idiot: fool}}]
"""
NAMES = """
  - {name: people, id: PER-1, stage: [midstream], entities: [PERSON], actions: [{type: redact}]}
  - name: places
    id: LOC-1
    stage: [midstream]
    entities: [LOCATION]
    conditions: ['findings.PERSON > 1']
    actions: [{type: redact, style: mask, scope: word}]
  - {name: noted, id: LOG-2, stage: [midstream], entities: [LOCATION], actions: [{type: log_event}]}
  - {name: behind, id: EGR-1, stage: [egress], entities: [PERSON], actions: [{type: log_event}]}
"""
STOPPED = """
  - {name: people, id: PER-2, stage: [midstream], entities: [PERSON], actions: [{type: stop, message: Stopped.}]}
"""
LABELS = (ClassifierLabel("lexicon.toxicity"), ModelEntity("PERSON", "ner", 0.5), ModelEntity("LOCATION", "ner", 0.5))
PLAN = Plan(program=compile_sources([("law.yaml", POLICY)]))
BEHIND_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + BEHIND)]))
WIDE_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + WIDE)]))
SOFTER_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + WIDE + SOFTER)], LABELS))
NAMES_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + NAMES)], LABELS))
NAMES_TOXIC_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + NAMES + SOFTER)], LABELS))
NAMES_STOP_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + STOPPED)], LABELS))
TOXIC_PLAN = Plan(program=compile_sources([("law.yaml", POLICY + TOXIC)], LABELS))
REQUEST = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
WORDS = st.sampled_from(
    ["hello ", "the ", "a@b.io ", "john.smith@example.com", ", ", "4111 1111 1111 1111", " 12 34 ", "code-12", "345",
     "zero", " ", "risk", "guaranteed ", "idiot ", ". ", "! ", "Ärger ", "漢字", "\n", "zero risk", "x" * 70, "é",
     "4111 1111", "John ", "Smith", " Mary Ann Evans", "PARIS "]
)  # fmt: skip


def sse(pieces: list[str]) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [{**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}]
    events += [
        {**head, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces
    ]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def said(played: Played) -> tuple[str, list[str]]:
    text, ends = "", []
    for line in played.joined.split(b"\n"):
        if line.startswith(b"data: {"):
            body = json.loads(line[6:])
            assert "error" not in body, body
            for choice in body["choices"]:
                text += choice["delta"].get("content") or ""
                if choice["finish_reason"]:
                    ends.append(choice["finish_reason"])
    return text, ends


def decided(played: Played) -> list[tuple[object, ...]]:
    assert played.record is not None
    return sorted((v.rule_id, v.spans, v.mode) for v in played.record.verdicts)


def cut(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted({point % (len(data) + 1) for point in points}), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


@pytest.mark.parametrize(
    "plan",
    [PLAN, TOXIC_PLAN, BEHIND_PLAN, WIDE_PLAN, SOFTER_PLAN, NAMES_PLAN, NAMES_TOXIC_PLAN, NAMES_STOP_PLAN],
    ids=["patterns", "classifier", "behind", "wide", "softer", "names", "names-softer", "names-stop"],
)
@given(words=st.lists(WORDS, max_size=14), points=st.lists(st.integers(0, 5000), max_size=40), data=st.data())
def test_g03_splits_of_bytes_and_of_text_change_nothing(
    plan: Plan, words: list[str], points: list[int], data: st.DataObject
) -> None:
    surface = OpenAIChat()
    text = "".join(words)
    whole = sse([text]) if text else sse([])
    one = play(surface, plan, REQUEST, [whole], scorer=capitalised)
    tokens = [part for part in _cut_text(text, data.draw(st.lists(st.integers(0, 400), max_size=30))) if part]
    many = play(surface, plan, REQUEST, cut(sse(tokens), points), scorer=capitalised)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    flat = play(surface, plan, REQUEST, [json.dumps(body).encode()], streaming=False, scorer=capitalised)
    assert one.closed
    assert many.closed
    assert said(one) == said(many)
    assert decided(one) == decided(many) == decided(flat)
    assert flat.reply is not None
    choice = json.loads(flat.reply.body)["choices"][0]
    assert ((choice["message"]["content"] or ""), [choice["finish_reason"]]) == said(one)


def _cut_text(text: str, points: list[int]) -> list[str]:
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]
