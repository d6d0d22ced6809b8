"""Which part of the proxy a sample counts for, and what samples come to."""

from __future__ import annotations

import pytest

from bench.ledger import OUTSIDE, counted, ledger, part_of

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
