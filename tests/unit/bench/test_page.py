"""The page of a bench: sound markup whatever names are, nothing loaded from elsewhere."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.bench.charts import curves
from checkstream.bench.figures import Run, Sample, Spread
from checkstream.bench.page import page
from tests.chance import examples

_NAMES = st.text(alphabet="ab<>&\"' ", min_size=1, max_size=8)


def _run(scenario: str, target: str, number: int) -> Run:
    return Run(
        scenario=scenario,
        target=target,
        round=number,
        outcomes=dict.fromkeys(("whole", "edited", "stopped", "refused", "denied", "left", "broken"), 1),
        seconds=1.0,
        tokens_per_s=1000.0,
        first_text=Spread.of([0.001, 0.1]),
        delay=Spread.of([0.002, 0.2]),
        gap=Spread.of([]),
        late=Spread.of([0.0]),
        cpu_us=30.0,
        memory=(Sample(0.0, 10**8), Sample(1.0, 2 * 10**8)),
        leaked=(0, 3),
    )


@settings(max_examples=examples(25))
@given(_NAMES, _NAMES)
def test_names_can_not_break_out_of_the_page(scenario: str, target: str) -> None:
    text = page(
        [_run(scenario, target, 1), _run("streams-1", "b", 1), _run("streams-2", "b", 1)], {scenario: target}, ["x"]
    )
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    body = text[text.index("<h1>") : text.index("</html>")]
    ET.fromstring(f"<body>{body}</body>")


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e6)), max_size=5),
    st.booleans(),
)
def test_a_chart_holds_its_points(points: list[tuple[float, float]], stretched: bool) -> None:
    drawn = curves({"a": sorted(points)}, ["a"], x="x", y="y", stretched=stretched)
    root = ET.fromstring(drawn)
    assert "nan" not in drawn
    for path in root.iter("path"):
        if path.get("class", "").startswith("line"):
            spots = [tuple(map(float, spot.split())) for spot in path.get("d", "")[1:].split(" L")]
            assert all(52 - 1 <= x <= 52 + 460 + 1 and 12 - 1 <= y <= 12 + 220 + 1 for x, y in spots)


def test_a_spread_keeps_three_figures_and_its_ends() -> None:
    spread = Spread.of([at / 1000 for at in range(1, 1001)])
    assert spread.count == 1000
    assert abs(spread.ms["p50"] - 500) <= 1
    assert abs(spread.ms["p99"] - 990) <= 1
    assert spread.curve[-1][1] == 1.0
    assert len(spread.curve) <= 200
    assert Spread.of([]).at("p50") is None
