"""The policies in force, rule by rule, with the place of each in its file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from checkstream.console.facts import Policies, ProgramFacts, RuleFacts, Source
from checkstream.console.text import lines_of

MOST_LINES = 10_000


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rule stands."""

    source: int
    """Number of the file, in the order of the facts."""
    line: int
    """From 1."""


class RuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and where it stands as far as that can be found."""

    rule: RuleFacts
    place: Place | None


class ProgramView(msgspec.Struct, frozen=True, kw_only=True):
    """Policies that are in force together."""

    number: int
    program: ProgramFacts
    rows: tuple[RuleRow, ...]

    @property
    def enforced(self) -> int:
        """Rules that act."""
        return sum(row.rule.mode.startswith("enforce") for row in self.rows)


class PoliciesView(msgspec.Struct, frozen=True, kw_only=True):
    """All that is in force."""

    programs: tuple[ProgramView, ...]
    sources: tuple[Source, ...]
    unguarded: tuple[str, ...]


def policies_view(policies: Policies) -> PoliciesView:
    """Return the view of what is in force."""
    numbers = {source.name: number for number, source in enumerate(policies.sources)}
    ids = {number: places_of(source.text) for number, source in enumerate(policies.sources)}
    programs = []
    for number, program in enumerate(policies.programs):
        files = [numbers[name] for name in program.files if name in numbers]
        rows = tuple(RuleRow(rule=rule, place=_place(rule, files, ids)) for rule in program.rules)
        programs.append(ProgramView(number=number, program=program, rows=rows))
    return PoliciesView(programs=tuple(programs), sources=policies.sources, unguarded=policies.unguarded)


def _place(rule: RuleFacts, files: Sequence[int], ids: Mapping[int, Mapping[str, int]]) -> Place | None:
    for name in (rule.id, rule.name):
        for file in files:
            if name in ids[file]:
                return Place(source=file, line=ids[file][name])
    return None


def places_of(text: str) -> dict[str, int]:
    """Return the lines on which `id:` and `name:` of YAML say something, by what they say; the first of each counts.

    It is no parser: a rule that is written in a way that it doesn't know has no place, and nothing else comes of that.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")[:MOST_LINES], 1):
        for key in ("id:", "name:"):
            before, mark, rest = line.partition(key)
            if mark and (not before.strip(" -") or before.rstrip().endswith((",", "{"))):
                found.setdefault(_scalar(rest), number)
    found.pop("", None)
    return found


def _scalar(rest: str) -> str:
    value = rest.strip()
    if value[:1] in {'"', "'"}:
        return value[1:].partition(value[0])[0]
    for end in (",", "}", " #"):
        value = value.partition(end)[0]
    return value.strip()


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """A policy file with its lines."""

    name: str
    lines: tuple[str, ...]
    more: int
    """Lines that are left out."""


def source_view(source: Source) -> SourceView:
    """Return the view of a file."""
    lines = lines_of(source.text)
    return SourceView(name=source.name, lines=tuple(lines[:MOST_LINES]), more=max(len(lines) - MOST_LINES, 0))
