"""What conditions say: CEL expressions, read, checked, and rewritten to read the variables of the program.

`scores.toxicity`, `findings.EMAIL`, `request.model` and their like become names of variables (`variables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from checkstream.core.cel.ast import INDEX, Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select
from checkstream.core.cel.check import check
from checkstream.core.cel.cost import CHARS_A_STEP, Extent, worst_cost
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.types import BOOL, DYN
from checkstream.core.cel.values import TYPE_NAMES
from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy.carets import point
from checkstream.core.policy.classifiers import (
    ClassifierLabel,
    Installed,
    ModelEntity,
    labels_of,
    resolve,
    resolve_entity,
)
from checkstream.core.policy.fields import did_you_mean
from checkstream.core.policy.nodes import Placed, Source, shown
from checkstream.core.policy.program import Signal
from checkstream.core.policy.signals import entity_signal, model_entity_signal
from checkstream.core.policy.variables import (
    CONVERSATION_FIELDS,
    REQUEST_FIELDS,
    ROOTS,
    STREAM_FIELDS,
    UNKNOWN,
    count_name,
    found_name,
    highest_name,
    is_recalled,
    recent_name,
    risk_name,
    score_name,
    scored_name,
    short_name,
    signal_of,
    type_of,
)
from checkstream.errors import ExpressionError

MAX_COST: Final = 30_000
"""Steps that the expressions of one rule may take in the worst case."""
MAX_LOOPS: Final = 4
"""Loops within each other."""
_SIZES: Final = MappingProxyType(
    {
        "context": Extent(length=1_000, work=1_000 + 16_384 // CHARS_A_STEP),  # the bounds that callers' facts keep to
        "request.tools": Extent(length=128, work=128 + 128 * 64 // CHARS_A_STEP),
        "conversation.entities": Extent(length=256, work=256 + 256 * 64 // CHARS_A_STEP),
        "request.metadata": Extent(length=16, work=16 + 16 * (64 + 512) // CHARS_A_STEP),
    }
)
"""How large values can be. Those of tools and metadata are the limits of OpenAI's API."""
_TEXT_SIZE: Final = 64
"""Steps to read any other text."""
_SEE: Final = "LANGUAGE.md says how conditions are written"
_TYPE_ROOTS: Final = frozenset(name.partition(".")[0] for name in TYPE_NAMES)


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition whose names and types have been checked."""

    text: str
    """As it was written."""
    expr: Expr
    """Rewritten: see the top of the module."""
    reads: tuple[Signal, ...] = ()
    """Signals that it reads, in the order of their names."""
    recalls: tuple[Signal, ...] = ()
    """Those of which it reads what they came to in the conversation."""
    reads_scores: bool = False
    """It reads what a model says: a score, or how often it has found an entity."""
    cost: int = 0
    """Steps that it may take in the worst case."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What conditions of one pack may name."""

    classifiers: Sequence[Installed]
    findings: Mapping[str, Sequence[Signal]]
    """Name of a pattern, or phrase -> those of the pack that are called so."""
    rules: frozenset[str] = frozenset()
    """Ids of all rules that are loaded together."""


def read_condition(
    source: Source, placed: Placed[str], names: Names, roots: Sequence[str], where: str
) -> Condition | None:
    """Return a condition, or report all that is wrong with it.

    Args:
        source: The file it stands in.
        placed: The expression as it was written.
        names: What it may name.
        roots: Those of `ROOTS` that it may read.
        where: What it is, for messages (`` `enabled_when` ``).
    """
    rewriter = _Rewriter(names, roots, where)
    try:
        expr = rewriter.rewrite(parse(placed.value), frozenset())
    except ExpressionError as error:
        source.fault(point(source, placed, error.position), error.reason, error.advice or _SEE)
        return None
    checked = check(expr, {name: type_of(name) for name in rewriter.used})
    faults = [*rewriter.faults, *checked.faults]
    if not faults and checked.type not in {BOOL, DYN}:
        advice = "compare it with something"
        faults.append(ExpressionError(f"{where} must be true or false, and this is of type {checked.type}", 0, advice))
    for fault in sorted(faults, key=lambda fault: fault.position):
        source.fault(point(source, placed, fault.position), fault.reason, fault.advice or _SEE)
    if faults:
        return None
    read = sorted(checked.variables)
    signals = _signals(name for name in read if not is_recalled(name))
    return Condition(
        text=placed.value,
        expr=checked.expr,
        reads=tuple(signals),
        recalls=tuple(_signals(filter(is_recalled, read))),
        reads_scores=any(signal.classifier for signal in signals),
        cost=worst_cost(checked, _SIZES, default=_TEXT_SIZE),
    )


def _signals(names: Iterable[str]) -> dict[Signal, None]:
    return dict.fromkeys(signal for signal in map(signal_of, names) if signal is not None)


