"""The public conformance cases of CEL (cel-spec, tests/simple): all but those that the language leaves out, by reason.

They lie outside of the project: in the folder that `CHECKSTREAM_CONFORMANCE` names, else in `shared/conformance` beside
the checkout. `pytest -rP tests/conformance/test_cel.py` prints the counts.
"""

from __future__ import annotations

import collections
from pathlib import Path

import pytest

from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler
from checkstream.core.cel.machine import run
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import EvalError, Value
from checkstream.core.cel.verify import verify
from tests.cel_cases import (
    FUNCTION,
    MESSAGE,
    OTHERS,
    WHOLE,
    ZONE,
    Case,
    bindings,
    cases,
    deduced,
    expected,
    left_out,
    same,
    variables,
)

LEFT_OUT = {
    "comparisons": {MESSAGE: 72},
    "parse": {MESSAGE: 26},
    "timestamps": {ZONE: 5},
    "type_deduction": {MESSAGE: 21, FUNCTION: 11},
    "dynamic": {MESSAGE: 226},
}
"""How many cases of each section are left out: a reason that grew to fit more of them would show."""


def outcome(case: Case) -> Value:
    """Parse, check, compile, verify and run a case."""
    expr = parse(case.expr, max_chars=100_000)
    checked = check(expr, variables(case), container=case.written.get("container", ""))
    if not case.written.get("disable_check"):
        assert not checked.faults, [str(fault) for fault in checked.faults]
    typed = case.written.get("typed_result")
    if typed is not None:
        assert checked.type == deduced(typed["deduced_type"])
    assembler = Assembler()
    start = assembler.add(checked.expr)
    code = assembler.build()
    verify(code, [start])
    bound = bindings(case)
    names = code.variables
    return run(code.instructions, code.constants, start, lambda number: bound.get(names[number], EvalError("unbound")))


def failure(case: Case) -> str | None:
    """Return how a case fails, or None."""
    try:
        got = outcome(case)
    except Exception as error:  # noqa: BLE001 - every case is tried
        return f"{case.name}: {case.expr[:200]!r} raised {error!r}"
    if "eval_error" in case.written:
        return None if isinstance(got, EvalError) else f"{case.name}: {case.expr[:200]!r} came to {got!r}, not an error"
    if case.written.get("check_only"):
        return None
    return None if any(same(got, value) for value in expected(case)) else f"{case.name}: {case.expr!r} came to {got!r}"


@pytest.mark.parametrize("section", [*WHOLE, *OTHERS])
def test_every_case_of_a_section_passes_but_those_left_out(section: str) -> None:
    found = cases(section)
    reasons = {case.name: left_out(case) for case in found}
    counts = collections.Counter(reason for reason in reasons.values() if reason is not None)
    taken = [case for case in found if reasons[case.name] is None]
    failures = [said for case in taken if (said := failure(case)) is not None]
    assert not failures, "\n".join(failures)
    print(f"{section}: {len(taken)} passed, left out: {dict(counts) or 'none'}")  # noqa: T201 - shown by `pytest -rP`
    assert counts == LEFT_OUT.get(section, {})


def test_the_language_document_says_what_passes() -> None:
    page = (Path(__file__).parents[2] / "policies" / "LANGUAGE.md").read_text(encoding="utf-8")
    for section in WHOLE:
        count = len(cases(section)) - sum(LEFT_OUT.get(section, {}).values())
        row = next(line for line in page.splitlines() if line.startswith(f"| `{section}` |"))
        assert row.split("|")[2].strip() == str(count)
        assert all(str(left) in row.split("|")[3] for left in LEFT_OUT.get(section, {}).values())
