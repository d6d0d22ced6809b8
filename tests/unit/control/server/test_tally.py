"""Counts of nodes whose runs begin anew at any time: what is summed up is what they have counted."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.attestation import Figures
from checkstream.control.server.tally import OTHER, Tally, since, summed, tally_of

COUNTS = st.integers(0, 1000)
BINS = st.lists(COUNTS, min_size=3, max_size=3).map(tuple)
STEPS = st.builds(
    Tally,
    exchanges=COUNTS,
    refusals=COUNTS,
    stops=COUNTS,
    failures=COUNTS,
    times=st.fixed_dictionaries({"policy": BINS}),
    scores=st.fixed_dictionaries({"a ingress": BINS}, optional={"b ingress": BINS}),
)


def told(run: int, total: Tally) -> Figures:
    return Figures(
        run=f"run{run}",
        exchanges=total.exchanges,
        refusals=total.refusals,
        stops=total.stops,
        failures=total.failures,
        times=total.times,
        scores=total.scores,
    )


@given(st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=4))
def test_every_count_behind_the_first_report_counts_once(runs: list[list[Tally]]) -> None:
    reports = [Figures(run="run0")]
    for number, steps in enumerate(runs):
        reports += [told(number, summed(steps[: place + 1])) for place in range(len(steps))]
    found = summed(since(before, now) for before, now in pairwise(reports))
    oracle = summed(step for steps in runs for step in steps)
    assert found.exchanges == oracle.exchanges
    assert (found.refusals, found.stops, found.failures) == (oracle.refusals, oracle.stops, oracle.failures)
    assert {k: v for k, v in found.scores.items() if any(v)} == {k: v for k, v in oracle.scores.items() if any(v)}
    assert found.times.get("policy", (0, 0, 0)) == oracle.times.get("policy", (0, 0, 0))


@given(STEPS, STEPS)
def test_what_fell_counts_as_begun_anew_and_nothing_is_ever_negative(before: Tally, now: Tally) -> None:
    found = since(told(0, before), told(0, now))
    grew = summed([before, found]) == summed([now, Tally(times={"policy": (0, 0, 0)})])
    assert found == tally_of(told(0, now)) or found.exchanges == now.exchanges - before.exchanges
    assert min(found.exchanges, found.refusals, found.stops, found.failures) >= 0
    assert all(count >= 0 for bins in (*found.times.values(), *found.scores.values()) for count in bins)
    assert grew or found.exchanges in {now.exchanges, now.exchanges - before.exchanges}


def test_what_was_before_the_first_report_does_not_count() -> None:
    assert since(None, Figures(run="a", exchanges=9, age_s=601)) == Tally()
    assert since(None, Figures(run="a", exchanges=9, age_s=600)).exchanges == 9  # it has just begun
    assert since(Figures(run="a"), None) == Tally()


@given(st.lists(STEPS, max_size=5))
def test_sums_do_not_depend_on_the_order(steps: list[Tally]) -> None:
    assert summed(steps) == summed(reversed(steps)) or len({*(n for s in steps for n in s.scores)}) > 1
    assert summed(steps).exchanges == sum(step.exchanges for step in steps)


def test_names_for_which_there_is_no_room_count_together_and_none_is_lost() -> None:
    steps = [Tally(scores={f"m{n} ingress": (1, n)}) for n in range(1500)]
    total = summed(steps)
    assert len(total.scores) == 1025
    assert total.scores[OTHER] == (1500 - 1024, sum(range(1024, 1500)))
    again = summed([total, Tally(scores={"m0 ingress": (0, 0, 5), "m1499 ingress": (1, 0)})])
    assert again.scores["m0 ingress"] == (1, 0, 5)
    assert again.scores[OTHER] == (1500 - 1024 + 1, sum(range(1024, 1500)))
