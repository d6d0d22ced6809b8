"""What policies are compiled to: signals, rules, constants, code, and the scopes that streams read.

Everything here is frozen and shared by all streams. A `Program` is plain data: its hash is that of
its canonical JSON, and nothing of it is executable but the instructions of `Op`.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec

from checkstream.core.match.patterns import PatternSet
from checkstream.core.terms import Stage


class Action(msgspec.Struct, frozen=True, tag_field="type"):
    """Something that a rule asks for when it fires."""

    name: ClassVar[str]
    """The action as policies, verdicts and audit entries call it."""


class Allow(Action, frozen=True, tag="allow"):
    """An exception: rules of lower priority that match the same span do nothing there."""

    name: ClassVar[str] = "allow"


class Reject(Action, frozen=True, tag="reject"):
    """Refuse the request; the model never sees it."""

    name: ClassVar[str] = "reject"
    status: int = 400
    message: str = "the request was blocked by policy"


class Redact(Action, frozen=True, tag="redact"):
    """Put a text in place of the span."""

    name: ClassVar[str] = "redact"
    text: str | None = None
    """None: the detector's own placeholder (`Signal.placeholder`)."""


class Stop(Action, frozen=True, tag="stop"):
    """End the choice before the span, with a message in its place."""

    name: ClassVar[str] = "stop"
    message: str = ""


class InjectDisclaimer(Action, frozen=True, tag="inject_disclaimer"):
    """Add a text before or after the answer."""

    name: ClassVar[str] = "inject_disclaimer"
    text: str
    position: Literal["start", "end"] = "end"


class LogEvent(Action, frozen=True, tag="log_event"):
    """Record that the rule fired, and nothing else."""

    name: ClassVar[str] = "log_event"
    severity: str = "info"


AnyAction = Allow | Reject | Redact | Stop | InjectDisclaimer | LogEvent
HOLDING_ACTIONS = frozenset({"allow", "reject", "redact", "stop"})
"""Actions whose rules hold text: what they condemn (or except) must not have been sent before they fire."""


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One detector, shared by every rule that asks for it; its number is its place in `Program.signals`."""

    kind: Literal["pattern", "phrase", "entity", "classifier"]
    name: str
    """The pattern's name, the phrase, the entity's name, or `model.label`."""
    regex: str | None = None
    """RE2 syntax; None for a classifier."""
    max_chars: int | None = None

    @property
    def title(self) -> str:
        """How verdicts and audit entries call the detector, e.g. `entity:EMAIL`."""
        return f"{self.kind}:{self.name}"

    @property
    def placeholder(self) -> str:
        """What stands in place of redacted text unless the rule says otherwise."""
        return f"[{self.name}]" if self.kind == "entity" else "[REDACTED]"

    @property
    def classifier(self) -> str:
        """Name of the classifier that gives this score, without its label."""
        return self.name.partition(".")[0]


class RuleMeta(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a rule besides its code."""

    id: str
    name: str
    pack: str
    version: str
    stages: frozenset[Stage]
    channels: frozenset[str]
    mode: Literal["enforce", "shadow", "disabled"] = "enforce"
    match: Literal["any", "all"] = "any"
    priority: int = 0
    actions: tuple[AnyAction, ...]
    triggers: tuple[int, ...]
    """Signals that the rule asks for, in the order of the policy file."""
    thresholds: tuple[float | None, ...]
    """Beside each trigger: the score from which it counts; None for what is found or not."""
    regulation: str | None = None
    citation: str | None = None
    severity: str | None = None
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    fail_mode: Literal["open", "closed"] | None = None
    """What a failed detector of this rule means; None: as the route says."""

    @property
    def holds(self) -> bool:
        """Text waits until this rule is decided over it: it is enforced and changes, stops or excepts text."""
        return self.mode == "enforce" and any(action.name in HOLDING_ACTIONS for action in self.actions)


class Op(enum.IntEnum):
    """Instructions of the VM. Each has one integer argument; the stack holds truth values, scores and constants."""

    SEEN = 0
    """Push whether the signal has been found."""
    SCORE = 1
    """Push the signal's latest score, or nothing-known when there is none."""
    CONST = 2
    """Push a constant."""
    AT_LEAST = 3
    """Pop a constant, then a score; push whether the score is known and at least the constant."""
    JUMP_IF_FALSE = 4
    """Go to the instruction when the top is false, keeping it; else pop it."""
    RETURN = 5
    """Pop the answer: does the rule fire?"""


Instruction = tuple[int, int]
"""An `Op` and its argument: a signal, a place in the constants or a place in the code; 0 where unused."""


