from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.policy.templates import (
    MAX_SOURCES_CHARS,
    MAX_VALUE_CHARS,
    NAMES,
    SOURCES,
    Template,
    Variable,
    clean,
    parse,
    render,
)
from checkstream.errors import TemplateError


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("", ()),
        ("plain", ("plain",)),
        ("{model}", (Variable(("model",)),)),
        ("by {model}!", ("by ", Variable(("model",)), "!")),
        ("{context.user.phone|our hotline}", (Variable(("context", "user", "phone"), "our hotline"),)),
        ("{context.a-b.Ünit_2}", (Variable(("context", "a-b", "Ünit_2")),)),
        ("{model|}", (Variable(("model",), ""),)),
        ("{{}}", ("{}",)),
        ('{{"a": "{route}"}}', ('{"a": "', Variable(("route",)), '"}')),
        ("{{{model}}}", ("{", Variable(("model",)), "}")),
        ("{model}{route}", (Variable(("model",)), Variable(("route",)))),
    ],
)
def test_texts_are_read_into_parts(text: str, template: Template) -> None:
    assert parse(text) == template


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a { b", 2),
        ("a } b", 2),
        ("{model", 0),
        ("{}", 1),
        ("x {modell}", 3),
        ("{sources}", 1),
        ("{context}", 1),
        ("{context.}", 1),
        ("{context..a}", 1),
        ("{context.a b}", 1),
        ("{context." + ".".join("abcdefgh") + "}", 1),
        ("{ model }", 1),
        ("{model|{route}}", 7),
        ("{model.name}", 1),
        ("{__class__}", 1),
        ("{0}", 1),
        ("{model!r}", 1),
    ],
)
def test_what_can_not_be_read_is_refused_at_its_character(text: str, position: int) -> None:
    with pytest.raises(TemplateError) as raised:
        parse(text)
    assert raised.value.position == position
    assert raised.value.advice


def test_a_near_name_is_proposed() -> None:
    with pytest.raises(TemplateError) as raised:
        parse("{modle}")
    assert raised.value.advice == "did you mean `model`?"


def test_sources_are_a_variable_where_they_are_named() -> None:
    assert parse("{sources}", (*NAMES, SOURCES)) == (Variable(("sources",)),)


def test_values_are_put_in_and_what_is_missing_is_named() -> None:
    values: dict[tuple[str, ...], object] = {("model",): "m-1", ("context", "n"): 3, ("context", "on"): True}
    template = parse("{model} {context.n} {context.on} {context.x|none} {context.y}.")
    assert render(template, values.get) == ("m-1 3 true none .", ("context.y",))


@pytest.mark.parametrize("value", [None, {}, [], {"a": 1}, b"x", object()])
def test_what_is_no_plain_value_is_as_if_it_were_not_there(value: object) -> None:
    assert render(parse("{context.a|d}"), lambda _: value) == ("d", ())
    assert render(parse("{context.a}"), lambda _: value) == ("", ("context.a",))


def test_a_value_can_not_bring_variables_or_braces_of_its_own() -> None:
    assert render(parse("{context.a}"), lambda _: "{model} }} {{") == ("{model} }} {{", ())


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a\nb\r\tc\x1b[2Jd", "abc[2Jd"),
        ("abc\u202edef\u2066", "abcdef"),
        ("a\u2028b\u2029c\x85d", "abcd"),
        ("a\u200bb\ufeffc", "abc"),
        ("x\ud800y", "xy"),
        ("Grüße 你好", "Grüße 你好"),
        (1.5, "1.5"),
        (-7, "-7"),
        (False, "false"),
    ],
)
def test_values_are_cleaned_of_what_is_no_text(value: object, written: str) -> None:
    assert clean(value) == written


def test_values_are_cut_short() -> None:
    assert clean("x" * 1_000_000) == "x" * MAX_VALUE_CHARS
    assert clean("\x00" * 1_000_000 + "x") == ""
    assert render(parse("{sources}", (SOURCES,)), lambda _: "x" * 20_000)[0] == "x" * MAX_SOURCES_CHARS


PIECES = ["{", "}", "{{", "}}", "|", ".", " ", "x", "context", "model", "{model}", "{context.a|b}"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_read_or_refused_at_a_place_within_it(text: str) -> None:
    position = 0
    try:
        template = parse(text)
    except TemplateError as error:
        position, template = error.position, ()
    assert 0 <= position <= len(text)
    assert all(part for part in template if isinstance(part, str))


@given(st.text(max_size=30))
def test_plain_text_is_written_as_it_is(text: str) -> None:
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert render(parse(escaped), lambda _: None) == (text, ())
