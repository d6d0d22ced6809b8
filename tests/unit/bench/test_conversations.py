"""The default pack refuses attacks over several turns, and no calm conversation, with the models that it has."""

from __future__ import annotations

import pytest

from bench.conversations import refused_by, written
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.trial.installed import InstalledModels

LEAST_REFUSED, LEAST_BY_THE_WHOLE = 18, 4
"""Of thirty attacks; many are refused by one text, before the whole comes to anything."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(program=compile_sources(read_sources(["builtin:default"]), installed_labels()))


def test_attacks_over_several_turns_add_up_and_calm_conversations_do_not(plan: Plan) -> None:
    models = InstalledModels()
    attacks, calm = ([refused_by(plan, models, said) for said in written(kind)] for kind in ("attack", "calm"))
    assert len(attacks) == len(calm) == 30
    assert [each for each in calm if each is not None] == []
    rules = [each[1] for each in attacks if each is not None]
    assert len(rules) >= LEAST_REFUSED
    assert rules.count("INJ-005") >= LEAST_BY_THE_WHOLE
