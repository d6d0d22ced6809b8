"""The whole proxy is killed with SIGKILL under load, again and again, over one audit directory (G26)."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.harness import Llm, Proxy, config, running, until, verify_audit
from tests.e2e.load import KINDS, POLICY, Load, put_scenarios

ROUNDS = 20
CALLERS = 12
SURE_S = 1.0
"""With `durability: group`, an answer that was whole so long before the kill is on disk: the loss window is `fsync_ms`,
20 ms here, and the rest is a busy machine's. With `strict`, every answer whose end the caller has seen."""


def test_g26_one_kill_under_load(llm: Llm, tmp_path: Path) -> None:
    kill_rounds(llm, tmp_path, 1, 0.5)


@pytest.mark.nightly
def test_g26_twenty_kills_under_load(llm: Llm, tmp_path: Path) -> None:
    kill_rounds(llm, tmp_path, ROUNDS, 4.0)


def kill_rounds(llm: Llm, folder: Path, rounds: int, longest_s: float) -> None:
    """Kill at a random moment, verify, start again over the same directory, and at last look for every record."""
    put_scenarios(llm)
    (folder / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, folder, ["policy.yaml"], deadline={"check_ms": 20_000}, fail_mode="open")
    # small segments, so that kills come amid rotations, too
    settings["audit"] |= {"fsync_ms": 20, "segment_bytes": 65_536}
    dice = random.Random("kill 1")
    sure: set[str] = set()
    answered = 0
    for turn in range(rounds):
        strict = turn % 2 == 0
        settings["audit"]["durability"] = "strict" if strict else "group"
        proxy = Proxy(settings, folder)
        with Load(proxy.url, callers=CALLERS, seed=f"kill {turn}", pace_s=0.02) as load:
            until(lambda: load.finished or load.failed, what="a whole answer after the restart", timeout_s=30)
            load.wait(dice.uniform(0, longest_s))
            load.cut_off()
            killed_s = time.monotonic()
            proxy.kill()
            load.end()
        answered += len(load.finished)
        sure |= {stream for stream, at_s in load.finished.items() if strict or at_s < killed_s - SURE_S}
        assert proxy.left() == []
        assert "Traceback" not in proxy.text
        holds(proxy)
    with running(Proxy(settings, folder)) as proxy, Load(proxy.url, callers=CALLERS, seed="last", pace_s=0.02) as load:
        until(lambda: load.done.keys() == set(KINDS) or load.failed, what="an exchange of each kind", timeout_s=30)
    holds(proxy)
    rows = proxy.records()
    streams = Counter(row["body"].get("stream") for row in rows if row["body"].get("stream") is not None)
    assert max(streams.values()) == 1, "an exchange was recorded twice"
    assert sure | set(load.finished) <= streams.keys(), (
        "an answer went out long before the kill and no record tells of it"
    )
    assert len({row["chain"] for row in rows}) == 1, "a restart did not take up the chain of the killed process"
    kinds = Counter(row["kind"] for row in rows)
    assert (kinds["start"], kinds["stop"]) == (rounds + 1, 1)
    sys.stdout.write(
        f"{rounds} kills; {answered} whole answers, {len(sure)} surely on disk, and they are; "
        f"{len(rows)} entries: {dict(kinds)}; {len(list(proxy.audit_dir.glob('*.torn')))} torn tails repaired\n"
    )


def holds(proxy: Proxy) -> None:
    """Check that the chain verifies."""
    done = verify_audit(proxy.audit_dir)
    assert done.returncode == 0, done.stdout + done.stderr