class Entry(msgspec.Struct, frozen=True):
    """Where the code starts that decides one rule when one of its signals has come."""

    rule: int
    start: int


class Scope(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one kind of channel needs at one stage; made once per program and shared by all streams."""

    stage: Stage
    channel: str
    hold: PatternSet
    """Patterns, phrases and entities that text waits for."""
    watch: PatternSet
    """Those that are only recorded (or add text elsewhere): they never hold text. In both sets stands only what a rule
    of `watched` needs to see beside the rest of its triggers."""
    hold_classifiers: tuple[str, ...]
    degradable: bool = False
    """Every rule that holds text for a classifier has a cheaper detector which fires it alone (a pattern, phrase or
    entity, with `match: any`): over the budget that one may decide without the score."""
    watch_classifiers: tuple[str, ...]
    score_signals: Mapping[str, int]
    """`model.label` -> signal, for every score that a rule of this scope reads."""
    rules: Mapping[int, tuple[Entry, ...]]
    """Signal -> the rules that it can fire here."""
    active: tuple[int, ...]
    """Indexes of the rules in force here, in the program's order."""
    held: frozenset[int] = frozenset()
    """Signals that are decided before text is released; all others are decided behind it."""
    watched: frozenset[int] = frozenset()
    """Indexes of rules that need all of their triggers, of which not all are in `held`: decided behind the release."""

    def decides(self, rule: int, signal: int, *, leads: bool) -> bool:
        """Tell who decides on a rule that a signal fires: each is decided once, before the release or behind it."""
        return leads == (rule not in self.watched and signal in self.held)


class Program(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Compiled policies: what every stream that starts now runs under."""

    signals: tuple[Signal, ...]
    rules: tuple[RuleMeta, ...]
    constants: tuple[float, ...]
    code: tuple[Instruction, ...]
    entries: tuple[tuple[int, ...], ...]
    """Per rule, beside each trigger: where the code starts that decides the rule when that trigger has come."""
    packs: tuple[str, ...]
    """`name@version` of each pack, in the order of the files."""
    hash: str
    """SHA-256 of the canonical form, hex: equal programs decide equally."""
    scopes: Mapping[tuple[Stage, str], Scope]

    def scope(self, stage: Stage, channel: str) -> Scope:
        """Return what a channel of the kind `channel` needs at `stage`.

        Raises:
            KeyError: the stage has no such channel.
        """
        return self.scopes[stage, channel]


def canonical_hash(
    *,
    signals: tuple[Signal, ...],
    rules: tuple[RuleMeta, ...],
    constants: tuple[float, ...],
    code: tuple[Instruction, ...],
    packs: tuple[str, ...],
) -> str:
    """Return the SHA-256, hex, of all that decides, as JSON with sorted keys and sets."""
    body = msgspec.json.encode(
        {"signals": signals, "rules": rules, "constants": constants, "code": code, "packs": packs},
        order="deterministic",
    )
    return hashlib.sha256(b"checkstream.program.1\x00" + body).hexdigest()


def disassemble(program: Program) -> str:
    """Return the program as text: packs, constants, signals, then each rule with its code."""
    lines = [f"program {program.hash}", *(f"pack {pack}" for pack in program.packs)]
    lines += [f"const {number} = {value!r}" for number, value in enumerate(program.constants)]
    lines += [f"signal {number} = {signal.title}" for number, signal in enumerate(program.signals)]
    for rule, entries in zip(program.rules, program.entries, strict=True):
        actions = ", ".join(action.name for action in rule.actions)
        where = f"{'+'.join(sorted(rule.stages))}: {' '.join(sorted(rule.channels))}"
        lines.append(f"rule {rule.id} {rule.mode} [{where}] -> {actions}")
        starts = sorted(set(entries))
        for start in starts:
            signals = " ".join(str(t) for t, entry in zip(rule.triggers, entries, strict=True) if entry == start)
            lines.append(f"  on signal {signals}")
            lines += _instructions(program, start)
    return "\n".join(lines) + "\n"


def _instructions(program: Program, start: int) -> list[str]:
    lines = []
    for place in range(start, len(program.code)):
        op, argument = program.code[place]
        note = ""
        if op in {Op.SEEN, Op.SCORE}:
            note = f"{argument:<6} ; {program.signals[argument].title}"
        elif op == Op.CONST:
            note = f"{argument:<6} ; {program.constants[argument]!r}"
        elif op == Op.JUMP_IF_FALSE:
            note = str(argument)
        lines.append(f"    {place:>5} {Op(op).name:<13} {note}".rstrip())
        if op == Op.RETURN:
            break
    return lines
