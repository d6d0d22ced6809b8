"""G10 and G22: the work for a stream grows with its length and no faster, what is kept of it stays small.

Work is counted in characters that are handed to the regex engine, never in time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.commands import PauseUpstream
from checkstream.core.events import RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.match.engine import Hit, Regex
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import Member, PatternSet, Table
from checkstream.core.match.scan import Scan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.terms import Finding, Stage
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.playbook import Exchange

CHAT = OpenAIChat()
LABELS = (ClassifierLabel("lexicon.toxicity"),)
NAMES = ", ".join(sorted(ENTITIES))
RULES = f"""
pack: {{name: all, version: 1.0.0}}
policies:
  - {{name: all, id: ALL-1, stage: [midstream], entities: [{NAMES}], phrases: [zero risk], actions: [{{type: redact}}]}}
  - name: open
    id: PAT-1
    stage: [midstream]
    patterns: [{{name: open, regex: 'BEGIN[a-z ]*END', max_chars: 300}}]
    actions: [{{type: redact}}]
"""
TOXIC = """
  - name: tox
    id: TOX-1
    stage: [midstream]
    classifiers: [{name: lexicon.toxicity, threshold: 0.8}]
    actions: [{type: stop}]
"""
REQUEST = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def program(rules: str = RULES) -> Program:
    return compile_sources([("all.yaml", rules)], LABELS)


PLAN = Plan(program=program())


class Counter:
    """Counts what the regex engine is asked to read."""

    def __init__(self) -> None:
        self.chars = 0


class Counted:
    """A compiled expression that counts.

    `companions` match every beginning of what the expression matches: they tell where it ceases to be possible.
    """

    def __init__(self, regex: Regex, counter: Counter, companions: Sequence[Regex]) -> None:
        self.regex, self.counter, self.companions = regex, counter, companions

    def search(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        end = len(text) if endpos < 0 else min(endpos, len(text))
        hit = self.regex.search(text, pos) if endpos < 0 else self.regex.search(text, pos, endpos)
        # The companions are anchored at the end, so they read all; the others stop where they find something.
        self.counter.chars += max(end - pos, 0) if hit is None else max(hit.end() - pos, 0)
        return hit

    def match(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        end = len(text) if endpos < 0 else min(endpos, len(text))
        hit = self.regex.match(text, pos) if endpos < 0 else self.regex.match(text, pos, endpos)
        self.counter.chars += self._possible(text, pos, end) + 1 if hit is None else max(hit.end() - pos, 0)
        return hit

    def _possible(self, text: str, pos: int, end: int) -> int:
        """Return for how many characters from `pos` a match is possible: an anchored question stops behind them."""
        most = 0
        for companion in self.companions:
            low, high = 0, end - pos
            while low < high:  # what goes on being possible was possible before
                middle = (low + high + 1) // 2
                if companion.match(text, pos, pos + middle) is not None:
                    low = middle
                else:
                    high = middle - 1
            most = max(most, low)
        return most


def counting(patterns: PatternSet) -> Counter:
    """Put counting expressions in the place of a set's own."""
    counter = Counter()
    made: dict[int, Table] = {}

    def member(given: Member) -> Member:
        beginnings = (given.companion,)
        regex, companion = (Counted(each, counter, beginnings) for each in (given.regex, given.companion))
        return msgspec.structs.replace(given, regex=regex, companion=companion)

    for view, table in patterns.tables.items():
        if id(table) not in made:
            made[id(table)] = msgspec.structs.replace(
                table,
                members=tuple(map(member, table.members)),
                gates=tuple(Counted(regex, counter, table.companions) for regex in table.gates),
                companions=tuple(Counted(regex, counter, (regex,)) for regex in table.companions),
            )
        patterns.tables[view] = made[id(table)]
    return counter


def scan_all(patterns: PatternSet, pieces: Sequence[str]) -> list[Finding]:
    state = Scan(patterns)
    found = [finding for piece in pieces for finding in state.feed(piece)]
    return found + state.end()


def hold_set() -> PatternSet:
    return program().scope(Stage.MIDSTREAM, "content").hold


