"""Every case of `policies/errors/`: a faulty policy file and the full text that its author gets to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.core.policy.capabilities import CHAT, COMPLETIONS, Target
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.errors import PolicyError

CASES = Path(__file__).parents[2] / "policies" / "errors"
CLASSIFIERS = (
    ClassifierLabel("lexicon.toxicity", 0.5),
    ClassifierLabel("lexicon.injection", 0.5),
    ClassifierLabel("small.injection", None, ((0.001, 0.97), (0.01, 0.9))),
)
TARGETS = (
    Target("chat", CHAT, "local", frozenset()),
    Target("old", COMPLETIONS, "local", frozenset({"continue", "json_schema"})),
)
"""Two routes: one to an upstream of which nothing is known, one that has neither messages nor tools."""


def sources(case: Path) -> list[tuple[str, bytes]]:
    """Return the files of a case: `policy.yaml`, and any other beside it, which is loaded first."""
    names = sorted((path.name for path in case.glob("*.yaml")), key=lambda name: (name == "policy.yaml", name))
    return [(name, (case / name).read_bytes()) for name in names]


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_faults_read_as_expected(case: str) -> None:
    expected = (CASES / case / "expected.txt").read_text(encoding="utf-8")
    with pytest.raises(PolicyError) as raised:
        compile_sources(sources(CASES / case), CLASSIFIERS, TARGETS)
    assert f"{raised.value}\n" == expected


def test_there_are_enough_cases() -> None:
    assert sum(1 for path in CASES.iterdir() if path.is_dir()) >= 100


def test_every_fault_says_what_to_do() -> None:
    for case in CASES.iterdir():
        if case.is_dir():
            with pytest.raises(PolicyError) as raised:
                compile_sources(sources(case), CLASSIFIERS, TARGETS)
            for fault in raised.value.faults:
                assert fault.reason[0].islower() or fault.reason[0] == "`"
                assert not fault.reason.endswith(".")
                assert fault.advice or "can't be used: " in fault.reason or "must be a" in fault.reason, fault
