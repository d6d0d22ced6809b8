"""Lists of numbers are read as what they say as one text."""

from __future__ import annotations

import json

import pytest

from checkstream.core.steps import done
from checkstream.core.wire.json_text.lists import spelled_by, telling
from tests.guarded import CHAT, DONE, ends, event, plan, request
from tests.playbook import play

CARDS = "  - {name: m, id: PII-1, stage: [ingress, midstream], entities: [CREDIT_CARD], actions: [{type: redact}]}\n"
CARD = "4111111111111111"
LISTS = [[*map(int, CARD)], [4111, 1111, 1111, 1111], [41111111, 11111111], [*CARD.encode()]]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([4, 0, 0, 7], "4007"),
        ([4111, 1111, 1111, 1111], "4111 1111 1111 1111"),
        ([104, 105, 33, 33], "hi!!"),
        ([4111, 1111], None),
        ([791, 4062, 14198, 220, 17], None),
        ([4111, -1111, 1111, 1111], None),
        ([2019, 2020, 2021, 2022, 2023, 2024], None),
        ([1, 2], None),
        ([True, False, True, True], "1011"),
        ([0.5, 4111], None),
        ("4007", None),
    ],
)
def test_figures_groups_and_bytes_are_one_text(value: object, said: str | None) -> None:
    assert done(telling(value)) == said


def test_bytes_of_a_token_are_never_figures() -> None:
    assert spelled_by([9, 9, 9, 9]) == "\t\t\t\t"


@pytest.mark.parametrize("value", LISTS)
def test_g34_a_number_in_a_list_of_its_figures_never_leaves(value: list[int]) -> None:
    places = [event((0, {"content": "a", "x": value}, None)), event((0, {"content": "a"}, None), usage={"y": value})]
    for said in places:
        out = play(CHAT, plan(CARDS), request(), [said, ends(), DONE])
        assert json.dumps(value)[1:-1] not in out.joined.decode()
        assert out.joined.endswith(DONE)


@pytest.mark.parametrize("value", LISTS)
def test_g31_a_number_in_a_list_of_its_figures_is_not_forwarded(value: list[int]) -> None:
    out = play(CHAT, plan(CARDS), request(xyz={"a": value}), [ends(), DONE])
    assert out.forwarded is not None
    assert json.dumps(value)[1:-1] not in out.forwarded.decode()
