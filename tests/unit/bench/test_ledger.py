"""Which part of the proxy a sample counts for, and what samples come to."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import FrameType

import pytest
import uvloop

from bench.ledger import FUNCTIONS, OTHER, OUTSIDE, PARTS, counted, ledger, part_of
from bench.proxy import ROOT
from tests.token_by_token import Stream, beside_a_proxy, calm

RELAY = "Exchange._go_on (checkstream/proxy/relay.py:230)"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (f"{RELAY};Exchange._flush (checkstream/proxy/relay.py:401)", "write"),
        (f"{RELAY};Guard.receive (checkstream/core/exchange/guard.py:9)", "guard: states, course"),
        (f"{RELAY};f (checkstream/core/match/words.py:7);<genexpr> (re/__init__.py:3)", "match: patterns, words"),
        (f"{RELAY};sub (/a b/lib/python3.11/site-packages/aiohttp/web_protocol.py:3)", "accept: sockets, room"),
        ("Journal._run (/x/checkstream/audit/journal.py:262);wait (threading.py:331)", "audit"),
        (RELAY, "shell: bytes to the guard, commands"),
        ("run (somewhere/else.py:1)", "other"),
        ("thread", "other"),
    ],
)
def test_a_sample_counts_for_the_innermost_part(stack: str, part: str) -> None:
    assert part_of(stack) == part


def test_what_no_sample_has_seen_is_the_systems_and_shares_make_a_whole() -> None:
    raw = [f"{RELAY} 30", f"{RELAY};Exchange._flush (checkstream/proxy/relay.py:1) 50", "", "no number"]
    samples = counted(raw)
    assert samples == {"shell: bytes to the guard, commands": 30, "write": 50}
    found = ledger(samples, cpu_s=1.0, rate=100)
    assert {line.part: round(line.share, 6) for line in found.lines} == {
        "write": 0.5, "shell: bytes to the guard, commands": 0.3, OUTSIDE: 0.2,
    }  # fmt: skip
    assert next(line.part for line in found.lines) == "write"
    assert found.lines[0].error == pytest.approx(0.05)
    assert found.samples == 80


def test_more_samples_than_time_leave_nothing_to_the_system() -> None:
    found = ledger({"write": 10}, cpu_s=0.01, rate=100)
    assert {line.part: line.share for line in found.lines} == {"write": 1.0, OUTSIDE: 0.0}
    assert sum(line.share for line in ledger({}, cpu_s=0.0).lines) == 0.0


@pytest.mark.parametrize("place", [place for place, _ in PARTS])
def test_each_part_is_of_code_that_is_there(place: str) -> None:
    if place.startswith("checkstream/"):
        assert list(ROOT.glob(f"{place}*")), "nothing has this name any more: its samples count elsewhere"
    else:
        assert importlib.util.find_spec(place.rstrip("/")) is not None


@pytest.mark.parametrize(("place", "function"), list(FUNCTIONS))
def test_each_function_that_is_a_part_is_there(place: str, function: str) -> None:
    found: object = importlib.import_module(place.removesuffix(".py").replace("/", "."))
    for name in function.split("."):
        found = getattr(found, name)


def test_all_that_runs_for_a_token_is_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default policies, classifiers and all; so a file that is moved, or new, is missed here."""
    monkeypatch.chdir(tmp_path)
    loop, ran = uvloop.new_event_loop(), set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code.co_filename)

    def drive(stream: Stream, url: str) -> None:
        stream.begin(url)
        loop.call_soon_threadsafe(sys.setprofile, note)
        stream.say(calm(100), held=100)
        stream.finish()
        loop.call_soon_threadsafe(sys.setprofile, None)

    beside_a_proxy("builtin:default", drive, lambda: loop)
    ours = {file for file in ran if Path(file).is_relative_to(ROOT / "checkstream")}
    parts = {file: part_of(f"f ({file}:1)") for file in ours}
    assert {"classifiers: score", "match: patterns, words", "audit"} <= set(parts.values())
    assert [file for file, part in parts.items() if part == OTHER] == []
