"""Scenarios: those that are shipped, when requests come, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.bench.scenario import Arrivals, cut, read_scenario, shipped
from checkstream.errors import BenchError

_SOUND = "about: x\narrivals: {count: 2, within_s: 1}\nsays: [benign.txt]\n"


def test_every_scenario_that_is_shipped_can_be_read() -> None:
    assert {"chat", "harmful", "personal", "streams-200", "tools", "whole"} <= set(shipped())
    for name in shipped():
        script = read_scenario(name)
        assert script.name == name
        assert script.text
        harm = script.scenario.harm
        assert harm is None or harm in "".join(script.text[: script.scenario.tokens])


@given(st.integers(1, 50), st.floats(0, 100), st.booleans(), st.integers(1, 4), st.floats(0, 100))
def test_requests_come_in_order_within_their_waves_and_alike_in_each_run(
    count: int, within_s: float, by_chance: bool, waves: int, every_s: float
) -> None:
    arrivals = Arrivals(count=count, within_s=within_s, random=by_chance, waves=waves, every_s=every_s)
    times = arrivals.times_s()
    assert len(times) == count * waves
    assert times == sorted(times) == arrivals.times_s()
    assert 0 <= times[0] <= times[-1] <= (waves - 1) * every_s + within_s


@given(st.text())
def test_pieces_are_the_text(text: str) -> None:
    if "\r" in text or any(0xD800 <= ord(c) < 0xE000 for c in text):
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        (Path(folder) / "t.txt").write_text(text, "utf-8", newline="")
        pieces = cut("t.txt", Path(folder))
    assert "".join(pieces) == (text.strip() + "\n\n" if text.strip() else "")
    assert all(pieces)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("about: [", "while parsing"),
        (_SOUND + "tokns: 3\n", "tokns"),
        (_SOUND.replace("count: 2", "count: 0"), "count"),
        (_SOUND.replace("count: 2", "count: 99999, waves: 99"), "too many"),
        (_SOUND.replace("within_s: 1", "within_s: .nan"), "within_s"),
        (_SOUND + "per_s: 0\n", "per_s"),
        (_SOUND + "form: song\n", "song"),
        (_SOUND.replace("[benign.txt]", "[]"), "says"),
        (_SOUND.replace("benign.txt", "nowhere.txt"), "nowhere.txt"),
        (_SOUND.replace("benign.txt", "empty.txt"), "empty"),
        (_SOUND.replace("benign.txt", "latin.txt"), "utf-8"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_reason(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(BenchError, match=reason):
        read_scenario(str(file))


def test_what_is_not_there_names_what_is() -> None:
    with pytest.raises(BenchError, match=r"shipped: .*chat"):
        read_scenario("chatt")
