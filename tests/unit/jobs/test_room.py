from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.jobs.room import Arrival, Full, Load, choose, freed, sampled

FULL: st.SearchStrategy[Full] = st.sampled_from(["drop_new", "drop_oldest", "sample"])
CAPACITY = st.builds(Load, st.integers(1, 20), st.integers(1, 200))
ARRIVALS = st.lists(st.builds(Arrival, st.text(max_size=3), st.integers(0, 50)), max_size=30)


@given(FULL, CAPACITY, st.lists(st.integers(0, 50), max_size=20), ARRIVALS)
def test_what_stays_fits_if_it_did_before(
    full: Full, capacity: Load, there: list[int], arrivals: list[Arrival]
) -> None:
    load = Load(len(there), sum(there))
    choice = choose(full, capacity, load, arrivals)
    assert len(choice.taken) == len(arrivals)
    gone = freed(choice.excess, there)
    left = there[gone:]
    came = [arrival.bytes for arrival, taken in zip(arrivals, choice.taken, strict=True) if taken]
    if load.fits(capacity) or full == "drop_oldest":
        assert Load(len(left) + len(came), sum(left) + sum(came)).fits(capacity)
    if full != "drop_oldest":
        assert gone == 0


@given(CAPACITY, ARRIVALS)
def test_with_room_for_all_everything_is_taken(capacity: Load, arrivals: list[Arrival]) -> None:
    double = Load(2 * len(arrivals) + 1, 2 * sum(arrival.bytes for arrival in arrivals) + 1)
    for full in ("drop_new", "drop_oldest", "sample"):
        assert all(choose(full, capacity + double, Load(0, 0), arrivals).taken)


@given(CAPACITY, ARRIVALS)
def test_the_newest_that_fit_are_kept(capacity: Load, arrivals: list[Arrival]) -> None:
    arrivals = [Arrival(arrival.stream, min(arrival.bytes, capacity.bytes)) for arrival in arrivals]
    taken = choose("drop_oldest", capacity, Load(0, 0), arrivals).taken
    assert list(taken) == sorted(taken), "one that is older than a dropped one was kept"
    assert not arrivals or taken[-1]


def test_an_arrival_too_large_by_itself_displaces_nothing() -> None:
    choice = choose("drop_oldest", Load(5, 100), Load(5, 50), [Arrival("a", 101)])
    assert choice.taken == (False,)
    assert choice.excess == Load(0, 0)


def test_old_jobs_go_only_as_far_as_new_ones_need_the_room() -> None:
    choice = choose("drop_oldest", Load(5, 100), Load(4, 90), [Arrival("a", 20), Arrival("b", 5)])
    assert choice.taken == (True, True)
    assert choice.excess == Load(1, 15)
    assert freed(choice.excess, [10, 10, 10]) == 2


def test_the_choice_for_a_stream_is_the_same_for_all_its_jobs() -> None:
    arrivals = [Arrival(f"s{n}", 1) for n in range(100)]
    taken = choose("sample", Load(100, 1000), Load(70, 0), arrivals).taken
    again = choose("sample", Load(100, 1000), Load(70, 0), arrivals).taken
    assert taken == again
    assert 0 < sum(taken) <= 30


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_the_smaller(stream: str, one: float, two: float) -> None:
    if sampled(stream, min(one, two), "score"):
        assert sampled(stream, max(one, two), "score")


def test_a_share_is_the_share_and_samples_for_two_purposes_are_independent() -> None:
    streams = [f"{n:024x}" for n in range(4000)]
    scored = {stream for stream in streams if sampled(stream, 0.3, "score")}
    room = {stream for stream in streams if sampled(stream, 0.5, "room")}
    assert abs(len(scored) - 1200) < 120
    assert abs(len(scored & room) - 600) < 90
    assert not any(sampled(stream, 0.0, "score") for stream in streams)
    assert all(sampled(stream, 1.0, "score") for stream in streams)
