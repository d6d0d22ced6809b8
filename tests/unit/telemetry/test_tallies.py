"""Histograms that one thread counts in, and another may read."""

from __future__ import annotations

import pytest

from checkstream.telemetry.tallies import Tallies, Tally


def test_what_comes_while_it_is_collected_disturbs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tallies = Tallies("waits", "What was waited.", ("route",), (0.1, 1.0))
    tallies.of("a").observe(0.5)
    tallies.of("b").observe(0.05)
    told = vars(Tally)["told"].fget

    def telling(tally: Tally) -> object:
        tallies.of(f"new{id(tally)}").observe(1.0)  # as the loop's thread may at any moment
        return told(tally)

    monkeypatch.setattr(Tally, "told", property(telling))
    (family,) = tallies.collect()
    counts = {sample.labels["route"]: sample.value for sample in family.samples if sample.name == "waits_count"}
    assert counts == {"a": 1, "b": 1}
