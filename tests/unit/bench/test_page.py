"""The page of a bench: sound markup whatever names are, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.bench.charts import curves
from checkstream.bench.figures import Run, Sample, Spread
from checkstream.bench.page import page
from checkstream.bench.report import lines, remarks
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


def _delayed(target: str, number: int, ms: float, leaked: int) -> Run:
    run = _run("chat", target, number)
    return msgspec.structs.replace(run, delay=Spread.of([ms / 1000] * 100), leaked=(leaked,), cpu_us=2 * ms)


def test_a_page_shows_what_a_target_adds_over_all_rounds_and_what_it_buys() -> None:
    """The median of three rounds, less that of the model alone; one slow round draws nothing."""
    runs = [_delayed("direct", number, 1.0, 20) for number in (1, 2, 3)]
    runs += [_delayed("ours", number, ms, 0) for number, ms in ((1, 41.0), (2, 900.0), (3, 40.0))]
    runs += [_delayed("nginx", number, 2.0, 20) for number in (1, 2, 3)]
    counts = {"streams-10": 10, "streams-20": 20}
    runs += [
        msgspec.structs.replace(_run(name, target, 1), outcomes={**_run("", "", 1).outcomes, "whole": count})
        for name, count in counts.items()
        for target in ("direct", "ours")
    ]
    text = page(runs, {"chat": "a chat", **dict.fromkeys(counts, "many")}, ["x"])
    for chart in (
        "share of tokens by added delay", "share of answers by added first text", "memory, MB, in the last round",
        "tokens behind the beginning of harm, median over delay added to a token", "tokens a second",
        "CPU microseconds a token",
    ):  # fmt: skip
        assert f'aria-label="{chart}' in text, chart
    spots = re.findall(r'aria-label="share of tokens by added delay.*?class="line l\d" d="M([^"]+)"', text)
    ours = [float(spot.split()[0]) for spot in spots[0].split(" L")]
    assert min(ours) == max(ours), "every token took 40 ms more"
    leaks = re.search(r'aria-label="tokens behind the beginning of harm.*?</svg>', text)
    assert leaks is not None
    dots = [round((float(x) - 52) / 460 * 40) for x in re.findall(r'<circle[^>]* cx="([^"]+)"', leaks[0])]
    assert sorted(dots) == [0, 1, 40], "the model alone adds nothing, nginx 1 ms, and we 40"
    assert "chat: ours takes 20.5 times the CPU of nginx for a token" in "\n".join(remarks(lines(runs)))


def test_a_page_of_a_deployment_alone_shows_its_own_delays() -> None:
    text = page([_run("chat", "target", 1)], {"chat": "a chat"}, ["x"])
    assert 'aria-label="share of tokens by delay over milliseconds"' in text


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