class _Rewriter:
    """Puts the names of the program's variables in place of what conditions write."""

    def __init__(self, names: Names, roots: Sequence[str], where: str) -> None:
        self._names = names
        self._roots = roots
        self._where = where
        self._depth = 0
        self.used: set[str] = set()
        self.faults: list[ExpressionError] = []

    def rewrite(self, expr: Expr, loops: frozenset[str]) -> Expr:
        """Return the expression rewritten; `loops`: names of the loops around it."""
        path = _path(expr, loops)
        if path is not None and len(path) <= _LENGTHS[path[0][0]]:
            return self._variable(expr, path)
        match expr:
            case Ident(position, name):
                if name not in loops and name.removeprefix(".") not in _TYPE_ROOTS:
                    return self._unknown(position, name, loops)
                return expr
            case Select(position, operand, field, test):
                return Select(position, self.rewrite(operand, loops), field, test)
            case Call(position, function, target, arguments):
                return Call(
                    position,
                    function,
                    None if target is None else self.rewrite(target, loops),
                    tuple(self.rewrite(argument, loops) for argument in arguments),
                )
            case ListExpr(position, elements):
                return ListExpr(position, tuple(self.rewrite(element, loops) for element in elements))
            case MapExpr(position, pairs):
                return MapExpr(
                    position, tuple((self.rewrite(key, loops), self.rewrite(value, loops)) for key, value in pairs)
                )
            case Comprehension():
                return self._loop(expr, loops)
            case _:
                return expr

    def _loop(self, expr: Comprehension, loops: frozenset[str]) -> Expr:
        for name in expr.variables:
            if name in ROOTS:
                reason = f"`{name}` can't name a loop's elements: it stands for something already"
                self._fault(expr.position, reason, "choose another name, such as `x`")
        inner = loops.union(expr.variables)
        source = self.rewrite(expr.range, loops)
        self._depth += 1
        if self._depth == MAX_LOOPS + 1:
            self._fault(expr.position, f"loops nest deeper than {MAX_LOOPS} levels", "split the condition up")
        step = self.rewrite(expr.step, inner)
        result = None if expr.result is None else self.rewrite(expr.result, inner)
        self._depth -= 1
        return Comprehension(expr.position, expr.fold, expr.variables, source, step, result)

    def _fault(self, position: int, reason: str, advice: str) -> Ident:
        """Note a fault, and return what stands in for what is wrong."""
        self.faults.append(ExpressionError(reason, position, advice))
        self.used.add(UNKNOWN)
        return Ident(position, UNKNOWN)

    def _unknown(self, position: int, name: str, loops: frozenset[str]) -> Ident:
        known = ", ".join(f"`{root}`" for root in ROOTS)
        advice = did_you_mean(name, [*ROOTS, *loops], f"conditions read {known}; a text stands in quotes")
        return self._fault(position, f"unknown name {shown(name)}", advice)

    def _variable(self, expr: Expr, path: Sequence[tuple[str, int]]) -> Expr:
        """Return the variable that a path such as `scores.model.label` or `has(request.user)` stands for."""
        root, at = path[0]
        if root not in self._roots:
            *others, last = (f"`{name}`" for name in self._roots)
            advice = f"it may read {', '.join(others)} and {last}"
            return self._fault(at, f"{self._where} can't read `{root}`", advice)
        test = isinstance(expr, Select) and expr.test
        if root == "context":
            return self._named(expr.position, "context")
        if len(path) == 1:
            example = {
                "scores": "scores.toxicity",
                "findings": "findings.EMAIL",
                "request": "request.model",
                "conversation": "conversation.turns",
            }
            advice = f"name a field of it, as in `{example.get(root, 'stream.tokens')}`"
            return self._fault(at, f"`{root}` is no value of its own", advice)
        name, position = ".".join(part for part, _ in path[1:]), path[-1][1]
        if root == "scores":
            return self._score(name, position, test=test)
        if root == "findings":
            return self._finding(name, position, test=test)
        if root == "conversation" and path[1][0] in {*_RECALLING, _FIRED}:
            return self._recalled(expr.position, path, test=test)
        fields = {"request": REQUEST_FIELDS, "stream": STREAM_FIELDS, "conversation": CONVERSATION_FIELDS}[root]
        if name not in fields:
            names = [*fields, *((*_RECALLING, _FIRED) if root == "conversation" else ())]
            known = "known: " + ", ".join(f"`{field}`" for field in names)
            return self._fault(position, f"`{root}` has no field {shown(name)}", did_you_mean(name, names, known))
        if not test:
            return self._named(expr.position, f"{root}.{name}")
        # The stream's fields are always known, and so are the conversation's.
        return self._named(expr.position, f"@given:{name}") if root == "request" else Literal(expr.position, value=True)

    def _recalled(self, position: int, path: Sequence[tuple[str, int]], *, test: bool) -> Expr:
        """Return the variable that `conversation.risk.label` and its like stand for."""
        field, name, at = path[1][0], ".".join(part for part, _ in path[2:]), path[-1][1]
        if test:
            reason = f"`conversation.{field}` can't be asked for with `has`"
            return self._fault(at, reason, "it is always known: leave `has` out")
        if not name:
            example = 'fired["INJ-001"]' if field == _FIRED else f"{field}.injection"
            return self._fault(at, f"`conversation.{field}` is no value of its own", f"write `conversation.{example}`")
        if field == _FIRED:
            if name not in self._names.rules:
                advice = did_you_mean(name, sorted(self._names.rules), "name the `id` of a rule that is loaded")
                return self._fault(at, f"there is no rule {shown(name)}", advice)
            return self._named(position, f"@fired:{name}")
        labels = resolve(name, self._names.classifiers)
        if len(labels) != 1:
            return self._fault(at, *unclear_score(name, labels, self._names.classifiers))
        signal = Signal(kind="classifier", name=labels[0].name)
        return self._named(position, _RECALLING[field](signal))

    def _score(self, name: str, position: int, *, test: bool) -> Expr:
        labels = resolve(name, self._names.classifiers)
        if len(labels) != 1:
            reason, advice = unclear_score(name, labels, self._names.classifiers)
            return self._fault(position, reason, advice)
        signal = Signal(kind="classifier", name=labels[0].name)
        return self._named(position, scored_name(signal) if test else score_name(signal))

    def _finding(self, name: str, position: int, *, test: bool) -> Expr:
        found = list(self._names.findings.get(" ".join(name.split()), ()))
        if name in ENTITIES:
            found.append(entity_signal(name))
        else:
            found += map(model_entity_signal, resolve_entity(name, self._names.classifiers))
        if len(found) > 1:
            titles = " or ".join(f"`{signal.kind}`" for signal in found)
            reason = f"{shown(name)} can mean more than one thing ({titles})"
            return self._fault(position, reason, "give one of them another name")
        if not found:
            of_models = (each.name for each in self._names.classifiers if isinstance(each, ModelEntity))
            known = [*ENTITIES, *of_models, *self._names.findings]
            advice = did_you_mean(name, known, "name an entity, or a pattern or phrase of this pack")
            return self._fault(position, f"there is no finding {shown(name)}", advice)
        return self._named(position, found_name(found[0]) if test else count_name(found[0]))

    def _named(self, position: int, name: str) -> Ident:
        self.used.add(name)
        return Ident(position, name)


