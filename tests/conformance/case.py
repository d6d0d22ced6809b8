"""Files of worked cases: JSON lines of id, design, fn, input, expected, tolerance, basis, note."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.conformance.grounding import RUNS

TOLERANCE = 1e-6
"""Between numbers, where a case names none."""


class CaseUnreadable(Exception):
    """A line of a file is no case."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An input with what must come of it."""

    id: str
    design: str
    fn: str
    input: Any
    expected: Any
    tolerance: float = TOLERANCE
    basis: str = ""
    note: str = ""


def read(path: Path) -> list[Case]:
    """Return the cases of a file; empty lines don't count.

    Raises:
        CaseUnreadable: A line is no case; the message says which.
        OSError: The file can't be read.
    """
    cases = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CaseUnreadable(f"{path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                cases.append(msgspec.convert(json.loads(line), Case))
            except (ValueError, msgspec.ValidationError) as error:
                raise CaseUnreadable(f"{path}:{number}: {error}") from error
    return cases


def faults(case: Case) -> list[str]:
    """Return what of the outcome of `case` is not as expected; every field that it expects is compared."""
    run = RUNS.get((case.design, case.fn))
    if run is None:
        known = ", ".join(sorted(fn for design, fn in RUNS if design == case.design)) or "none of this design"
        return [f"nothing runs `{case.fn}` of `{case.design}`; known: {known}"]
    try:
        outcome = run(case.input)
    except Exception as error:  # noqa: BLE001 - a case that raises has failed, and the others go on
        return [f"raised {type(error).__name__}: {error}"]
    return list(differences(case.expected, outcome, case.tolerance, ""))


def differences(expected: Any, outcome: Any, tolerance: float, place: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(outcome, Mapping):
        for key, value in expected.items():
            yield from differences(value, outcome.get(key), tolerance, f"{place}.{key}")
    elif isinstance(expected, list) and isinstance(outcome, list) and len(expected) == len(outcome):
        for at, (one, other) in enumerate(zip(expected, outcome, strict=True)):
            yield from differences(one, other, tolerance, f"{place}[{at}]")
    elif _is_number(expected) and _is_number(outcome):
        if not abs(expected - outcome) <= tolerance:
            yield f"{place or 'outcome'}: expected {expected!r}, got {outcome!r}"
    elif type(expected) is not type(outcome) or expected != outcome:
        yield f"{place or 'outcome'}: expected {expected!r}, got {outcome!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
