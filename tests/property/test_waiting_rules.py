"""Rules that are decided later than where something was found: for the scores that they read, or for the end.

Neither the cut of the text nor the time of the answers shows (G1, G3), nothing leaves that is still to be decided (G4),
and whatever waits is decided: the stream closes.
"""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from checkstream.core.channel.checks import HoldSettings
from checkstream.core.commands import Score
from checkstream.core.events import (
    AnyEvent,
    RequestReceived,
    Scored,
    ScoringFailed,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.playbook import Exchange, Played, Scorer

CHAT = OpenAIChat()
LABELS = (ClassifierLabel("toy.alpha"), ClassifierLabel("other.beta"))
HEAD = "pack: {name: waits, version: 1.0.0}\npolicies:\n"
RULES = {
    "check": """
  - {name: r, id: R, stage: midstream, phrases: [zero risk], conditions: ["scores.alpha > 0.5"], actions: [ACTION]}
""",
    "check of a score that may be missing": """
  - name: r
    id: R
    stage: midstream
    phrases: [zero risk]
    entities: [EMAIL]
    conditions: ["has(scores.beta) ? scores.beta > scores.alpha : true"]
    actions: [ACTION]
""",
    "count": """
  - {name: r, id: R, stage: midstream, entities: [EMAIL], conditions: ["findings.EMAIL >= 2"], actions: [ACTION]}
""",
    "tokens": """
  - {name: r, id: R, stage: midstream, phrases: [zero risk], conditions: ["stream.tokens > 9"], actions: [ACTION]}
""",
    "language": """
  - name: r
    id: R
    stage: midstream
    phrases: [zero risk]
    entities: [EMAIL]
    conditions: ["stream.language == 'de' || stream.language == 'ja'"]
    actions: [ACTION]
""",
    "risk": """
  - name: r
    id: R
    stage: midstream
    phrases: [zero risk]
    conditions: ["stream.risk > 0.5 || stream.trend < 0.0"]
    actions: [ACTION]
  - {name: s, id: S, stage: midstream, classifiers: [{name: alpha, threshold: 0.99}], actions: [ACTION]}
""",
    "end": """
  - name: r
    id: R
    stage: egress
    triggers: {all: [{phrases: [zero risk]}, {not: {entities: [EMAIL]}}]}
    actions: [{type: inject_disclaimer, text: Capital at risk.}]
  - name: s
    id: S
    mode: shadow
    stage: midstream
    triggers: {all: [{entities: [EMAIL]}, {not: {classifiers: [{name: alpha, threshold: 0.5}]}}]}
    actions: [{type: stop}]
  - {name: t, id: T, stage: midstream, phrases: [idiot], actions: [ACTION]}
  - name: u
    id: U
    stage: egress
    conditions: ["findings.EMAIL > 0 && stream.tokens > 4 && scores.beta < 0.5"]
    actions: [{type: inject_disclaimer, text: Mail us.}]
""",
    "tree": """
  - name: r
    id: R
    stage: midstream
    triggers:
      any:
        - all: [{phrases: [zero risk]}, {any: [{entities: [EMAIL]}, {classifiers: [{name: alpha, threshold: 0.5}]}]}]
        - all: [{classifiers: [{name: beta, threshold: 0.5}]}, {phrases: [idiot]}]
    actions: [ACTION]
""",
    "cases": """
  - name: r
    id: R
    stage: midstream
    classifiers:
      - {name: alpha, threshold: 0.95, when: [{condition: "findings.EMAIL > 0 && stream.tokens > 5", threshold: 0.4}]}
    actions: [ACTION]
""",
}
ACTIONS = (
    "{type: redact}",
    "{type: redact, scope: word}",
    "{type: redact, scope: sentence}",
    "{type: stop, message: Stopped.}",
    "{type: inject_disclaimer, text: Mind., position: after_sentence}",
    "{type: log_event}",
)
REQUEST = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
HEADER = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
PIECES = st.sampled_from(
    ["hello ", "the ", "a@b.io ", "john.smith@example.com", ", ", ". ", "zero", " ", "risk", "zero risk", "idiot ",
     "ja ", "und das ist nicht ", "das Wetter mit dem Hund. ", "これは日本語の文章です。", "\n", "x" * 70, "you are! "]
)  # fmt: skip
SETTINGS = st.builds(
    HoldSettings,
    tokens=st.integers(0, 6),
    calm_tokens=st.integers(0, 3),
    check_every=st.integers(1, 8),
    window=st.integers(2, 12),
)


def plan(rules: str, action: str, hold: HoldSettings, fail_mode: str = "closed") -> Plan:
    program = compile_sources([("w.yaml", HEAD + RULES[rules].replace("ACTION", action))], LABELS)
    made = Plan(program=program, hold=hold)
    return msgspec.structs.replace(made, fail_mode=fail_mode)


def score(request: Score) -> AnyEvent:
    """Answer by the text of the window alone."""
    text = request.text
    return Scored(
        request.ticket,
        {"toy.alpha": 0.6 if "idiot" in text else 0.1, "other.beta": 0.9 if "hello" in text else 0.2},
    )


def says(text: str) -> bytes:
    row = {**HEADER, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return b"data: " + json.dumps(row).encode() + b"\n\n"


END = b"data: " + json.dumps({**HEADER, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode()
CLOSING = END + b"\n\ndata: [DONE]\n\n"


def opened(made: Plan, scorer: Scorer | None) -> Exchange:
    exchange = Exchange(CHAT, made, scorer)
    exchange.send(RequestReceived(REQUEST))
    exchange.send(UpstreamOpened(200, streaming=True))
    return exchange


def stream(made: Plan, pieces: list[str], scorer: Scorer = score) -> Played:
    exchange = opened(made, scorer)
    for piece in [*map(says, pieces), CLOSING]:
        if not exchange.out.cancelled:
            exchange.send(UpstreamBytes(piece))
    if not exchange.out.cancelled:
        exchange.send(UpstreamClosed())
    return exchange.out


def text_of(out: Played) -> str:
    rows = [json.loads(line[6:]) for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    assert not [row for row in rows if "error" in row]
    return "".join(choice["delta"].get("content") or "" for row in rows for choice in row["choices"])


def cut(text: str, points: list[int]) -> list[str]:
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    return [text[a:b] for a, b in pairwise(edges) if a < b]


def decided(out: Played) -> list[tuple[object, ...]]:
    assert out.record is not None
    assert out.closed
    return sorted((v.rule_id, v.spans, v.mode, v.confidence, v.undecided) for v in out.record.verdicts)


@pytest.mark.parametrize("rules", sorted(RULES))
@given(
    words=st.lists(PIECES, max_size=16),
    points=st.lists(st.integers(0, 600), max_size=30),
    action=st.sampled_from(ACTIONS),
    hold=SETTINGS,
)
def test_g03_what_waits_is_decided_alike_however_the_text_is_cut(
    rules: str, words: list[str], points: list[int], action: str, hold: HoldSettings
) -> None:
    text = "".join(words)
    made = plan(rules, action, hold)
    one, many, single = (stream(made, pieces) for pieces in ([text] if text else [], cut(text, points), list(text)))
    assert decided(one) == decided(many) == decided(single)
    assert text_of(one) == text_of(many) == text_of(single)
    assert one.record is not None
    event("fires" if one.record.verdicts else "is quiet")


@pytest.mark.parametrize("rules", sorted(RULES))
@given(
    words=st.lists(PIECES, max_size=12),
    points=st.lists(st.integers(0, 600), max_size=12),
    action=st.sampled_from(ACTIONS),
    hold=SETTINGS,
    turns=st.lists(st.integers(0, 3), max_size=40),
)
def test_g04_nothing_leaves_before_it_is_decided_whenever_the_answers_come(
    rules: str, *, words: list[str], points: list[int], action: str, hold: HoldSettings, turns: list[int]
) -> None:
    text = "".join(words)
    made = plan(rules, action, hold)
    final = stream(made, [text] if text else [])
    exchange = opened(made, None)
    coming = [*map(says, cut(text, points)), CLOSING]
    dice = iter(turns)
    while coming or exchange.unanswered:
        turn = next(dice, 0)
        if exchange.unanswered and (turn or not coming):
            exchange.send(score(exchange.unanswered.pop(turn % len(exchange.unanswered))))
        elif coming:
            piece = coming.pop(0)
            if not exchange.out.cancelled:
                exchange.send(UpstreamBytes(piece))
        assert text_of(final).startswith(text_of(exchange.out))
    if not exchange.out.cancelled:
        exchange.send(UpstreamClosed())
    while exchange.unanswered:
        exchange.send(score(exchange.unanswered.pop(0)))
    assert decided(exchange.out) == decided(final)
    assert text_of(exchange.out) == text_of(final)


@pytest.mark.parametrize("fail_mode", ["open", "closed"])
@pytest.mark.parametrize("rules", sorted(RULES))
@given(
    words=st.lists(PIECES, max_size=12),
    points=st.lists(st.integers(0, 600), max_size=12),
    action=st.sampled_from(ACTIONS),
    hold=SETTINGS,
    failing=st.sets(st.integers(0, 12)),
)
def test_g09_classifiers_that_fail_leave_nothing_waiting_for_ever(
    rules: str,
    fail_mode: str,
    *,
    words: list[str],
    points: list[int],
    action: str,
    hold: HoldSettings,
    failing: set[int],
) -> None:
    text = "".join(words)
    made = plan(rules, action, hold, fail_mode)

    def sometimes(request: Score) -> AnyEvent:
        if request.ticket in failing:
            return ScoringFailed(request.ticket, "deadline")
        return score(request)

    out = stream(made, cut(text, points), sometimes)
    assert out.closed
    assert out.record is not None