BENIGN = "The 1st quick brown fox jumps over 10% of the lazy dogs, at 12:30. "
TEXTS: Mapping[str, Callable[[int], str]] = {
    "benign prose": lambda size: (BENIGN * (size // len(BENIGN) + 1))[:size],
    "one word that never ends": lambda size: "a" * size,
    "digits that never end": lambda size: "1 " * (size // 2),
    "addresses that never come": lambda size: ("joe.smith@" * (size // 10 + 1))[:size],
    "an open pattern over and over": lambda size: ("BEGIN now " * (size // 10 + 1))[:size],
    "an open pattern that never closes": lambda size: ("BEGIN " + "secret " * (size // 7 + 1))[:size],
    "escapes": lambda size: ("\\u0061%41&#65;" * (size // 14 + 1))[:size],
    "letters set apart": lambda size: "x " * (size // 2),
    "marks on one letter": lambda size: "e" + "\u0301" * (size - 1),
    "base64 that never ends": lambda size: ("QWxh" * (size // 4 + 1))[:size],
    "condemned at every place": lambda size: ("a@b.io " * (size // 7 + 1))[:size],
}
MOST_READ = 10_000
"""Times that one character may be handed to the engine, in all views and expressions, fed one at a time: a hostile
text keeps up to the longest bound of a pattern live, and what is live is read again with each character."""


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_g10_twice_the_text_is_twice_the_work(kind: str) -> None:
    read = []
    for size in (3_000, 6_000):
        patterns = hold_set()
        counter = counting(patterns)
        scan_all(patterns, [TEXTS[kind](size)[at : at + 4] for at in range(0, size, 4)])
        read.append(counter.chars)
    assert read[1] <= 2.3 * read[0], kind
    assert read[1] <= MOST_READ * 6_000


def test_g10_a_benign_text_is_read_a_few_times_over() -> None:
    patterns = hold_set()
    counter = counting(patterns)
    text = TEXTS["benign prose"](6_000)
    scan_all(patterns, text.split(" "))
    in_pieces, counter.chars = counter.chars, 0
    scan_all(patterns, [text])
    assert in_pieces <= 60 * len(text)
    assert counter.chars <= 30 * len(text)


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_g22_what_a_scan_keeps_is_bounded_by_the_patterns_not_by_the_text(kind: str) -> None:
    state = Scan(PLAN.program.scope(Stage.MIDSTREAM, "content").hold)
    text = TEXTS[kind](6_000)
    most = 0
    for at in range(0, len(text), 100):
        state.feed(text[at : at + 100])
        most = max(most, kept(state))
    assert most <= 15_000


@given(
    words=st.lists(
        st.sampled_from(["a@b.io ", "zero risk ", "4111 1111 1111 1111 ", "ok ", "é ", "\\u0061@b.io "]), max_size=30
    )
)
def test_g10_a_span_is_reported_once(words: list[str]) -> None:
    text = "".join(words)
    found = scan_all(PLAN.program.scope(Stage.MIDSTREAM, "content").hold, list(text))
    spans = [(finding.signal, finding.span) for finding in found]
    assert len(spans) == len(set(spans))
    exchange = opened(PLAN)
    for char in text:
        exchange.send(says(char))
    exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    findings = [(finding.detector, finding.span) for finding in exchange.out.record.findings]
    assert len(findings) == len(set(findings)) == len(spans)


# --- the guard as a whole


def opened(plan: Plan) -> Exchange:
    exchange = Exchange(CHAT, plan)
    exchange.send(RequestReceived(REQUEST))
    exchange.send(UpstreamOpened(200, streaming=True))
    return exchange


def says(text: str) -> UpstreamBytes:
    rows = [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    return UpstreamBytes(b"data: " + json.dumps({**HEAD, "choices": rows}).encode() + b"\n\n")


_SHARED = (Program, PatternSet, Plan, type, OpenAIChat)


def kept(root: object) -> int:
    """Return the size of all that an object reaches: characters, bytes, and one for each item of a container."""
    seen: set[int] = set()
    todo = [root]
    size = 0
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, _SHARED) or callable(item):
            continue
        seen.add(id(item))
        if isinstance(item, str | bytes | bytearray):
            size += len(item)
        else:
            parts = list(inside(item))
            size += len(parts)
            todo += parts
    return size


def inside(item: Any) -> Iterator[object]:
    if isinstance(item, Mapping):
        yield from item.keys()
        yield from item.values()
    elif isinstance(item, Table | int | float):
        return
    elif isinstance(item, Sequence | set | frozenset) or hasattr(item, "popleft"):
        yield from item
    else:
        names = {name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())}
        names |= set(getattr(item, "__dict__", ())) | set(getattr(item, "__struct_fields__", ()))
        yield from (getattr(item, name) for name in names if hasattr(item, name))


def feed(exchange: Exchange, events: Iterator[UpstreamBytes]) -> int:
    """Send events until the guard has closed; return the most that it kept at any time."""
    most = 0
    for number, event in enumerate(events):
        if exchange.out.record is not None:
            break
        exchange.out.sent.clear()
        exchange.out.commands.clear()
        exchange.send(event)
        if number % 25 == 0:
            most = max(most, kept(exchange.guard))
    return most


def test_g22_an_event_that_never_ends_is_given_up_at_its_cap() -> None:
    exchange = opened(msgspec.structs.replace(PLAN, event_bytes=50_000))
    most = feed(exchange, (UpstreamBytes(b"data: {" + b"x" * 993) for _ in range(1_000)))
    assert exchange.out.cancelled
    assert exchange.out.record is not None
    assert 10_000 <= most <= 2 * 50_000 + 20_000


@pytest.mark.parametrize("kind", ["one word that never ends", "an open pattern that never closes"])
def test_g22_a_million_characters_that_stay_live_are_let_go_bit_by_bit(kind: str) -> None:
    exchange = opened(Plan(program=program(RULES.replace(NAMES, "EMAIL"))))
    text = TEXTS[kind](1_000_000)
    most = feed(exchange, (says(text[at : at + 4_000]) for at in range(0, len(text), 4_000)))
    exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.answer_chars == 1_000_000
    assert most <= 40_000


def test_g22_text_that_no_classifier_clears_pauses_the_upstream_before_it_grows() -> None:
    exchange = opened(Plan(program=program(RULES + TOXIC), held_bytes=40_000))
    sent = most = 0
    while sent < 1_000_000 and PauseUpstream() not in exchange.out.commands:
        exchange.send(says("word " * 20))
        sent += 100
        most = max(most, kept(exchange.guard))
    assert PauseUpstream() in exchange.out.commands
    assert exchange.guard._course.outbox.bytes_held <= 40_000 + 1_000
    assert most <= 4 * 40_000
    while exchange.unanswered:
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, {"lexicon.toxicity": 0.0}))
    exchange.send(UpstreamClosed())
    while exchange.unanswered:
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, {"lexicon.toxicity": 0.0}))
    assert exchange.out.record is not None
    assert exchange.guard._course.outbox.bytes_held == 0
