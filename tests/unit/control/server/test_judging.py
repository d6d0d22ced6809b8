"""When a new bundle does worse: what chance makes is let by, what a bad rule makes is not."""

from __future__ import annotations

import random
from math import log

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config.control import Health
from checkstream.control.server.judging import interval, judged, too_much
from checkstream.control.server.tally import Tally

HEALTH = Health(exchanges=50)


def tally(exchanges: int, **more: int) -> Tally:
    return msgspec.convert({"exchanges": exchanges, **more}, Tally)


@pytest.mark.parametrize("name", ["refusals", "stops", "failures"])
def test_a_bundle_that_does_it_to_everybody_is_worse(name: str) -> None:
    said = judged(HEALTH, tally(60, **{name: 60}), tally(200))
    assert said.worse == f"{name}: 60 of 60 exchanges; under the bundle before 0 of 200"
    assert judged(HEALTH, tally(200), tally(60, **{name: 60})).worse == ""  # and one that ends it is not


@pytest.mark.parametrize(("new", "old"), [(49, 500), (500, 49), (0, 0)])
def test_few_exchanges_say_nothing(new: int, old: int) -> None:
    said = judged(HEALTH, tally(new, stops=new), tally(old))
    assert (said.worse, said.enough) == ("", False)


def test_a_share_that_is_small_is_never_too_much() -> None:
    """Ten times as many, and it is not chance; but one in a hundred is what people have said they bear."""
    assert not too_much(HEALTH, 1000, 100_000, 100, 100_000)
    assert too_much(Health(at_least=0.005), 1000, 100_000, 100, 100_000)


def test_where_most_is_refused_already_all_can_still_be_too_much() -> None:
    assert too_much(HEALTH, 500, 500, 300, 500)
    assert not too_much(HEALTH, 320, 500, 300, 500)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_an_interval_holds_its_share_and_narrows(some: int, more: int) -> None:
    of = some + more
    lower, upper = interval(some, of)
    assert 0 <= lower <= upper <= 1
    if of:
        assert lower - 1e-12 <= some / of <= upper + 1e-12
        wide, narrow = interval(some, of), interval(some * 9, of * 9)
        assert narrow[1] - narrow[0] < wide[1] - wide[0]


@given(st.integers(0, 400), st.integers(1, 400), st.integers(0, 400), st.integers(1, 400))
def test_more_of_it_is_never_better(some: int, of: int, others: int, of_others: int) -> None:
    some, others = min(some, of), min(others, of_others)
    if too_much(HEALTH, some, of, others, of_others):
        assert too_much(HEALTH, min(some + 1, of), of, others, of_others)
        assert too_much(HEALTH, some, of, max(others - 1, 0), of_others)
        assert some / of > others / of_others


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_chance_takes_no_rollout_back_however_often_it_is_looked_at(share: float) -> None:
    """Two bundles that do the same, looked at behind every tenth exchange: 300 rollouts, and none is taken back."""
    chance = random.Random(4)
    taken_back = 0
    for _ in range(300):
        new = old = 0
        for n in range(10, 1001, 10):
            new += sum(chance.random() < share for _ in range(10))
            old += sum(chance.random() < share for _ in range(10))
            if judged(HEALTH, tally(n, stops=new), tally(n, stops=old)).worse:
                taken_back += 1
                break
    assert taken_back == 0


def test_what_is_four_times_as_much_is_found_soon() -> None:
    chance = random.Random(4)
    found = 0
    for _ in range(50):
        new = sum(chance.random() < 0.4 for _ in range(400))
        old = sum(chance.random() < 0.1 for _ in range(400))
        found += bool(judged(HEALTH, tally(400, stops=new), tally(400, stops=old)).worse)
    assert found >= 45


def test_slower_than_nineteen_in_twenty_were() -> None:
    old = Tally(exchanges=1000, times={"policy": (0, 950, 50, 0)})
    slow = Tally(exchanges=1000, times={"policy": (0, 500, 500, 0)})
    said = judged(HEALTH, slow, old).worse
    assert said == "time of `policy`: 50 % of 1000 take longer than nineteen in twenty did under the bundle before"
    assert judged(HEALTH, Tally(exchanges=1000, times={"policy": (0, 940, 60, 0)}), old).worse == ""
    assert judged(HEALTH, Tally(exchanges=1000, times={"policy": (1000, 0, 0)}), old).worse == ""  # other bins
    assert judged(HEALTH, Tally(exchanges=1000, times={"check": (0, 0, 0, 9)}), old).worse == ""


def test_scores_that_have_changed() -> None:
    def scores(*bins: int) -> Tally:
        counts = (*bins, *([0] * (22 - len(bins))))
        return Tally(exchanges=1000, scores={"safety.toxic ingress": counts})

    said = judged(HEALTH, scores(300, 300, 400), scores(600, 300, 100)).worse
    expected = 0.3 * log(2) + 0.3 * log(4)
    assert said == f"scores of `safety.toxic ingress` have changed: their stability index is {expected:.2f}"
    assert judged(HEALTH, scores(590, 300, 110), scores(600, 300, 100)).worse == ""
    assert judged(HEALTH, scores(0, 0, 400), scores(600, 300, 100)).worse == ""  # too few to tell
