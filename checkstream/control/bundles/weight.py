"""What of a bundle needs a second role's approval, as one digest: each rule that is enforced and does more than log.

Where conditions ask what a stream or a conversation has come to, it is every rule.
The digest is made from the programs that a node has compiled itself, and says nothing of names of files, versions,
descriptions, shadow rules or tests; so what changes these alone stays approved, and what adds, changes, switches off or
takes away an enforced rule does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.control.bundles.index import Name
from checkstream.core.cel.code import JUMPS, Op
from checkstream.core.cel.functions import FUNCTIONS
from checkstream.core.policy.action import LogEvent
from checkstream.core.policy.constants import written_constant
from checkstream.core.policy.program import ALWAYS, Digest, Program, RuleMeta, Word
from checkstream.errors import BundleRefused

_UNWEIGHTY = frozenset(
    (
        "version",
        "description",
        "owner",
        "tags",
        "regulation",
        "citation",
        "severity",
        "enabled_start",
        "condition_starts",
    )
)
"""Fields of a rule that no decision follows from, or that are numbers of code, which is read instead."""
_OF_STREAMS = frozenset({"stream"})
_OF_CONVERSATIONS = frozenset({"conversation", "fired", "risk", "highest", "recent", "short"})
"""Kinds of variables, as `Program.variables` has them."""
MAX_APPROVAL_BYTES = 4 << 20
MOST_EARLIER = 16
"""Versions of a bundle that stay good beside the newest."""


class Weighty(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that must be approved."""

    program: Name
    rule: Word
    actions: tuple[str, ...]
    digest: Digest


class Approval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a second role has signed: the enforced rules of a bundle may be these."""

    format: Literal["checkstream.approval.1"] = "checkstream.approval.1"
    bundle: Name
    weight: Digest
    rules: Annotated[tuple[str, ...], Meta(max_length=100_000)] = ()
    """`program/rule`, for people."""
    earlier: Annotated[dict[Digest, Digest], Meta(max_length=MOST_EARLIER)] = {}
    """Digest of an earlier version -> its weight, where that is another: it stays approved."""

    def of(self, digest: str) -> str:
        """Return what may be enforced of the version with this digest."""
        return self.earlier.get(digest, self.weight)

    def encode(self) -> bytes:
        """Return it as canonical JSON."""
        return msgspec.json.encode(self, order="deterministic")


def approval_of(bundle: str, programs: Mapping[str, Program]) -> Approval:
    """Return the approval that a bundle of these programs needs."""
    rules = weighty(programs)
    names = tuple(f"{each.program}/{each.rule}" for each in rules)
    return Approval(bundle=bundle, weight=weight_of(rules), rules=names)


def read_approval(data: bytes) -> Approval:
    """Return what an approval says.

    Raises:
        BundleRefused: it is none.
    """
    if len(data) > MAX_APPROVAL_BYTES:
        raise BundleRefused(f"an approval has {len(data)} bytes; the limit is {MAX_APPROVAL_BYTES}")
    try:
        return msgspec.json.decode(data, type=Approval)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BundleRefused(f"an approval can't be read: {error}; sign it again") from error


def weighty(programs: Mapping[str, Program]) -> tuple[Weighty, ...]:
    """Return every rule of these programs that is enforced and does more than log, in a fixed order.

    Where conditions ask what a stream or a conversation has come to, every rule has a part in that, those of other
    programs in what a conversation has.
    """
    remembers = any(_asks(program, _OF_CONVERSATIONS) for program in programs.values())
    return tuple(
        rule
        for name, program in sorted(programs.items())
        for rule in _weighty(name, program, every=remembers or _asks(program, _OF_STREAMS))
    )


def _asks(program: Program, kinds: frozenset[str]) -> bool:
    return any(variable.kind in kinds for variable in program.variables)


def weight_of(rules: tuple[Weighty, ...]) -> str:
    """Return the digest of them all, hex; that of none is one, too: somebody has to approve of no rules."""
    return hashlib.sha256(msgspec.json.encode(rules, order="deterministic")).hexdigest()


def _weighty(name: str, program: Program, *, every: bool) -> Iterator[Weighty]:
    for number, rule in enumerate(program.rules):
        actions = tuple(action.name for action in rule.actions)
        acts = rule.mode == "enforce" and any(not isinstance(action, LogEvent) for action in rule.actions)
        if acts or every:
            said = msgspec.json.encode([*_said(program, number, rule)], order="deterministic")
            digest = hashlib.sha256(said).hexdigest()
            yield Weighty(program=name, rule=rule.id, actions=actions, digest=digest)


def _said(program: Program, number: int, rule: RuleMeta) -> Iterator[object]:
    """Yield all that the rule's decisions follow from."""
    fields = {name: getattr(rule, name) for name in rule.__struct_fields__ if name not in _UNWEIGHTY}
    for name in ("triggers", "reads"):
        fields[name] = [program.signals[signal] for signal in fields[name]]
    yield fields
    starts = (*(() if rule.enabled_start is None else (rule.enabled_start,)), *rule.condition_starts)
    yield [_instructions(program, start) for start in starts]
    for entry in program.entries:
        if entry.rule == number:
            signal = None if entry.signal < 0 else program.signals[entry.signal]
            yield [signal, entry.floor, None if entry.start == ALWAYS else _instructions(program, entry.start)]


def _instructions(program: Program, start: int) -> list[tuple[str, object]]:
    """Return the code at `start`, with what its numbers stand for: what stands beside it in the program is nothing."""
    found: list[tuple[str, object]] = []
    for number, argument in program.code[start:]:
        op = Op(number)
        found.append((op.name, _operand(program, op, argument, start)))
        if op is Op.RETURN:
            break
    return found


def _operand(program: Program, op: Op, argument: int, start: int) -> object:
    if op is Op.LOAD:
        variable = program.variables[argument]
        signal = None if variable.signal < 0 else program.signals[variable.signal]
        return variable.kind, variable.name, signal
    if op in {Op.CONST, Op.SELECT, Op.HAS}:
        return written_constant(program.constants[argument])
    if op in {Op.CALL1, Op.CALL2}:
        return FUNCTIONS[argument].key
    return argument - start if op in JUMPS else argument
