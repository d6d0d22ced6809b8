"""Law: the machine and a slow, obvious reading of the tree come to the same, whatever the expression and its values."""

from __future__ import annotations

from collections import UserList
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.cel import types
from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler, Instruction
from checkstream.core.cel.cost import CHARS_A_STEP, Extent, worst_cost
from checkstream.core.cel.machine import run
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import Duration, EvalError, Timestamp, TypeValue, Uint, Value, from_json
from checkstream.core.cel.verify import verify
from tests.cel_cases import OTHERS, WHOLE, bindings, cases, expected, left_out, same, variables
from tests.cel_oracle import evaluate
from tests.chance import examples

VARIABLES = {
    "i": types.INT,
    "u": types.UINT,
    "d": types.DOUBLE,
    "s": types.STRING,
    "b": types.BOOL,
    "t": types.TIMESTAMP,
    "span": types.DURATION,
    "names": types.list_of(types.STRING),
    "counts": types.map_of(types.STRING, types.INT),
    "request.model": types.STRING,
    "any": types.DYN,
}
INTS = st.sampled_from((0, 1, -1, 2, 3, 7, 2**53 + 1, 2**63 - 1, -(2**63))) | st.integers(-(2**63), 2**63 - 1)
UINTS = (st.sampled_from((0, 1, 2, 2**63, 2**64 - 1)) | st.integers(0, 2**64 - 1)).map(Uint)
DOUBLES = (
    st.sampled_from((0.0, -0.0, 1.0, 0.5, -2.5, 2.0**53, 2.0**63, 1e300, float("nan"), float("inf"))) | st.floats()
)
TEXTS = st.sampled_from(("", "a", "ab", "é", "🐱b", "true", "12", "-3", "1.5e3", "2024-02-29T12:00:00Z", "1h30m")) | (
    st.text("ab1🐱", max_size=6)
)
MOMENTS = st.integers(-62135596800 * 10**9, 253402300800 * 10**9 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTS | DOUBLES | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", "b", "ab")), inner, max_size=3),
    max_leaves=8,
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": INTS,
    "u": UINTS,
    "d": DOUBLES,
    "s": TEXTS,
    "b": st.booleans(),
    "t": MOMENTS.map(Timestamp),
    "span": st.integers(-(2**63), 2**63 - 1).map(Duration),
    "names": st.lists(TEXTS, max_size=4).map(tuple),
    "counts": st.dictionaries(st.sampled_from(("a", "b", "é")), INTS, max_size=3),
    "request.model": TEXTS,
    "any": JSON.map(from_json),
}
BINDINGS = st.fixed_dictionaries(
    {name: strategy | st.just(EvalError("absent")) if name == "any" else strategy for name, strategy in VALUES.items()}
)
KINDS = ("int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration", "list", "map", "any")
WRITTEN: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "-1", "3", "0x1F", "9223372036854775807", "-9223372036854775808", "i", "names.size()"),
    "uint": ("0u", "1u", "7u", "18446744073709551615u", "u"),
    "double": ("0.0", "-0.0", "1.0", ".5", "1e300", "d"),
    "string": (
        "''",
        "'a'",
        '"b"',
        "'é'",
        "r'\\d'",
        "'''🐱'''",
        "s",
        "request.model",
        "'2024-01-31T00:00:00.5-02:30'",
        "'-1.5h'",
    ),
    "bytes": ("b''", "b'a'", "b'\\xff'", "b'é'"),
    "bool": ("true", "false", "b", "has(any.a)", "has(any.b.a)"),
    "timestamp": ("t", "timestamp('2024-02-29T23:59:59.999999999Z')", "timestamp(0)"),
    "duration": ("span", "duration('1h30m')", "duration('-1ns')"),
    "list": ("[]", "names", "[1, 2u, 3.0]", "['a', any]"),
    "map": ("{}", "counts", "{'a': 1, 2: 'b', true: null}", "{'b': any, 1u: 2}"),
    "any": ("null", "any", "any.a", "x", "y", "int", "unknown", "any['a']", "type(any)"),
}
# What each kind can be made of: `{kind}` is filled in by an expression of that kind.
MADE: dict[str, tuple[str, ...]] = {
    "int": (
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-{int}",
        "size({list})",
        "{string}.size()",
        "int({any})",
        "int({double})",
        "int({string})",
        "{timestamp}.getFullYear()",
        "{timestamp}.getDayOfYear('+11:00')",
        "{timestamp}.getHours({string})",
        "{timestamp}.getDayOfWeek()",
        "{duration}.getMinutes()",
        "{duration}.getMilliseconds()",
        "counts[{string}]",
        "{bool} ? {int} : {int}",
    ),
    "uint": (
        "{uint} + {uint}",
        "{uint} - {uint}",
        "{uint} * {uint}",
        "{uint} / {uint}",
        "{uint} % {uint}",
        "uint({any})",
    ),
    "double": ("{double} + {double}", "{double} * {double}", "{double} / {double}", "-{double}", "double({any})"),
    "string": ("{string} + {string}", "string({any})", "string({timestamp})", "string({duration})", "string({bytes})"),
    "bytes": ("{bytes} + {bytes}", "bytes({string})"),
    "bool": (
        "{bool} && {bool}",
        "{bool} || {bool}",
        "{bool} && {any}",
        "{any} || {bool}",
        "!{bool}",
        "{int} < {double}",
        "{uint} >= {int}",
        "{any} <= {any}",
        "{any} == {any}",
        "{list} != {list}",
        "{map} == {map}",
        "{double} == {double}",
        "{timestamp} > {timestamp}",
        "{any} in {list}",
        "{any} in {map}",
        "{string}.contains({string})",
        "{string}.startsWith({string})",
        "{string}.endsWith({string})",
        "{string}.matches('^a+b?$')",
        "{list}.all(x, {bool})",
        "{list}.exists(x, x == {any})",
        "{map}.exists(x, y, {any} == y)",
        "{list}.exists_one(x, x == {any})",
        "{any}.all(x, {any})",
        "{map}.existsOne(y, y in {list})",
        "bool({any})",
        "{bool} ? {bool} : {any}",
    ),
    "timestamp": ("{timestamp} + {duration}", "{timestamp} - {duration}", "timestamp({any})", "timestamp({string})"),
    "duration": (
        "{timestamp} - {timestamp}",
        "{duration} + {duration}",
        "duration({string})",
        "{duration} - {duration}",
    ),
    "list": (
        "[{any}, {any}]",
        "{list} + {list}",
        "{list}.map(x, {any})",
        "{list}.filter(x, {bool})",
        "{map}.map(y, {bool}, y)",
        "{map}.transformList(x, y, {any})",
        "{list}.transformList(x, y, {bool}, y)",
    ),
    "map": ("{{{string}: {any}, {int}: {any}}}", "{{{any}: 1}}", "{map}.transformMap(x, y, {any})"),
    "any": (
        "dyn({any})",
        "{list}[{any}]",
        "{map}[{any}]",
        "{any}.a",
        "type({any})",
        "{bool} ? {any} : {any}",
        "{any} + {any}",
        "{any} - {any}",
    ),
}


