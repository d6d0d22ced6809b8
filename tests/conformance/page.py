"""The tables of `policies/LANGUAGE.md`, which tests are made of."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from checkstream.core.policy.capabilities import MCP
from checkstream.core.terms import Stage

PAGE = (Path(__file__).parents[2] / "policies" / "LANGUAGE.md").read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace("\\|", "/").strip().strip("|").split("|")]


def rows(head: str) -> list[list[str]]:
    """The rows of the table that begins with `head`."""
    lines = PAGE.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(head)) + 2
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    return [cells(line) for line in lines[start:end]]


def quoted(text: str) -> list[str]:
    return text.split("`")[1::2]


_HEAD = "| action | `ingress` | `midstream` | `egress` |"
MATRIX = rows(_HEAD)
"""Rows of the matrix of section 8."""


class Row(NamedTuple):
    """What the matrix says of an action."""

    stages: dict[Stage, tuple[str, ...]]
    """Where it runs -> the only channels; empty: all of the stage."""
    surfaces: frozenset[str]
    """The APIs that carry it out."""
    needs: frozenset[str]
    """What an upstream must be able to."""
    midstream: bool
    """Only there."""


def _row(written: list[str], surfaces: list[str]) -> Row:
    at, of, needs = written[1:4], written[4 : 4 + len(surfaces)], written[4 + len(surfaces)]
    said = {stage: tuple(quoted(cell)) for stage, cell in zip(Stage, at, strict=True) if cell.startswith("yes")}
    assert {*of, *(cell.partition(":")[0] for cell in at)} <= {"yes", "no"}, written
    able = frozenset(name for name, cell in zip(surfaces, of, strict=True) if cell == "yes")
    return Row(said, able, frozenset(quoted(needs)), needs.startswith("midstream: "))


SURFACES = [quoted(cell)[0] for cell in cells(next(line for line in PAGE.splitlines() if line.startswith(_HEAD)))[4:-1]]
"""The columns of APIs."""
ROWS = {" ".join(quoted(written[0])): _row(written, SURFACES) for written in MATRIX}
"""Action, with the field or place that a row speaks of -> what the matrix says of it."""
assert SURFACES[-1] == MCP
