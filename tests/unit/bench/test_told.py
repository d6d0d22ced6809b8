"""What became of an answer, and when each of its pieces came, against what is plain to see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.bench.figures import sum_up
from checkstream.bench.report import lines, table
from checkstream.bench.scenario import Arrivals, Scenario, Script
from checkstream.bench.told import Told, tell

_PIECES = st.lists(st.text(alphabet="ab ", min_size=1, max_size=4), min_size=1, max_size=12)


def _scenario(**settings: object) -> Scenario:
    known: dict[str, object] = {"about": "x", "arrivals": Arrivals(count=1, within_s=0), "says": ("benign.txt",)}
    return Scenario(**{**known, **settings})  # type: ignore[arg-type]


def _whole(told: Told) -> Told:
    told.status, told.finish, told.ended = 200, "stop", True
    return told


@given(_PIECES, st.data())
def test_a_piece_has_come_when_its_last_character_has_however_it_is_cut(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    told = Told(text=pieces, wrote_s=[float(at) for at in range(len(pieces))])
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text)), max_size=6)) | {len(text)})
    at = 0
    for number, cut in enumerate(cuts):
        told.hear(text[at:cut], 100.0 + number)
        at = cut
    expected, end = [], 0
    for number, piece in enumerate(pieces):
        end += len(piece)
        expected.append(next(100.0 + place for place, cut in enumerate(cuts) if cut >= end) - number)
    assert list(told.delays_s()) == expected
    assert _whole(told).outcome() == "whole"


@given(_PIECES, st.integers(0, 40), st.text(alphabet="ab ", min_size=1, max_size=3))
def test_behind_an_edit_no_delay_is_told(pieces: list[str], place: int, other: str) -> None:
    text = "".join(pieces)
    kept = text[: place % len(text)]
    told = Told(text=pieces, wrote_s=[0.0] * len(pieces))
    said = f"{kept}X{other}"
    told.hear(said, 1.0)
    ends = [sum(map(len, pieces[: at + 1])) for at in range(len(pieces))]
    assert len(list(told.delays_s())) == sum(end <= len(kept) for end in ends)
    assert _whole(told).outcome() == "edited"


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"left": True}, "left"),
        ({"status": 429}, "refused"),
        ({"status": 403}, "denied"),
        ({"status": 502}, "broken"),
        ({"status": 200, "finish": "content_filter"}, "stopped"),
        ({"status": 200, "finish": "stop", "ended": False}, "broken"),
        ({"status": 200, "finish": None, "ended": True}, "broken"),
        ({"status": 200, "finish": "stop", "ended": True, "failed": True}, "broken"),
        ({"status": 0}, "broken"),
    ],
)
def test_outcomes(changes: dict[str, object], outcome: str) -> None:
    assert Told(text=["a"], pieces=["a"], **changes).outcome() == outcome  # type: ignore[arg-type]


def test_what_came_behind_the_beginning_of_harm_has_leaked() -> None:
    told = Told(text=["all ", "is ", "well, ", "you ", "fool, ", "go"])
    told.hear("all is well, you fo", 1.0)
    assert told.leaked("you") == 1
    told.hear("ol, ", 2.0)
    assert told.leaked("you") == 2
    assert told.leaked("never said") == 0
    stopped = Told(text=told.text)
    stopped.hear("all is well, [stopped]", 1.0)
    assert stopped.leaked("you") == 0


def test_each_answer_begins_elsewhere_but_not_where_harm_is() -> None:
    script = Script(name="s", scenario=_scenario(tokens=3), text=[str(at) for at in range(100)])
    assert tell(script, 0).text != tell(script, 1).text
    harmful = Script(name="s", scenario=_scenario(tokens=3, harm="1"), text=script.text)
    assert tell(harmful, 0).text == tell(harmful, 1).text == ["0", "1", "2"]


@given(st.floats(0, 1))
def test_as_many_callers_leave_as_the_scenario_says(share: float) -> None:
    script = Script(name="s", scenario=_scenario(leaving=share), text=["a"])
    leaving = sum(tell(script, number).leaves_behind is not None for number in range(200))
    assert abs(leaving - 200 * share) <= 1.5


def test_a_line_is_the_median_of_its_rounds_and_says_when_the_load_was_late() -> None:
    def run(number: int, delay_s: float, late_s: float) -> object:
        told = Told(text=["a "], wrote_s=[1.0], asked_s=0.5)
        told.hear("a ", 1.0 + delay_s)
        return sum_up(
            ("chat", "proxy", number),
            _scenario(),
            [_whole(told)],
            seconds=2.0,
            late_s=[late_s],
            cpu_s=0.5,
            memory=(),
            own_model=True,
        )

    runs = [run(1, 0.010, 0.0), run(2, 0.030, 0.0), run(3, 0.020, 0.0)]
    (line,) = lines(runs)  # type: ignore[arg-type]
    assert line.delay_p50_ms == pytest.approx(20, rel=0.01)
    assert line.outcomes["whole"] == 3
    assert line.cpu_us == pytest.approx(500_000)
    assert not line.late
    (late,) = lines([*runs, run(4, 0.02, 0.05)])  # type: ignore[list-item]
    assert late.late
    assert "proxy*" in table([*runs, run(4, 0.02, 0.05)])  # type: ignore[list-item]