@st.composite
def expressions(draw: st.DrawFn, kind: str = "", depth: int = 4) -> str:
    """The text of an expression: mostly well typed, now and then not."""
    if kind == "any" or not kind or draw(st.integers(0, 19)) == 0:
        kind = draw(st.sampled_from(KINDS))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(WRITTEN[kind]))
    parts = {name: _Holes(draw, name, depth - 1) for name in KINDS}
    return f"({draw(st.sampled_from(MADE[kind])).format(**parts)})"


class _Holes:
    """Draws another expression each time that it is put into a text."""

    def __init__(self, draw: st.DrawFn, kind: str, depth: int) -> None:
        self._draw, self._kind, self._depth = draw, kind, depth

    def __format__(self, _spec: str) -> str:
        return str(self._draw(expressions(self._kind, self._depth)))


class Counted(UserList[Instruction]):
    """Instructions that count how often one is fetched."""

    steps = 0

    def __getitem__(self, place: Any) -> Any:
        self.steps += 1
        return super().__getitem__(place)


def extent(value: Value) -> int:
    """Characters and elements of a value, all levels together."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, tuple):
        return sum(1 + extent(item) for item in value)
    if isinstance(value, dict):
        return sum(1 + extent(key if type(key) is str else None) + extent(item) for key, item in value.items())
    return 1


def tight(value: Value) -> Extent:
    """The extent of a value, as small as it can be said."""
    if isinstance(value, str | bytes):
        return Extent(len(value), 1 + len(value) // CHARS_A_STEP)
    if isinstance(value, tuple | dict):
        inner = [tight(item) for item in (value if isinstance(value, tuple) else value.values())]
        keys = [tight(key).work for key in value if isinstance(value, dict) and type(key) is str]
        longest = max([len(value), *(one.length for one in inner)])
        return Extent(longest, 1 + len(value) + sum(keys) + sum(one.work for one in inner))
    return Extent()


@settings(max_examples=examples(400))
@given(expressions(), BINDINGS)
def test_the_machine_agrees_with_the_oracle_and_keeps_within_its_cost(text: str, bound: Mapping[str, Value]) -> None:
    checked = check(parse(text, max_chars=100_000), VARIABLES)
    assembler = Assembler()
    start = assembler.add(checked.expr)
    code = assembler.build()
    verify(code, [start])
    counted = Counted(code.instructions)
    got = run(counted, code.constants, start, lambda number: bound.get(code.variables[number], EvalError("unbound")))
    wanted = evaluate(checked.expr, bound)
    if isinstance(got, EvalError) or isinstance(wanted, EvalError):
        assert type(got) is type(wanted), (text, got, wanted)
    else:
        assert same(got, wanted), (text, got, wanted)
    sizes = {name: max(1, extent(value)) for name, value in bound.items()}
    assert counted.steps <= worst_cost(checked, sizes, default=1), text
    assert counted.steps <= worst_cost(checked, {name: tight(value) for name, value in bound.items()}, default=1), text
    if not checked.faults and not isinstance(got, EvalError):
        assert fits(got, checked.type), (text, got, checked.type)


def fits(value: Value, kind: types.Type) -> bool:
    """Return whether a value is of a type."""
    if kind == types.DYN:
        return True
    if isinstance(value, tuple):
        return kind.name == "list" and all(fits(item, kind.parameters[0]) for item in value)
    if isinstance(value, dict):
        keys = [key[0] if type(key) is tuple else key for key in value]
        inner = kind.parameters
        return (
            kind.name == "map"
            and all(fits(key, inner[0]) for key in keys)
            and all(fits(item, inner[1]) for item in value.values())
        )
    return evaluate_type(value) == kind.name


def evaluate_type(value: Value) -> str:
    kinds: dict[type[Any], str] = {bool: "bool", Uint: "uint", float: "double", str: "string", type(None): "null_type"}
    kinds |= {int: "int", bytes: "bytes", TypeValue: "type"}
    kinds |= {Timestamp: types.TIMESTAMP.name, Duration: types.DURATION.name}
    return kinds[type(value)]


@pytest.mark.parametrize("section", [*WHOLE, *OTHERS])
def test_the_oracle_comes_to_what_the_public_cases_expect(section: str) -> None:
    for case in cases(section):
        if left_out(case) or case.written.get("check_only"):
            continue
        checked = check(
            parse(case.expr, max_chars=100_000), variables(case), container=case.written.get("container", "")
        )
        got = evaluate(checked.expr, bindings(case))
        if "eval_error" in case.written:
            assert isinstance(got, EvalError), (case, got)
        else:
            assert any(same(got, value) for value in expected(case)), (case, got)
