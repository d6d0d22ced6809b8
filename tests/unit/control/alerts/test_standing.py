from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.alerts.conditions import Finding, Severity
from checkstream.control.alerts.standing import Notice, Pace, Silence, Trouble, advance

PACE = Pace(after_s=60, calm_s=120, again_s=600)


def finding(name: str = "a", severity: Severity = "ticket") -> Finding:
    return Finding(kind="node_stale", severity=severity, subject=name, says=f"nothing was heard of {name}")


def told(looks: list[tuple[float, list[Finding]]], silences: tuple[Silence, ...] = ()) -> list[Notice]:
    standing: dict[str, Trouble] = {}
    notices: list[Notice] = []
    for now_s, found in looks:
        standing, new = advance(standing, found, now_s, PACE, silences)
        notices += new
    return notices


def test_a_trouble_is_told_when_it_lasts_again_when_it_goes_on_and_once_when_it_is_over() -> None:
    looks = [(float(now), [finding()]) for now in range(0, 720, 30)]
    looks += [(float(now), []) for now in range(720, 1200, 30)]
    said = told(looks)
    assert [(notice.event, notice.at_s) for notice in said] == [("fired", 60), ("reminded", 660), ("recovered", 810)]
    assert {notice.since_s for notice in said} == {0}


def test_what_pages_is_told_at_once() -> None:
    assert [notice.event for notice in told([(0.0, [finding(severity="page")])])] == ["fired"]


def test_what_is_over_before_it_is_told_is_told_to_nobody() -> None:
    assert told([(0.0, [finding()]), (30.0, []), (300.0, []), (600.0, [])]) == []


def test_what_flutters_is_one_trouble() -> None:
    said = told([(float(now), [finding()] if now % 60 == 0 else []) for now in range(0, 600, 30)])
    assert [notice.event for notice in said] == ["fired"]


def test_a_silence_mutes_what_begins_and_ends_with_its_time() -> None:
    silence = Silence(pattern="node_stale:*", until_s=300, by="ann", reason="move")
    looks = [(float(now), [finding(severity="page")]) for now in range(0, 400, 30)]
    assert [(notice.event, notice.at_s) for notice in told(looks, (silence,))] == [("fired", 300)]
    other = Silence(pattern="chain_*", until_s=300, by="ann", reason="move")
    assert [(notice.event, notice.at_s) for notice in told(looks, (other,))] == [("fired", 0)]


def test_that_a_told_trouble_is_over_is_told_in_a_silence_too() -> None:
    looks: list[tuple[float, list[Finding]]] = [(0.0, [finding(severity="page")]), (200.0, [])]
    silence = Silence(pattern="*", until_s=1e9, by="ann", reason="move")
    standing, (fired,) = advance({}, looks[0][1], 0.0, PACE)
    _, (over,) = advance(standing, [], 200.0, PACE, (silence,))
    assert (fired.event, over.event) == ("fired", "recovered")


def test_a_notice_that_is_made_again_has_the_same_id_and_no_other_has_it() -> None:
    looks = [(float(now), [finding(), finding("b")]) for now in range(0, 720, 30)]
    ids = [notice.id for notice in told(looks)]
    assert len(set(ids)) == len(ids) == 4
    assert ids == [notice.id for notice in told(looks)]


seen = st.lists(st.tuples(st.integers(1, 200), st.sets(st.sampled_from("abc"))), max_size=40)


@given(seen, st.sampled_from(["page", "ticket"]), st.integers(0, 2000))
def test_each_trouble_is_told_once_before_it_is_reminded_of_and_over_once_after(
    steps: list[tuple[int, set[str]]], severity: Severity, until_s: int
) -> None:
    now_s, looks = 0.0, []
    for step, names in steps:
        now_s += step
        looks.append((now_s, [finding(name, severity) for name in names]))
    looks += [(now_s + 121, []), (now_s + 400, [])]
    silences = (Silence(pattern="*:a", until_s=until_s, by="ann", reason="move"),)
    by_trouble: dict[tuple[str, float], list[str]] = defaultdict(list)
    for notice in told(looks, silences):
        by_trouble[notice.finding.key, notice.since_s].append(notice.event)
        if notice.finding.subject == "a" and notice.event != "recovered":
            assert notice.at_s >= until_s
    for events in by_trouble.values():  # all is over at the end
        assert events[0] == "fired"
        assert events[-1] == "recovered"
        assert set(events[1:-1]) <= {"reminded"}


@given(seen)
def test_the_order_of_findings_changes_nothing(steps: list[tuple[int, set[str]]]) -> None:
    now_s, forward, backward = 0.0, [], []
    for step, names in steps:
        now_s += step
        forward.append((now_s, [finding(name) for name in sorted(names)]))
        backward.append((now_s, [finding(name) for name in sorted(names, reverse=True)]))
    assert told(forward) == told(backward)


def test_a_clock_that_is_set_back_ends_nothing_early() -> None:
    standing, _ = advance({}, [finding(severity="page")], 10_000.0, PACE)
    standing, notices = advance(standing, [], 5_000.0, PACE)
    assert notices == ()
    assert "node_stale:a" in standing
