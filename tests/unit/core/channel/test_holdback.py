"""One channel's holdback in words and sentences: what waits, what is decided together, what an edit may take."""

from __future__ import annotations

import json

import pytest

from checkstream.core.channel.checks import Check, HoldSettings
from checkstream.core.channel.grain import Scope
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.json_leaves import JsonLeaves
from checkstream.core.channel.matches import Cluster
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.terms import Span

RAW = frozenset({"raw"})
BAD = PatternSet(
    [
        Pattern(signal=0, name="bad", regex="bad", views=RAW),
        Pattern(signal=1, name="joint", regex=r"d\. A", views=RAW),
    ]
)
SETTINGS = HoldSettings(tokens=2, calm_tokens=0, check_every=2, window=8)


def channel(text: str, grain: Scope = "sentence", *, checks: bool = False) -> Holdback:
    holdback = Holdback(BAD, checks=checks, settings=SETTINGS, grain=grain)
    holdback.feed(text)
    return holdback


def answered(check: Check, score: float = 0.0) -> Check:
    check.scores = {"l": score}
    return check


@pytest.mark.parametrize(("grain", "released"), [("span", 14), ("word", 10), ("sentence", 6)])
def test_text_is_released_in_whole_segments_of_the_grain(grain: Scope, released: int) -> None:
    assert channel("Done. And more", grain).releasable == released


def test_g04_a_finding_is_decided_when_all_of_its_sentence_is_known_and_none_of_it_has_left() -> None:
    holdback = channel("One. It is bad, ")
    assert holdback.next_decision() is None
    assert holdback.releasable == 5
    holdback.feed("so bad. A")
    assert holdback.next_decision() is None, "the finding over the sentence's end is still open"
    holdback.feed("h")
    assert holdback.next_decision() is None, "and joins the next one"
    holdback.feed(", bad! Next")
    cluster = holdback.next_decision()
    assert isinstance(cluster, Cluster)
    assert cluster.span == Span(5, 32)
    assert [finding.signal for finding in cluster.findings] == [0, 0, 1, 0]
    assert holdback.widen(cluster.findings[0].span, "word") == Span(11, 15)
    assert holdback.widen(cluster.findings[0].span, "sentence") == Span(5, 23)
    assert holdback.widen(cluster.findings[0].span, "span") == cluster.findings[0].span


def test_findings_of_one_word_are_decided_together_and_those_of_the_next_apart() -> None:
    holdback = channel("bad-bad bad ", "word")
    sizes = []
    while (cluster := holdback.next_decision()) is not None:
        assert isinstance(cluster, Cluster)
        sizes.append((len(cluster.findings), cluster.span))
    assert sizes == [(2, Span(0, 7)), (1, Span(8, 11))]
    apart = channel("bad-bad ", "span").next_decision()
    assert isinstance(apart, Cluster)
    assert apart.span == Span(0, 3)


def test_a_check_is_decided_behind_what_was_found_in_its_sentence_and_when_that_is_known() -> None:
    holdback = Holdback(BAD, checks=True, settings=SETTINGS, grain="sentence")
    checks = holdback.feed("One two three ")
    assert [check.position for check in checks] == [3, 7]
    for check in checks:
        answered(check)
    assert holdback.next_decision() is None
    for check in holdback.feed("is bad. Next"):
        answered(check)
    decisions = [holdback.next_decision() for _ in range(4)]
    assert isinstance(decisions[0], Cluster)
    assert [each.position for each in decisions[1:] if isinstance(each, Check)] == [3, 7, 16]


def test_a_check_over_text_that_has_been_dealt_with_is_dropped_and_a_later_one_reads_what_is_left() -> None:
    holdback = Holdback(BAD, checks=True, settings=SETTINGS, grain="sentence")
    checks = [answered(check) for check in holdback.feed("One two three. Four five six. ")]
    assert [check.position for check in checks] == [3, 7, 14, 24, 29]
    first = holdback.next_decision()
    assert first is checks[0]
    renewed = holdback.scored_through(14)
    assert [(check.position, check.window) for check in renewed] == [
        (24, Span(14, 24)),
        (29, Span(14, 29)),
    ]
    assert all(check.over for check in checks)
    assert not any(check.over for check in renewed)
    assert holdback.releasable == 14


