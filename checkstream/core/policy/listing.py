"""A program as text, for people: what it searches for, and the code that decides each rule."""

from __future__ import annotations

from collections.abc import Iterator

from checkstream.core.cel.code import Code
from checkstream.core.cel.code import disassemble as instructions
from checkstream.core.policy.program import ALWAYS, Entry, Program, RuleMeta, Variable


def disassemble(program: Program) -> str:
    """Return the program as text: packs, signals, then each rule with its code."""
    code = Code(program.code, program.constants, tuple(_title(program, each) for each in program.variables))
    lines = [f"program {program.hash}", *(f"pack {pack}" for pack in program.packs)]
    lines += [f"signal {number} = {signal.title}" for number, signal in enumerate(program.signals)]
    for index, rule in enumerate(program.rules):
        entries = [entry for entry in program.entries if entry.rule == index]
        lines += (_head(rule), *(f"  {line}" for line in _rule_lines(program, code, rule, entries)))
    return "\n".join(lines) + "\n"


def _head(rule: RuleMeta) -> str:
    where = f"{'+'.join(sorted(rule.stages))}: {' '.join(sorted(rule.channels))}"
    actions = ", ".join(action.name for action in rule.actions)
    return f"rule {rule.id} {rule.mode} [{where}] {rule.shape} -> {actions}"


def _rule_lines(program: Program, code: Code, rule: RuleMeta, entries: list[Entry]) -> Iterator[str]:
    if rule.enabled_start is not None:
        yield "enabled when"
        yield from _indented(instructions(code, rule.enabled_start))
    if rule.waits != "no":
        yield f"waits for the {rule.waits}"
    by_start: dict[int, list[Entry]] = {}
    for entry in entries:
        by_start.setdefault(entry.start, []).append(entry)
    for start, shared in by_start.items():
        yield " ".join(("on", *(_came(program, entry) for entry in shared))) + (": fires" if start == ALWAYS else "")
        if start != ALWAYS:
            yield from _indented(instructions(code, start))


def _came(program: Program, entry: Entry) -> str:
    if entry.signal < 0:
        return "the request or the end of the text"
    title = program.signals[entry.signal].title
    return title if entry.floor is None else f"{title}>={entry.floor:g}"


def _indented(lines: list[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines)


def _title(program: Program, variable: Variable) -> str:
    if variable.signal < 0:
        return variable.title
    return f"{variable.kind}({program.signals[variable.signal].title})"
