"""The table of functions."""

from __future__ import annotations

from checkstream.core.cel.functions import FUNCTIONS, NUMBER_OF
from tests.cel_cases import come_to


def test_a_key_names_one_function() -> None:
    assert len(NUMBER_OF) == len(FUNCTIONS)
    assert all(FUNCTIONS[number].key == key for key, number in NUMBER_OF.items())


def test_all_forms_of_a_function_take_as_many_operands() -> None:
    for function in FUNCTIONS:
        assert {len(form.parameters) for form in function.forms} == {function.arity}
        assert function.arity in {1, 2}


def test_texts_are_searched() -> None:
    assert (
        come_to("s.contains('b') && s.startsWith('a') && s.endsWith('c') && s.matches('^a.c$')", {"s": "abc"}) is True
    )
    assert come_to("s.contains('x') || s.startsWith('b') || s.endsWith('b') || matches(s, 'x')", {"s": "abc"}) is False


def test_size_is_asked_either_way() -> None:
    assert come_to("size(s) == s.size() && size('é🐱') == 2 && b'é'.size() == 2", {"s": (1, 2)}) is True