def test_g06_a_pause_checks_no_more_than_can_be_released() -> None:
    holdback = Holdback(BAD, checks=True, settings=HoldSettings(calm_tokens=0, check_every=100), grain="sentence")
    for check in holdback.feed("One. "):
        answered(check)
    while isinstance(decision := holdback.next_decision(), Check):
        holdback.clear(holdback.reach(decision, 0.0).end)
    assert holdback.releasable == 4
    holdback.feed("Two three")
    assert [check.position for check in holdback.stall()] == [5]
    assert holdback.stall() == []


def test_a_stop_in_a_sentence_lets_its_beginning_go_and_edits_reach_no_further() -> None:
    holdback = channel("One. It is bad. No")
    cluster = holdback.next_decision()
    assert isinstance(cluster, Cluster)
    holdback.stop(11)
    assert holdback.releasable == 11
    assert holdback.settled
    assert holdback.widen(Span(6, 8), "sentence") == Span(5, 11)
    assert holdback.render(0, 18) == "One. It is "


def test_the_end_of_the_channel_ends_every_segment() -> None:
    holdback = channel("One. It is bad")
    assert holdback.next_decision() is None
    holdback.end()
    cluster = holdback.next_decision()
    assert isinstance(cluster, Cluster)
    assert cluster.span == Span(5, 14)
    assert holdback.releasable == 14


def test_g08_what_an_edit_takes_stays_inside_its_json_string() -> None:
    text = json.dumps({"to": "Ann is bad. Bye", "n": 1})
    strings = JsonLeaves()
    holdback = Holdback(BAD, checks=False, settings=SETTINGS, joints=strings, grain="sentence")
    strings.feed(text)
    holdback.feed(text)
    holdback.end()
    cluster = holdback.next_decision()
    assert isinstance(cluster, Cluster)
    assert text[cluster.span.start : cluster.span.end] == "Ann is bad."


def test_text_behind_the_fence_waits_for_a_decision_from_elsewhere() -> None:
    holdback = channel("One two three", "span")
    holdback.fence = 4
    holdback.end()
    assert holdback.releasable == 4
    assert holdback.decided
    assert not holdback.settled
    holdback.fence = 1 << 62
    assert holdback.settled


def test_what_replaces_a_span_leaves_when_all_of_the_span_may() -> None:
    holdback = Holdback(BAD, checks=True, settings=SETTINGS)
    check = answered(holdback.feed("One two three ")[1])
    holdback.replacements.add(Replacement(4, 13, "X"), 0)
    holdback.clear(holdback.reach(check, 0.0).end)
    assert holdback.cleared == 7
    assert holdback.releasable == 4


def test_an_insertion_at_the_cut_leaves_with_the_piece_that_is_cut() -> None:
    holdback = channel("One. Two three", "span")
    holdback.replacements.add(Replacement(4, 4, "+"), 0)
    assert holdback.changed(4, 5)
    holdback.stop(4)
    assert holdback.render(0, 4) == "One."
    assert holdback.render(4, 9) == "+"
    assert holdback.render(9, 14) == ""
    assert holdback.render(0, 14) == "One.+"


def test_g10_findings_that_join_into_one_cluster_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    holdback = Holdback(BAD, checks=False, settings=SETTINGS, grain="sentence")
    looked = 0
    touched = Holdback._touched

    def counting(self: Holdback, span: Span) -> Span | None:
        nonlocal looked
        looked += 1
        return touched(self, span)

    monkeypatch.setattr(Holdback, "_touched", counting)
    pieces = 300
    for _ in range(pieces):
        holdback.feed("A bad. ")
        assert holdback.next_decision() is None
    assert looked <= 5 * pieces
