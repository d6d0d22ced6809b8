"""The packs that come with the package: they compile, and the cases beside them come out as they say, however cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.cli.sources import installed_labels
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.trial.cases import Case, read_cases
from checkstream.trial.run import run_case

POLICIES = Path(__file__).parents[2] / "policies"
PACKS = sorted(path.parent for path in POLICIES.glob("*/policy.yaml"))
LABELS = installed_labels()
NAMES = [label.name for label in LABELS]


def compiled(pack: Path) -> Program:
    return compile_sources([(f"builtin:{pack.name}", (pack / "policy.yaml").read_bytes())], LABELS)


def cases(pack: Path) -> tuple[Case, ...]:
    path = pack / "tests.yaml"
    rules = {rule.id for rule in PROGRAMS[pack.name].rules}
    return tuple(case.value for case in read_cases(str(path), path.read_bytes(), rules, NAMES))


PROGRAMS = {pack.name: compiled(pack) for pack in PACKS}
CASES = [(pack.name, case) for pack in PACKS for case in cases(pack)]


@pytest.mark.parametrize(("pack", "case"), CASES, ids=[f"{pack}: {case.name}" for pack, case in CASES])
def test_case(pack: str, case: Case) -> None:
    result = run_case(case, PROGRAMS[pack], NAMES)
    assert result.passed, (result.mismatches, result.verdicts)


def test_every_rule_of_a_pack_has_a_case() -> None:
    for pack, program in PROGRAMS.items():
        spoken = {rule for name, case in CASES if name == pack for rule in case.rules}
        assert {rule.id for rule in program.rules if rule.mode != "disabled"} <= spoken


def test_every_pack_has_cases_in_which_nothing_fires() -> None:
    for pack in PROGRAMS:
        assert any(name == pack and case.expect.action == "allow" and not case.rules for name, case in CASES)


def test_rules_say_where_they_come_from() -> None:
    for program in PROGRAMS.values():
        assert all(rule.severity for rule in program.rules)
        assert all(rule.regulation and rule.citation for rule in program.rules if rule.holds)


EDITS = frozenset({"redact", "rewrite_span", "stop", "pseudonymise"})
"""What changes text of an answer or ends it, wherever that stands."""


def test_g34_what_a_pack_edits_in_an_answers_text_it_edits_in_fields_that_nobody_knows() -> None:
    """`safe_mode` and disclaimers work on `content` alone; rules for tool calls read nothing else."""
    left = {
        rule.id
        for program in PROGRAMS.values()
        for rule in program.rules
        if "midstream" in rule.stages and {"content", "extra"} & rule.channels == {"content"}
        if any(action.name in EDITS for action in rule.actions)
    }
    assert left == set()


def test_g34_an_exception_reaches_as_far_as_the_rules_that_it_excepts_from() -> None:
    for program in PROGRAMS.values():
        for rule in program.rules:
            if "midstream" in rule.stages and any(action.name == "allow" for action in rule.actions):
                assert "extra" in rule.channels, rule.id
