"""Many agents at one control server, and a server that is away: what was told is there, once, and nothing grows."""

from __future__ import annotations

import pytest
import uvloop

from bench import agents, outage


@pytest.mark.nightly
def test_a_hundred_agents_for_ten_minutes_lose_nothing_and_the_server_stays_as_large_as_it_was() -> None:
    found = uvloop.run(agents.run(100, 600.0))  # which holds what the server has to what was there
    assert not found.refused
    assert len(found.attested_s) >= 100 * (600 / 60 - 1)
    assert len(found.delivered_s) >= found.exchanges / 1000
    assert max(found.memory[1:]) < found.memory[0] * 1.15 + 10_000_000


@pytest.mark.nightly
def test_a_server_that_is_away_for_minutes_gets_all_that_has_waited_once() -> None:
    found = outage.run(300.0, 10.0)  # an hour of it is in bench/results/control.md
    assert found.meanwhile > 100
    assert found.attempts >= 4
    before, full = found.memory
    assert full < before + 80_000_000  # what is loaded by the first requests comes on top
