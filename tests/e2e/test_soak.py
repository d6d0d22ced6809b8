"""Memory is flat in a soak (G22): exchanges of every kind, many at once, for minutes; seconds of it in each run."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.e2e.harness import Llm, Open, Proxy, http, until, verify_audit
from tests.e2e.load import KINDS, POLICY, Load, put_scenarios

CALLERS = 24
PATIENT = {"ingress_ms": 20_000, "check_ms": 20_000}
"""With `fail_mode: open`: a busy machine must not make another load of it, with answers that are withheld."""
WARM_S, SOAK_S = 45.0, 120.0
GROWTH_BYTES = 2 * 1024 * 1024
"""The most that resident memory may grow between the first and the last quarter of a soak, by their medians.

An exchange carries some 10 KB of text that no other has, and between the two quarters thousands end: of 3000, one in
fifteen that stayed would show, and so would 0.7 KB kept of each. What else moves the figure is the allocator, by
pages: some 0.1 MB once it has warmed up.
"""
LOOKS = 8
"""The fewest that the quarters are told from."""
STEADY_BYTES = 200 * 1024 * 1024
"""What a process that serves so many may have altogether: 140 MB, and 64 KB a stream, with room."""


class Sample(msgspec.Struct, frozen=True):
    """The process at one moment, seen from outside."""

    at_s: float
    rss: int
    descriptors: int
    streams: float
    held: float


def sample(proxy: Proxy) -> Sample:
    """Look at it."""
    process = Path(f"/proc/{proxy.popen.pid}")
    pages = int((process / "statm").read_text().split()[1])
    metrics = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    return Sample(
        at_s=time.monotonic(),
        rss=pages * 4096,
        descriptors=len(list((process / "fd").iterdir())),
        streams=float(values["checkstream_streams"]),
        held=float(values["checkstream_held_bytes"]),
    )


def soak(llm: Llm, start: Callable[..., Proxy], *, warm_s: float, soak_s: float) -> list[Sample]:
    """Run the load, check that all it used has been given back, and return what was measured after the warm-up."""
    put_scenarios(llm)
    proxy = start(POLICY, deadline=PATIENT, fail_mode="open")
    before, first = Open.of(proxy, llm), sample(proxy)
    samples: list[Sample] = []
    with Load(proxy.url, callers=CALLERS, seed="soak 1", pace_s=0.05) as load:
        load.wait(warm_s)
        warmed = load.total
        end = time.monotonic() + soak_s
        while time.monotonic() < end or len(samples) < LOOKS:  # a look waits for a busy proxy
            load.wait(0.5)
            samples.append(sample(proxy))
        soaked = load.total - warmed
    assert load.done.keys() == set(KINDS), load.done
    assert load.withheld > 0
    assert max(one.streams for one in samples) > CALLERS / 4, "the load was none"
    assert max(one.streams for one in samples) <= CALLERS + 8  # a few whose caller has just left
    sys.stdout.write(
        f"{warmed} exchanges, then {soaked} in {soak_s:.0f} s; RSS MB at the start {first.rss / 1e6:.1f}, "
        f"each quarter {[round(quarter / 1e6, 2) for quarter in quarters(samples)]}, "
        f"peak {max(one.rss for one in samples) / 1e6:.1f}; "
        f"descriptors at the start {first.descriptors}, peak {max(one.descriptors for one in samples)}; "
        f"streams at most {max(one.streams for one in samples):.0f}, "
        f"held bytes at most {max(one.held for one in samples):.0f}; {dict(load.done)}, {load.withheld} withheld\n"
    )
    until(lambda: Open.of(proxy, llm) <= before, what="the end of what is open")
    until(lambda: (sample(proxy).streams, sample(proxy).held) == (0, 0), what="gauges of 0")
    assert proxy.popen.poll() is None
    assert "Traceback" not in proxy.text
    recorded = {row["body"].get("stream") for row in proxy.records()}
    assert set(load.finished) <= recorded, "an answer went out and no record tells of it"
    done = verify_audit(proxy.audit_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(one.rss for one in samples) < STEADY_BYTES
    return samples


def quarters(samples: list[Sample]) -> list[float]:
    """Return the median of the resident bytes in each quarter."""
    size = len(samples) // 4
    return [statistics.median(one.rss for one in samples[turn * size : (turn + 1) * size]) for turn in range(4)]


def test_g22_load_of_every_kind_gives_back_all_that_it_took(llm: Llm, start: Callable[..., Proxy]) -> None:
    soak(llm, start, warm_s=1, soak_s=2)


@pytest.mark.nightly
def test_g22_memory_is_flat_in_a_soak(llm: Llm, start: Callable[..., Proxy]) -> None:
    first, *_, last = quarters(soak(llm, start, warm_s=WARM_S, soak_s=SOAK_S))
    assert last - first < GROWTH_BYTES, f"grew by {last - first:.0f} bytes"
