"""How a rollout moves: rings in their order, no sooner than they were watched, and back for good."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config.control import Health, Ring
from checkstream.control.attestation import Desired
from checkstream.control.server.judging import Judged
from checkstream.control.server.rollout import Rollout, Seen, approved, promoted, ring_of, rolled_back, ticked, wanted

OLD, NEW = "1" * 64, "2" * 64
NODES = tuple(f"node{number}" for number in range(40))
RINGS = (
    Ring(name="canary", nodes=("node7",), percent=10, soak_s=20),
    Ring(name="half", percent=50, soak_s=30),
    Ring(name="all", percent=100, soak_s=10),
)
HEALTH = Health(reach_s=60)
BY_CALLERS = (
    Ring(name="tenth", callers=10, soak_s=20),
    Ring(name="half", callers=50, soak_s=30),
    Ring(name="all", percent=100, soak_s=10),
)
FINE, WORSE, FEW = Judged(enough=True), Judged(worse="stops", enough=True), Judged(enough=False)


def proposed(**more: Any) -> Rollout:
    given = {"before": OLD, "before_version": "1", **more}
    return Rollout(fleet="shop", digest=NEW, version="2", asked_by="eve", **given)


def begun(**more: Any) -> Rollout:
    return approved(proposed(**more), "rob", 0, NODES, RINGS)


def seen(now_s: float, *, missing: dict[str, str] | None = None, present: int = 5, judged: Judged = FINE) -> Seen:
    return Seen(now_ms=int(now_s * 1000), missing=missing or {}, present=present, judged=judged)


def watched(rollout: Rollout, seconds: int, **more: Any) -> Rollout:
    """Look each second."""
    start = rollout.ticked_ms // 1000
    for second in range(start + 1, start + seconds + 1):
        rollout = ticked(rollout, seen(second, **more), NODES, RINGS, HEALTH)
    return rollout


def reached(rollout: Rollout) -> set[str]:
    return {node for node in NODES if wanted(rollout, node, RINGS).bundle == NEW}


def test_rings_hold_about_as_many_as_they_say_and_only_grow() -> None:
    places = [ring_of(f"n{number}", RINGS) for number in range(2000)]
    assert 0.07 < places.count(0) / 2000 < 0.13
    assert 0.36 < places.count(1) / 2000 < 0.44
    assert ring_of("node7", RINGS) == 0
    wider = (Ring(name="canary", percent=20), *RINGS[1:])
    assert all(ring_of(node, wider) <= ring_of(node, RINGS) for node in NODES if node != "node7")
    assert {ring_of(node, (Ring(name="all", percent=100),)) for node in NODES} == {0}


def test_a_rollout_goes_ring_by_ring_as_each_was_watched() -> None:
    assert reached(proposed()) == set()
    rollout = begun()
    canary = {node for node in NODES if ring_of(node, RINGS) == 0}
    assert reached(rollout) == canary
    assert "node7" in canary
    assert reached(watched(rollout, 19)) == canary
    rollout = watched(rollout, 20)
    assert rollout.ring == 1
    assert reached(rollout) == {node for node in NODES if ring_of(node, RINGS) <= 1}
    rollout = watched(rollout, 30)
    assert (rollout.ring, reached(rollout)) == (2, set(NODES))
    assert watched(rollout, 9).stage == "running"
    assert watched(rollout, 10).stage == "done"
    assert watched(watched(rollout, 10), 100, judged=WORSE).stage == "done"  # what is done is not looked at


def test_one_that_does_worse_is_taken_back_at_once_and_stays_so() -> None:
    rollout = watched(watched(begun(), 25), 1, judged=WORSE)
    assert (rollout.stage, rollout.why, reached(rollout)) == ("rolled_back", "stops", set())
    assert wanted(rollout, "node7", RINGS) == Desired(bundle=OLD, version="1")
    assert watched(rollout, 100) == rollout


def test_nodes_that_do_not_have_it_are_waited_for_and_then_it_is_taken_back() -> None:
    lacking: dict[str, Any] = {"missing": {"node7": "its case `stops` fails"}}
    rollout = watched(begun(), 60, **lacking)
    assert (rollout.stage, rollout.soaked_ms) == ("running", 0)
    assert rollout.why == "1 of 5 nodes have it not in force yet, `node7` among them: its case `stops` fails"
    assert watched(rollout, 20).ring == 1  # it has come after all
    back = watched(rollout, 1, **lacking)
    assert (back.stage, back.why.startswith("after 60 s 1 of 5 nodes")) == ("rolled_back", True)


def test_a_node_that_is_away_for_a_while_costs_its_ring_that_time_alone() -> None:
    rollout = watched(watched(watched(begun(), 15), 5, missing={"node7": ""}), 4)
    assert (rollout.ring, rollout.soaked_ms) == (0, 19_000)
    assert watched(rollout, 1).ring == 1


def test_where_nobody_is_there_it_waits() -> None:
    rollout = watched(begun(), 500, present=0)
    assert (rollout.stage, rollout.ring, rollout.why) == ("running", 0, "no node of this ring has been heard of lately")


def test_too_few_exchanges_wait_for_a_person_unless_told_otherwise() -> None:
    rollout = watched(begun(), 100, judged=FEW)
    assert (rollout.ring, rollout.why.startswith("fewer than 100 exchanges, under this bundle or")) == (0, True)
    assert promoted(rollout, NODES, RINGS).ring == 1
    quiet = msgspec.structs.replace(HEALTH, quiet="advance")
    assert ticked(rollout, seen(101, judged=FEW), NODES, RINGS, quiet).ring == 1
    first = watched(begun(before=""), 20, judged=FEW)  # there is none that it could be held against
    assert first.ring == 1


def test_hours_in_which_nobody_watched_are_no_soak_and_a_clock_that_jumps_is_no_hour() -> None:
    rollout = watched(begun(), 5)
    for now_s in (7200, 100, 99):
        rollout = ticked(rollout, seen(now_s), NODES, RINGS, HEALTH)
    assert rollout.ring == 0
    assert rollout.soaked_ms == 5_000 + 10_000


def test_rings_without_nodes_are_passed_over() -> None:
    few = ("node7", "x")
    rollout = approved(proposed(), "rob", 0, few, RINGS)
    rings = {ring_of(node, RINGS) for node in few}
    path = [rollout.ring]
    while rollout.stage == "running":
        rollout = promoted(rollout, few, RINGS)
        path.append(rollout.ring)
    assert path[:-1] == sorted(rings)
    assert approved(proposed(), "rob", 0, (), RINGS).stage == "done"  # a fleet without nodes


@given(
    st.lists(
        st.tuples(st.floats(-5, 30), st.booleans(), st.integers(0, 3), st.sampled_from([FINE, FINE, FINE, FEW, WORSE])),
        max_size=60,
    )
)
def test_whatever_happens_rings_come_in_order_and_none_unwatched(steps: list[Any]) -> None:
    rollout, now = begun(), 0.0
    before: set[str] = reached(rollout)
    for elapsed, is_missing, present, said in steps:
        now += elapsed
        lacking = {"node7": ""} if is_missing else {}
        after = ticked(rollout, seen(now, missing=lacking, present=present, judged=said), NODES, RINGS, HEALTH)
        if after.stage == "rolled_back":
            assert reached(after) == set()
            assert said is WORSE or is_missing
            return
        assert before <= reached(after)
        assert after.ring - rollout.ring in {0, 1}
        if after.ring != rollout.ring or after.stage != rollout.stage:
            assert rollout.soaked_ms + min(max(elapsed, 0), 10) * 1000 >= RINGS[rollout.ring].soak_s * 1000 - 1
            assert not lacking
            assert present
            assert said is FINE
        rollout, before = after, reached(after)


def test_a_rollout_is_read_back_as_it_was_kept() -> None:
    rollout = rolled_back(watched(begun(), 25), "said so")
    assert msgspec.json.decode(msgspec.json.encode(rollout), type=Rollout) == rollout


@pytest.mark.parametrize("stage", ["proposed", "done", "rolled_back"])
def test_what_does_not_run_is_not_moved_by_looks(stage: str) -> None:
    rollout = msgspec.structs.replace(begun(), stage=stage)
    assert ticked(rollout, seen(9999, judged=WORSE), NODES, RINGS, HEALTH) == rollout


def test_rings_that_are_written_anew_in_the_midst_of_it_end_it_no_sooner() -> None:
    rollout = msgspec.structs.replace(begun(), ring=2)
    fewer = (Ring(name="all", percent=100, soak_s=5),)
    for second in range(1, 5):
        rollout = ticked(rollout, seen(second), NODES, fewer, HEALTH)
    assert (rollout.stage, rollout.ring) == ("running", 0)
    assert ticked(rollout, seen(5), NODES, fewer, HEALTH).stage == "done"


def share(rollout: Rollout) -> int:
    """Return for how many percent of callers every node is to have the new bundle."""
    (told,) = {wanted(rollout, node, BY_CALLERS) for node in NODES}
    return 100 if told.bundle == NEW else 0 if told.candidate is None else told.candidate.share


MOVES = st.lists(
    st.one_of(
        st.just("approve"),
        st.just("promote"),
        st.just("roll back"),
        st.tuples(st.integers(0, 40), st.booleans(), st.sampled_from([FINE, FINE, FEW, WORSE])),
    ),
    max_size=40,
)


@given(MOVES, st.booleans())
def test_whatever_happens_shares_of_callers_only_grow_and_none_is_without_a_base(
    steps: list[Any], has_before: bool
) -> None:
    rollout, now, before = proposed(salt="ab", **({} if has_before else {"before": "", "before_version": ""})), 0, 0
    for step in steps:
        if step == "approve" and rollout.stage == "proposed":
            rollout = approved(rollout, "rob", now * 1000, NODES, BY_CALLERS)
        elif step == "promote" and rollout.stage == "running":
            rollout = promoted(rollout, NODES, BY_CALLERS)
        elif step == "roll back" and rollout.stage != "rolled_back":
            rollout = rolled_back(rollout, "said so")
        elif isinstance(step, tuple):
            now += step[0]
            look = seen(now, missing={"node7": ""} if step[1] else {}, judged=step[2])
            rollout = ticked(rollout, look, NODES, BY_CALLERS, HEALTH)
        told = [wanted(rollout, node, BY_CALLERS) for node in NODES]
        assert len(set(told)) == 1  # every node has the same, whoever asks it
        for each in told:
            assert each.candidate is None or (each.bundle, each.candidate.bundle, each.candidate.salt) == (
                OLD,
                NEW,
                "ab",
            )
        if rollout.stage == "rolled_back":
            assert (share(rollout), told[0].bundle) == (0, OLD if has_before else "")
            return
        assert share(rollout) >= before
        assert has_before or share(rollout) in {0, 100}  # a first bundle has none that others could be answered by
        before = share(rollout)


def test_a_rollout_by_callers_goes_from_share_to_share_as_each_was_watched() -> None:
    rollout, shares = approved(proposed(), "rob", 0, NODES, BY_CALLERS), []
    for second in range(1, 61):
        shares.append(share(rollout))
        rollout = ticked(rollout, seen(second), NODES, BY_CALLERS, HEALTH)
    assert shares == [10] * 20 + [50] * 30 + [100] * 10
    assert (rollout.stage, share(rollout)) == ("done", 100)


def test_rings_that_change_from_callers_to_nodes_in_the_midst_leave_no_candidate() -> None:
    rollout = approved(proposed(), "rob", 0, NODES, BY_CALLERS)
    assert all(wanted(rollout, node, RINGS).candidate is None for node in NODES)
    later = promoted(promoted(rollout, NODES, BY_CALLERS), NODES, BY_CALLERS)
    fewer = (BY_CALLERS[0], BY_CALLERS[2])
    assert {wanted(later, node, fewer).bundle for node in NODES} == {NEW}