_FIRED: Final = "fired"
_RECALLING: Final = MappingProxyType(
    {"risk": risk_name, "peak": highest_name, "recent": recent_name, "short": short_name}
)
"""Fields of `conversation` that have labels behind them -> what makes the name of the variable."""
_LENGTHS: Final = MappingProxyType(
    {"context": 1, "request": 2, "scores": 3, "findings": 2, "stream": 2, "conversation": 4}
)
"""How many names a path has at most that stands for one variable."""


def _path(expr: Expr, loops: frozenset[str]) -> list[tuple[str, int]] | None:
    """Return the names of `root.a.b` or `root["a"].b` and where they stand, or None when it is no such thing."""
    names: list[tuple[str, int]] = []
    whole = expr
    while not isinstance(expr, Ident):
        if isinstance(expr, Select) and (not expr.test or expr is whole):
            names.append((expr.field, expr.position))
            expr = expr.operand
        elif isinstance(expr, Call) and expr.function == INDEX and isinstance(expr.arguments[1], Literal):
            key = expr.arguments[1]
            if not isinstance(key.value, str):
                return None
            names.append((key.value, key.position))
            expr = expr.arguments[0]
        else:
            return None
    root = expr.name.removeprefix(".")
    return [(root, expr.position), *reversed(names)] if root in ROOTS and expr.name not in loops else None


def unclear_score(name: str, found: Sequence[ClassifierLabel], classifiers: Sequence[Installed]) -> tuple[str, str]:
    """Return what is wrong with the name of a score that means none (`found` is empty) or several, and what to do."""
    if found:
        known = ", ".join(f"`{label.name}`" for label in found)
        return f"classifier {shown(name)} can mean more than one score", f"write one of {known}"
    names = [label.name for label in labels_of(classifiers)]
    otherwise = "known: " + ", ".join(f"`{known}`" for known in names) if names else "no classifier is installed"
    short = {known.partition(".")[2]: known for known in names}
    return f"there is no classifier {shown(name)}", did_you_mean(name, [*names, *short], otherwise)
