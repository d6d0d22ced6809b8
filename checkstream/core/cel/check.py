"""Resolve the names of an expression and check its types.

Where a type is known it is held to; `dyn` agrees with all, and what it comes to is found out by running. All faults of
an expression are collected. The tree that comes back has its variables by their full names and its regular expressions
compiled; a faulty part comes to an error when it is run.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from checkstream.core.cel.ast import (
    AND,
    CONDITION,
    EQUAL,
    INDEX,
    MATCHES,
    OR,
    Call,
    Comprehension,
    Expr,
    Fold,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
)
from checkstream.core.cel.functions import FUNCTIONS, NAMES, NUMBER_OF, Function
from checkstream.core.cel.moments import ACCESSORS, zone_offset
from checkstream.core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    FREE,
    INT,
    KEY_TYPES,
    NULL,
    STRING,
    TYPE,
    UINT,
    Type,
    agree,
    join,
    list_of,
    map_of,
    settled,
)
from checkstream.core.cel.values import TYPE_NAMES, EvalError, TypeValue, Uint
from checkstream.core.match.regex import TextRegex
from checkstream.errors import ExpressionError, PatternError

MAX_LOOPS: Final = 8
"""Loops within each other."""
MAX_FAULTS: Final = 20
"""Faults of one expression that are said."""
_LITERALS: Final = {bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}
_UNKNOWN: Final = frozenset({DYN, FREE})
_Scope = Mapping[str, Type]
"""Types of the variables of the loops around."""
_Typed = tuple[Expr, Type]


class Checked(msgspec.Struct, frozen=True):
    """An expression whose names and types are known."""

    expr: Expr
    type: Type
    """What it comes to, unless it comes to an error."""
    variables: frozenset[str]
    """The declared names that it reads."""
    faults: tuple[ExpressionError, ...] = ()
    """What is wrong with it, in the order of the text."""


def check(expr: Expr, variables: Mapping[str, Type], *, container: str = "") -> Checked:
    """Resolve and check a tree as `parse` gives it.

    Args:
        expr: The tree.
        variables: Types by name; a name may have dots, and the longest that fits is taken.
        container: A prefix (`a.b`) under which names are looked for first.
    """
    checker = _Checker(variables, container)
    resolved, kind = checker.visit(expr, {})
    faults = tuple(sorted(checker.faults, key=lambda fault: fault.position))
    return Checked(resolved, settled(kind), frozenset(checker.read), faults)


class _Checker:
    def __init__(self, variables: Mapping[str, Type], container: str) -> None:
        self._variables = variables
        words = container.split(".") if container else []
        self._prefixes = [".".join((*words[:count], "")) for count in range(len(words), -1, -1)]
        self._loops = 0
        self.faults: list[ExpressionError] = []
        self.read: set[str] = set()
        self._visits: dict[type[Expr], Callable[[Any, _Scope], _Typed]] = {
            Literal: self._literal,
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListExpr: self._list,
            MapExpr: self._map,
            Comprehension: self._comprehension,
        }

    def visit(self, expr: Expr, scope: _Scope) -> _Typed:
        """Return the resolved tree and its type."""
        return self._visits[type(expr)](expr, scope)

    def _fault(self, position: int, reason: str, advice: str = "") -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(ExpressionError(reason, position, advice))

    def _failed(self, position: int, reason: str, advice: str = "") -> _Typed:
        """Note a fault; what stands there comes to an error."""
        self._fault(position, reason, advice)
        return Literal(position, EvalError(reason)), DYN

    def _literal(self, expr: Literal, _scope: _Scope) -> _Typed:
        return expr, _LITERALS.get(type(expr.value), DYN)

    def _declared(self, name: str) -> str | None:
        """Return the full name of a variable, or None."""
        if name.startswith("."):
            return name[1:] if name[1:] in self._variables else None
        return next((prefix + name for prefix in self._prefixes if prefix + name in self._variables), None)

    def _named(self, position: int, name: str, scope: _Scope) -> _Typed | None:
        """Return what a name, dots in it or not, stands for outside of loops, or None."""
        full = self._declared(name)
        if full is not None:
            self.read.add(full)
            return Ident(position, f".{full}" if full.partition(".")[0] in scope else full), self._variables[full]
        plain = name.removeprefix(".")
        return (Literal(position, TypeValue(plain)), TYPE) if plain in TYPE_NAMES else None

    def _ident(self, expr: Ident, scope: _Scope) -> _Typed:
        if expr.name in scope:
            return expr, scope[expr.name]
        found = self._named(expr.position, expr.name, scope)
        if found is not None:
            return found
        self._unknown(expr.position, expr.name, scope)
        return expr, DYN

    def _unknown(self, position: int, name: str, scope: _Scope) -> None:
        if len(self.faults) == MAX_FAULTS:
            return
        near = difflib.get_close_matches(name[:80], [*scope, *self._variables], n=1, cutoff=0.7)
        advice = f"did you mean `{near[0]}`?" if near else f"known are {_list(sorted({*scope, *self._variables}))}"
        self._fault(position, f"unknown name `{name[:80]}`", advice)

    def _select(self, expr: Select, scope: _Scope) -> _Typed:
        names = _qualified(expr.operand if expr.test else expr)
        if names is not None and names[0] not in scope:
            dotted = [".".join(names[:count]) for count in range(len(names), 0, -1)]
            found = None if expr.test else self._named(expr.position, dotted[0], scope)
            if found is not None:
                return found
            if not any(self._declared(name) or name.removeprefix(".") in TYPE_NAMES for name in dotted):
                self._unknown(_first(expr).position, dotted[0], scope)
                return Select(expr.position, _first(expr), expr.field, expr.test), BOOL if expr.test else DYN
        operand, kind = self.visit(expr.operand, scope)
        if kind.name == "map":
            key, value = kind.parameters
            if agree(key, STRING) is None:
                self._fault(expr.position, f"keys of `{kind}` are no text", f"write `[{key}]` with a key of its type")
        else:
            value = DYN
            if kind not in _UNKNOWN:
                self._fault(expr.position, f"a value of type {kind} has no field `{expr.field[:80]}`")
        return Select(expr.position, operand, expr.field, expr.test), BOOL if expr.test else value

    def _list(self, expr: ListExpr, scope: _Scope) -> _Typed:
        elements = [self.visit(element, scope) for element in expr.elements]
        made = ListExpr(expr.position, tuple(element for element, _ in elements))
        return made, list_of(join(kind for _, kind in elements))

    def _map(self, expr: MapExpr, scope: _Scope) -> _Typed:
        keys = [self.visit(key, scope) for key, _ in expr.pairs]
        values = [self.visit(value, scope) for _, value in expr.pairs]
        for key, kind in keys:
            if kind not in KEY_TYPES:
                self._fault(key.position, f"a {kind} is no key", "a key is a string, int, uint or bool")
        pairs = tuple((key, value) for (key, _), (value, _) in zip(keys, values, strict=True))
        return MapExpr(expr.position, pairs), map_of(join(kind for _, kind in keys), join(kind for _, kind in values))

    def _boolean(self, expr: Expr, scope: _Scope, what: str) -> Expr:
        """Return what is asked for its truth, resolved."""
        resolved, kind = self.visit(expr, scope)
        if kind != BOOL and kind not in _UNKNOWN:
            self._fault(expr.position, f"{what} is {kind}, not bool", "compare it with something")
        return resolved

    def _call(self, expr: Call, scope: _Scope) -> _Typed:
        if expr.function in {AND, OR}:
            what = f"an operand of `{_operator(expr.function)}`"
            operands = tuple(self._boolean(operand, scope, what) for operand in expr.arguments)
            return Call(expr.position, expr.function, None, operands), BOOL
        if expr.function == CONDITION:
            return self._conditional(expr, scope)
        typed = [self.visit(operand, scope) for operand in expr.operands]
        function, style = self._function(expr, len(typed))
        if function is None:
            return self._failed(expr.position, *style)
        operands = tuple(operand for operand, _ in typed)
        kinds = tuple(kind for _, kind in typed)
        results = {result for form in function.forms if (result := form.applied(kinds)) is not None}
        if not results:
            self._fault(expr.position, *_refusal(function, kinds))
        kind = results.pop() if len(results) == 1 else DYN
        if function.name == MATCHES:
            return self._search(expr, operands)
        if function.name in ACCESSORS and len(operands) == 2 and isinstance(operands[1], Literal):
            zone = operands[1].value
            if isinstance(zone, str) and zone_offset(zone) is None:
                self._fault(
                    operands[1].position, f"no such zone: `{zone[:80]}`", "write `UTC` or an offset such as `+01:00`"
                )
        return Call(expr.position, function.name, None, operands), kind

    def _function(self, expr: Call, count: int) -> tuple[Function | None, tuple[str, str]]:
        """Return the function that a call means, or None with the reason and advice."""
        name = expr.function.removeprefix(".")
        number = NUMBER_OF.get(f"{name}/{count}")
        if number is None:
            if name in NAMES:
                return None, (f"`{_operator(name)}` doesn't take {count} operands", "")
            near = difflib.get_close_matches(name[:80], sorted(NAMES), n=1, cutoff=0.7)
            return None, (f"unknown function `{name[:80]}`", f"did you mean `{near[0]}`?" if near else "")
        function = FUNCTIONS[number]
        if function.style == "global" and expr.target is not None:
            return None, (f"`{name}` is not asked of a value", f"write `{name}(x)`")
        if function.style == "method" and expr.target is None:
            return None, (f"`{name}` is asked of a value", f"write `x.{name}(...)`")
        return function, ("", "")

    def _conditional(self, expr: Call, scope: _Scope) -> _Typed:
        condition = self._boolean(expr.arguments[0], scope, "what stands before `?`")
        chosen, kind = self.visit(expr.arguments[1], scope)
        other, kind_of_other = self.visit(expr.arguments[2], scope)
        agreed = agree(kind, kind_of_other)
        if agreed is None:
            self._fault(
                expr.position,
                f"`?:` comes to {kind} or {kind_of_other}",
                "give both the same type, or wrap one in `dyn(...)`",
            )
        return Call(expr.position, CONDITION, None, (condition, chosen, other)), agreed or DYN

    def _search(self, expr: Call, operands: tuple[Expr, ...]) -> _Typed:
        """Return the call of `matches` with its expression compiled."""
        text, regex = operands
        if not isinstance(regex, Literal) or not isinstance(regex.value, str):
            return self._failed(regex.position, "`matches` takes a written text", "write the regex as a string")
        try:
            compiled = TextRegex(regex.value)
        except PatternError as error:
            return self._failed(regex.position, str(error).partition("\n")[0])
        return Call(expr.position, MATCHES, None, (text, Literal(regex.position, compiled))), BOOL

    def _comprehension(self, expr: Comprehension, scope: _Scope) -> _Typed:
        source, kind = self.visit(expr.range, scope)
        keys, values = DYN, DYN
        if kind.name == "list":
            keys, values = INT, kind.parameters[0]
        elif kind.name == "map":
            keys, values = kind.parameters
        elif kind not in _UNKNOWN:
            self._fault(expr.position, f"a loop over {kind}", "loops go over lists and the keys of maps")
        one = values if kind.name == "list" else keys
        kinds = (one,) if len(expr.variables) == 1 else (keys, values)
        inner = {**scope, **dict(zip(expr.variables, kinds, strict=True))}
        if self._loops == MAX_LOOPS:
            return self._failed(expr.position, f"loops nest deeper than {MAX_LOOPS} levels", "split the condition up")
        self._loops += 1
        step = self._boolean(expr.step, inner, "what is asked of each element")
        result, kind_of_result = (None, BOOL) if expr.result is None else self.visit(expr.result, inner)
        self._loops -= 1
        made = Comprehension(expr.position, expr.fold, expr.variables, source, step, result)
        if expr.fold is Fold.LIST:
            return made, list_of(kind_of_result)
        return made, map_of(keys, kind_of_result) if expr.fold is Fold.MAP else BOOL


def _qualified(expr: Expr) -> list[str] | None:
    """Return the names of `a.b.c`, or None when it is no chain of names."""
    names: list[str] = []
    while isinstance(expr, Select) and not expr.test:
        names.append(expr.field)
        expr = expr.operand
    return [expr.name, *reversed(names)] if isinstance(expr, Ident) else None


def _first(expr: Expr) -> Expr:
    """Return where a chain of names begins."""
    while isinstance(expr, Select):
        expr = expr.operand
    return expr


def _operator(name: str) -> str:
    return "[]" if name == INDEX else name.strip("_@")


def _list(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:12])
    return (shown + (", ..." if len(names) > 12 else "")) or "none"


def _refusal(function: Function, kinds: tuple[Type, ...]) -> tuple[str, str]:
    """Return why a function doesn't take these types, and what to do."""
    given = " and ".join(str(kind) for kind in kinds)
    if len(set(kinds)) == 2 and {INT, UINT, DOUBLE}.issuperset(kinds):
        advice = f"make both the same, as in `{kinds[0]}(...)`"
    elif function.name in {EQUAL, "_!=_"}:
        advice = "compare values of one type"
    else:
        forms = [" and ".join(str(kind) for kind in form.parameters) for form in function.forms[:6]]
        advice = f"it takes {', or '.join(forms)}" + (", ..." if len(function.forms) > 6 else "")
    return f"`{_operator(function.name)}` doesn't take {given}", advice
