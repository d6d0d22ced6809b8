"""Running code."""

from __future__ import annotations

import pytest

from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler
from checkstream.core.cel.machine import run
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.types import DYN
from checkstream.core.cel.values import EvalError, Value
from tests.cel_cases import come_to

TRUTHS: dict[str, Value] = {"yes": True, "no": False, "bad": EvalError("bad"), "odd": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no && bad", False),
        ("bad && no", False),
        ("odd && no", False),
        ("yes && yes", True),
        ("bad && yes", EvalError("bad")),
        ("yes && bad", EvalError("bad")),
        ("yes && odd", EvalError("no such overload: _&&_ of bool, int")),
        ("yes || bad", True),
        ("bad || yes", True),
        ("odd || yes", True),
        ("no || no", False),
        ("bad || no", EvalError("bad")),
        ("odd || odd", EvalError("no such overload: _||_ of int, int")),
        ("yes ? 1 : bad", 1),
        ("no ? bad : 2", 2),
        ("bad ? 1 : 2", EvalError("bad")),
        ("odd ? 1 : 2", EvalError("no such overload: _?_:_ of int")),
        ("[no, bad].all(x, x)", EvalError("bad")),
        ("['a', 'b'].all(x, x == 'a' || bad)", EvalError("bad")),
        ("['b', 'a'].all(x, x == 'a' && yes || bad && no)", False),
        ("[1, 2].exists(x, x == 2 || bad)", True),
        ("[1, 2].exists(x, bad)", EvalError("bad")),
        ("[1, 2].exists_one(x, x == 2)", True),
        ("[1, 2].exists_one(x, bad)", EvalError("bad")),
        ("[1, 2, 3].filter(x, x != 2)", (1, 3)),
        ("[1, 2, 3].filter(x, odd)", EvalError("no such overload: a loop of int, null_type")),
        ("[1, 2, 3].map(x, x > 1, x * 10)", (20, 30)),
        ("[1, 2].map(x, bad)", EvalError("bad")),
        ("{'a': 1, true: 2}.map(k, k)", ("a", True)),
        ("{'a': 1, true: 2}.transformMap(k, v, v > 1, k)", {(True,): True}),
        ("['x', 'y'].transformMap(i, v, v)", {0: "x", 1: "y"}),
        ("['x', 'y'].transformList(i, v, i == 1, v)", ("y",)),
        ("odd.map(x, x)", EvalError("no such overload: a loop of int")),
        ("bad.map(x, x)", EvalError("bad")),
        ("[[1, 2], [3]].map(x, x.map(y, [x, y].size() + y))", ((3, 4), (5,))),
        ("[1].map(x, [x + 1].map(x, x * 10) + [x])", ((20, 1),)),
        ("[bad]", EvalError("bad")),
        ("{'a': bad}", EvalError("bad")),
        ("has(bad.a)", EvalError("bad")),
        ("has(odd.a)", EvalError("no such overload: `has` of int")),
        ("absent.a.b", EvalError("absent")),
    ],
)
def test_an_error_counts_only_where_it_matters(text: str, value: object) -> None:
    assert come_to(text, TRUTHS) == value


def test_loops_share_one_budget() -> None:
    assembler = Assembler()
    start = assembler.add(check(parse("r.all(x, r.all(y, true))"), {"r": DYN}).expr)
    code = assembler.build()

    def outcome(budget: int) -> object:
        return run(code.instructions, code.constants, start, lambda _: tuple(range(10)), budget=budget)

    assert outcome(110) is True
    assert outcome(109) == EvalError("the loops visit too many elements")


@pytest.mark.parametrize("text", ["r.map(x, x).size()", "r.filter(x, x == x).size()", "r.map(x, [x, x] == [x]).size()"])
def test_what_a_loop_keeps_and_works_on_counts_by_its_size(text: str) -> None:
    assembler = Assembler()
    start = assembler.add(check(parse(text), {"r": DYN}).expr)
    code = assembler.build()

    def outcome(length: int, budget: int) -> object:
        return run(code.instructions, code.constants, start, lambda _: ("a" * length,) * 10, budget=budget)

    assert outcome(63, 10) == 10
    assert outcome(64, 10) == (10 if "[x]" in text else EvalError("the loops visit too many elements"))
    assert outcome(64, 40) == 10


def test_a_long_body_counts_for_each_visit() -> None:
    assembler = Assembler()
    start = assembler.add(check(parse("r.all(x, " + " && ".join(["x == 1"] * 40) + ")"), {"r": DYN}).expr)
    code = assembler.build()

    def outcome(budget: int) -> object:
        return run(code.instructions, code.constants, start, lambda _: (1,) * 10, budget=budget)

    assert outcome(60) is True
    assert isinstance(outcome(20), EvalError)
