"""What an expression may cost."""

from __future__ import annotations

import pytest

from checkstream.core.cel import types
from checkstream.core.cel.check import check
from checkstream.core.cel.cost import MOST, worst_cost
from checkstream.core.cel.syntax import parse

VARIABLES = {"names": types.list_of(types.STRING), "s": types.STRING, "i": types.INT, "any": types.DYN}


def cost(text: str, **sizes: int) -> int:
    checked = check(parse(text), VARIABLES)
    assert not checked.faults
    return worst_cost(checked, {"i": 1, **sizes})


def test_a_simple_condition_costs_a_few_steps() -> None:
    assert cost("i == 1 && true", i=1) < 15


def test_texts_cost_by_their_length() -> None:
    assert cost("s.contains('a')", s=10_000) > cost("s.contains('a')", s=100) + 900


def test_loops_multiply() -> None:
    one = cost("names.all(x, true)", names=100)
    two = cost("names.all(x, names.all(y, true))", names=100)
    assert 400 <= one <= 1000
    assert 40_000 <= two <= 200_000
    assert cost("[1, 2, 3].all(x, true)") < 30


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        ("s in ['a', 'b']", "s in names"),
        ("[1, 2].map(x, [x, x]).size()", "[1, 2].map(x, [x, x]).map(x, [x, x]) == [[[1]]]"),
        ("i == 1 ? s.contains('a') : false", "s.contains('a') && s.contains('b')"),
        ("any.a", "any.a == any.b"),
        ("string(i)", "string(s)"),
        ("{'a': i}.a + 1", "{'a': s}.a + s"),
    ],
)
def test_what_does_more_costs_more(cheap: str, dear: str) -> None:
    assert cost(cheap, s=1000, names=1000, any=1000) < cost(dear, s=1000, names=1000, any=1000)


def test_what_doubles_in_each_loop_is_seen() -> None:
    assert cost("['a']" + ".map(x, x + x)" * 30) > 10**8
    nested = "[1]" + ".map(x, [x, x])" * 45
    assert cost(f"{nested} == {nested}") > 10**12
    assert cost("names" + "".join(f".map(x{place}, names" for place in range(8)) + ")" * 8, names=1000) == MOST


def test_variables_that_have_no_size_have_the_default() -> None:
    assert worst_cost(check(parse("names.all(x, true)"), VARIABLES), {}, default=10) < 100
