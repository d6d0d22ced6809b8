"""Laws of channels that are decided in words or sentences: G3 and G4 with edits of more than a span, and insertions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.actions import Firing, resolve
from checkstream.core.channel.checks import EVERYTHING, Check, HoldSettings
from checkstream.core.channel.grain import Scope
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.matches import Cluster
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.segments import Segments
from checkstream.core.policy.action import AnyAction, Redact, RewriteSpan, Stop
from checkstream.core.policy.program import RuleMeta, Signal
from checkstream.core.terms import Channel, Span, Stage

REGEXES = ("span", "word", "sent", r"d\. s", "漢。字", "soft", "halt", "[0-9]{2,6}", "note")
PATTERNS = PatternSet([Pattern(signal=i, name=f"p{i}", regex=regex) for i, regex in enumerate(REGEXES)])
WORDS = ("span", "word", "sent", "d. s", "漢。字", "soft", "12", "345", "note")
SETTINGS = HoldSettings(tokens=4, calm_tokens=1, check_every=3, window=6)
PIECES = st.sampled_from([*WORDS, "sof", "t", " ", ". ", ".", "! ", "\n", "fine ", "idiot ", "x", "漢", "。", "  "])
SOFTER = RewriteSpan(words=(("soft", "mild"), ("idiot", "fool")))


def rule(number: int, *actions: AnyAction) -> RuleMeta:
    return RuleMeta(
        id=f"R-{number}",
        name="r",
        pack="p",
        version="1",
        stages=frozenset({Stage.MIDSTREAM}),
        channels=frozenset({"content"}),
        actions=actions,
        triggers=(number,),
        thresholds=(None,),
    )


SCOPES: tuple[Scope, ...] = ("span", "word", "sentence")
NUMBERS = 7
NOTE = 8
SCORED = 9
ACTIONS: dict[int, AnyAction] = {
    0: Redact(),
    1: Redact(scope="word"),
    2: Redact(scope="sentence"),
    3: Redact(style="text", text="<joined>"),
    4: Redact(style="mask", scope="word"),
    5: SOFTER,
    6: Stop(),
    NUMBERS: Redact(style="hash"),
    SCORED: SOFTER,
}
RULES = {number: rule(number, action) for number, action in ACTIONS.items()}


class Reader:
    """A channel read to its end the way a judge does, and what of it leaves at which moment."""

    def __init__(self, grain: Scope, rules: dict[int, RuleMeta], *, checks: bool) -> None:
        self.holdback = Holdback(PATTERNS, checks=checks, settings=SETTINGS, grain=grain)
        self.sentences = Segments("sentence")
        self.rules = rules
        self.left = ""
        self.verdicts: list[tuple[str, tuple[Span, ...]]] = []
        self.due: list[Check] = []
        self.notes: list[int] = []
        self.trailing = ""

    # --- what edits may know

    def text(self, span: Span) -> str:
        return self.holdback.text(span)

    def edits(self, span: Span) -> Sequence[Replacement]:
        return self.holdback.replacements.within(span)

    def digest(self, text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    def fill(self, template: str, firing: Firing) -> str:
        return f"{template}{firing.rule.id}"

    def widen(self, span: Span, scope: Scope) -> Span:
        return self.holdback.widen(span, scope)

    def restored(self, text: str) -> str:
        return text

    def objectionable(self, text: str) -> bool:
        return any(word in text for word in (*WORDS, "idiot"))

    # --- what happens

    def feed(self, text: str) -> None:
        self.sentences.feed(text)
        self.due += self.holdback.feed(text)
        self.advance()

    def end(self) -> None:
        self.due += self.holdback.end()
        while not self.holdback.settled:
            before = len(self.due)
            self.answer(len(self.due))
            assert before or self.holdback.settled, "nothing is under way, so nothing may wait"
        self.advance()

    def answer(self, count: int) -> None:
        """Let the classifier answer the oldest checks."""
        for check in self.due[:count]:
            check.scores = {"l": 0.9 if "idiot" in self.text(check.window) else 0.1}
        del self.due[:count]
        self.advance()

    def advance(self) -> None:
        while (decision := self.holdback.next_decision()) is not None:
            if isinstance(decision, Cluster):
                found = [(each.signal, each.span) for each in decision.findings]
                self.notes += (span.end for signal, span in found if signal == NOTE)
                self.carry_out([self.fired(signal, span) for signal, span in found if signal in self.rules])
            else:
                self.judge(decision)
        self.insert()
        self.release()

    def judge(self, check: Check) -> None:
        assert check.scores is not None
        span = Span(min(max(check.window.start, self.holdback.cleared), check.position), check.position)
        if check.scores["l"] > 0.5 and SCORED in self.rules:
            end = self.carry_out([self.fired(SCORED, span)])
            if self.holdback.cut is None:
                self.due += self.holdback.scored_through(max(check.position, end))
        else:
            self.holdback.clear(self.holdback.reach(check, 0.0).end)

    def fired(self, signal: int, span: Span) -> Firing:
        described = Signal(kind="phrase", name=str(signal))
        return Firing(rule=self.rules[signal], signal=described, span=span, mode="enforce")

    def carry_out(self, firings: list[Firing]) -> int:
        outcome = resolve(firings, Stage.MIDSTREAM, Channel("content"), self)
        self.verdicts += ((verdict.rule_id, verdict.spans) for verdict in outcome.verdicts)
        for edit in outcome.edits:
            assert edit.start >= self.holdback.sent, "what is edited has not left"
            self.holdback.replacements.add(edit, self.holdback.sent)
        if outcome.halt is not None:
            assert outcome.halt.position >= self.holdback.sent
            self.due += self.holdback.stop(outcome.halt.position)
        return max((edit.end for edit in outcome.edits), default=0)

    def insert(self) -> None:
        if self.holdback.ended:
            self.sentences.end()
        waiting = []
        for position in self.notes:
            sentence = self.sentences.around(Span(position - 1, position))
            if sentence is None:
                waiting.append(position)
            elif self.holdback.cut is None and sentence.end >= self.holdback.received and self.holdback.ended:
                self.trailing += "(note)"
            elif self.holdback.cut is None or sentence.end <= self.holdback.cut:
                place = Replacement(sentence.end, sentence.end, "(note)")
                self.holdback.replacements.add(place, self.holdback.sent)
        self.notes = waiting
        # What may turn out to stand behind the sentence waits, so that the text can be put before it.
        self.holdback.fence = self.sentences.earliest_end if waiting else EVERYTHING

    def release(self) -> None:
        holdback = self.holdback
        end = holdback.releasable
        beyond = holdback.cut == end and holdback.received > end and holdback.settled
        to = holdback.received if beyond else end
        self.left += holdback.render(holdback.sent, to)
        holdback.release(end)
        assert holdback.render(0, to) == self.left


def read(grain: Scope, rules: dict[int, RuleMeta], pieces: list[str], answers: list[int], *, checks: bool) -> Reader:
    reader = Reader(grain, rules, checks=checks)
    for place, piece in enumerate(pieces):
        if not reader.holdback.ended:
            reader.feed(piece)
            if answers:
                reader.answer(answers[place % len(answers)])
    reader.end()
    return reader


def cut(text: str, points: list[int]) -> list[str]:
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("grain", SCOPES)
@given(
    words=st.lists(PIECES, max_size=16),
    points=st.lists(st.integers(0, 100), max_size=30),
    answers=st.lists(st.integers(0, 2), max_size=5),
    stops=st.booleans(),
)
def test_g03_edits_of_words_and_sentences_do_not_depend_on_the_cut(
    grain: Scope, words: list[str], points: list[int], answers: list[int], stops: bool, *, checks: bool
) -> None:
    text = "".join(words)
    rules = RULES if stops else {number: each for number, each in RULES.items() if number != 6}
    one = read(grain, rules, [text], [], checks=checks)
    many = read(grain, rules, cut(text, points), answers, checks=checks)
    by_character = read(grain, rules, list(text), [1], checks=checks)
    assert one.left + one.trailing == many.left + many.trailing == by_character.left + by_character.trailing
    assert sorted(one.verdicts) == sorted(many.verdicts) == sorted(by_character.verdicts)


def condemned(text: str, grain: Scope) -> set[int]:
    """Return the places that redactions take, by the letter of their scopes."""
    found = Holdback(PATTERNS, checks=False, settings=SETTINGS, grain=grain)
    findings = found.feed(text), found.end()
    assert findings == ([], [])
    places: set[int] = set()
    while (cluster := found.next_decision()) is not None:
        assert isinstance(cluster, Cluster)
        for finding in cluster.findings:
            action = ACTIONS.get(finding.signal)
            if isinstance(action, Redact):
                span = found.widen(finding.span, action.scope)
                places.update(range(span.start, span.end))
    return places


@pytest.mark.parametrize("grain", SCOPES)
@given(words=st.lists(PIECES, max_size=16), points=st.lists(st.integers(0, 100), max_size=30))
def test_g04_no_character_of_a_redacted_word_or_sentence_leaves_and_every_other_does(
    grain: Scope, words: list[str], points: list[int]
) -> None:
    text = "".join(words)
    # Every edit writes one character that no text has, so that what is left can be compared with what should be.
    rules = {
        number: rule(number, Redact(style="text", text="", scope=action.scope))
        for number, action in ACTIONS.items()
        if isinstance(action, Redact)
    }
    reader = Reader(grain, rules, checks=False)
    reader.fill = lambda template, firing: "\0"  # type: ignore[method-assign]  # noqa: ARG005
    for piece in cut(text, points):
        reader.feed(piece)
    reader.end()
    gone = condemned(text, grain)
    kept = "".join(char for place, char in enumerate(text) if place not in gone)
    assert reader.left.replace("\0", "").replace("(note)", "") == kept


@pytest.mark.parametrize("grain", ["word", "sentence"])
@given(words=st.lists(PIECES, max_size=16))
def test_text_leaves_in_whole_segments_as_soon_as_they_are_decided(grain: Scope, words: list[str]) -> None:
    reader = Reader(grain, {}, checks=False)
    segments = Segments("word" if grain == "word" else "sentence")
    for char in "".join(words):
        reader.feed(char)
        segments.feed(char)
        holdback = reader.holdback
        held = [segments.floor(min(holdback.received, holdback.matches.live, holdback.fence))]
        held += [segments.floor(each.span.start) for each in holdback.matches.found]
        assert holdback.releasable == max(min(held), holdback.sent)
        assert segments.floor(holdback.sent) == holdback.sent
