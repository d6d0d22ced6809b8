from __future__ import annotations

import pytest

from checkstream.core.cel.values import Value, from_json
from checkstream.core.policy.definite import missing_guard

KNOWN: dict[str, Value] = {
    "context": from_json({"user": {"age": 3, "none": None}, "list": [1]}),
    "request": {"model": "m"},
}


@pytest.mark.parametrize(
    ("condition", "guard"),
    [
        ("context.user.age > 3", ""),
        ("context.user.segment == 'x'", "has(context.user) && has(context.user.segment)"),
        ("context.a.b.c", "has(context.a) && has(context.a.b) && has(context.a.b.c)"),
        ("has(context.a.b) && context.a.b > 3", "has(context.a) && has(context.a.b)"),
        ("has(context.a)", ""),
        ("!(context.x in ['a']) || context.y + 1 == 2", "has(context.x) && has(context.y)"),
        ("context.x == context.x", "has(context.x)"),
        ("context.items.exists(i, i.price > context.limit)", "has(context.items) && has(context.limit)"),
        ("{'k': context.x}['k'] == [context.y][0]", "has(context.x) && has(context.y)"),
        ("context['a'].b == 1", ""),
        ("context.list.x == 1", ""),
        ("context.user.none.x == 1", ""),
        ("request.temperature > 0.5", "has(request.temperature)"),
        ("request.model == 'm' && scores.toxicity > 0.5 && stream.tokens > 3", ""),
        ("context.", ""),
        ("", ""),
    ],
)
def test_the_guard_asks_for_all_that_is_not_there(condition: str, guard: str) -> None:
    assert missing_guard(condition, KNOWN) == guard
