from __future__ import annotations

import pytest

from checkstream.core.policy.groups import (
    AllOf,
    AnyOf,
    Group,
    Leaf,
    Not,
    has_not,
    holds,
    joined,
    leaves_outside_not,
)

A, B, C = Leaf(0), Leaf(1), Leaf(2)


@pytest.mark.parametrize(
    ("kind", "items", "group"),
    [
        ("any", [], None),
        ("all", [], None),
        ("any", [A], A),
        ("all", [A], A),
        ("any", [A, B], AnyOf((A, B))),
        ("any", [A, AnyOf((B, C))], AnyOf((A, B, C))),
        ("all", [A, AnyOf((B, C))], AllOf((A, AnyOf((B, C))))),
        ("all", [AllOf((A, B)), C], AllOf((A, B, C))),
        ("all", [Not(AllOf((A, B))), C], AllOf((Not(AllOf((A, B))), C))),
    ],
)
def test_groups_are_as_flat_as_they_go(kind: str, items: list[Group], group: Group | None) -> None:
    assert joined(kind, items) == group


@pytest.mark.parametrize(
    ("group", "found", "held"),
    [
        (A, {0}, True),
        (A, {1}, False),
        (AnyOf((A, B)), {1}, True),
        (AllOf((A, B)), {1}, False),
        (AllOf((A, B)), {0, 1}, True),
        (AllOf((A, Not(B))), {0}, True),
        (AllOf((A, Not(B))), {0, 1}, False),
        (Not(Not(A)), {0}, True),
        (AllOf((A, Not(AnyOf((B, C))))), {0, 2}, False),
    ],
)
def test_a_group_holds_by_what_is_found(group: Group, found: set[int], held: bool) -> None:
    assert holds(group, found) == held


def test_triggers_within_not_are_not_asked_for_themselves() -> None:
    group = AllOf((AnyOf((A, Not(B))), Not(Not(C))))
    assert leaves_outside_not(group) == {0}
    assert leaves_outside_not(None) == frozenset()
    assert has_not(group)
    assert not has_not(AllOf((A, AnyOf((B, C)))))
    assert not has_not(None)
