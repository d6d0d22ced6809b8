from __future__ import annotations

import pytest

from checkstream.core.policy import fields
from checkstream.core.policy.fields import Fields
from checkstream.core.policy.nodes import Broken, MappingNode, Node, Place, ScalarNode, Source, open_source, read_nodes


def value_of(written: str) -> tuple[Node, Source]:
    source = open_source("f.yaml", f"k: {written}\n")
    root = read_nodes(source)
    assert isinstance(root, MappingNode)
    return root.entries[0][1], source


@pytest.mark.parametrize("written", ["abc", "'yes'", '"1"', "1.2.0", "1e5", "y", "0o17", "|\n  x", "a b"])
def test_texts(written: str) -> None:
    node, source = value_of(written)
    assert fields.text(source, node, "it") is not None
    assert not source.faults


@pytest.mark.parametrize(
    "written",
    ["yes", "No", "TRUE", "off", "1", "-1.5", "0x1f", "1:30", "1_0", "2024-01-01", ".inf", "~", "null", "", "=", "''"],
)
def test_not_texts(written: str) -> None:
    node, source = value_of(written)
    assert fields.text(source, node, "it") is None
    assert len(source.faults) == 1


def test_text_bounds() -> None:
    node, source = value_of("abcd")
    assert fields.text(source, node, "it", max_chars=3) is None
    assert source.faults[0].reason == "it is longer than 3 characters"
    node, source = value_of("''")
    placed = fields.text(source, node, "it", empty=True)
    assert placed is not None
    assert placed.value == ""


@pytest.mark.parametrize(("written", "value"), [("0", 0), ("7", 7), ("-3", -3), ("10", 10)])
def test_integers(written: str, value: int) -> None:
    node, source = value_of(written)
    placed = fields.integer(source, node, "it", -10, 10)
    assert placed is not None
    assert placed.value == value


@pytest.mark.parametrize(
    "written",
    ["11", "-11", "010", "0x1", "1_0", "1:30", "1.0", "+1", "'1'", "one", "true", "[1]", "~", "9" * 5_000, "0b1", "٣"],
)
def test_not_integers(written: str) -> None:
    node, source = value_of(written)
    assert fields.integer(source, node, "it", -10, 10) is None
    assert len(source.faults) == 1


@pytest.mark.parametrize(("written", "value"), [("0", 0.0), ("1", 1.0), ("0.75", 0.75), ("1.0", 1.0), ("0.010", 0.01)])
def test_numbers(written: str, value: float) -> None:
    node, source = value_of(written)
    placed = fields.number(source, node, "it", 0, 1)
    assert placed is not None
    assert placed.value == value


@pytest.mark.parametrize(
    "written", ["1.1", "-0.1", ".5", "1.", "00.5", ".nan", ".inf", "1_0.0", "1.5e+3", "'0.5'", "x", "{a: 1}", "1:30.5"]
)
def test_not_numbers(written: str) -> None:
    node, source = value_of(written)
    assert fields.number(source, node, "it", 0, 1) is None
    assert len(source.faults) == 1


def test_what_is_broken_is_not_reported_again() -> None:
    source = Source("f.yaml", "x")
    node = Broken(Place(1, 1))
    assert fields.text(source, node, "it") is None
    assert fields.integer(source, node, "it", 0, 1) is None
    assert fields.number(source, node, "it", 0, 1) is None
    assert fields.choice(source, node, "it", ("a",)) is None
    assert not Fields(source, node, "it", required=("a",)).readable
    assert not source.faults


def test_choice() -> None:
    node, source = value_of("shadwo")
    assert fields.choice(source, node, "it", ("enforce", "shadow")) is None
    assert source.faults[0].advice == "did you mean `shadow`?"
    node, source = value_of("[shadow]")
    assert fields.choice(source, node, "it", ("enforce", "shadow")) is None
    assert source.faults[0].reason == "it must be a text, not a list"


def test_fields_report_unknown_missing_and_wrong() -> None:
    source = open_source("f.yaml", "nam: x\nitems: y\n")
    root = read_nodes(source)
    assert root is not None
    read = Fields(source, root, "a thing", required=("name",), optional=("items", "other"))
    assert read.text("name") is None
    assert read.items("items", lambda node: node, max_items=3) == ()
    assert read.items("other", lambda node: node, max_items=3) == ()
    assert [fault.reason for fault in source.faults] == [
        "a thing has no key `nam`",
        "a thing needs the key `name`",
        "`items` must be a list, not a text",
    ]


def test_lists_are_bounded() -> None:
    source = open_source("f.yaml", "items: [a, b, c]\n")
    root = read_nodes(source)
    assert root is not None
    read = Fields(source, root, "a thing", optional=("items",))
    assert read.items("items", lambda node: node, max_items=2) == ()
    assert source.faults[0].reason == "`items` has more than 2 items"


def test_advice_is_quick_for_a_hostile_word() -> None:
    assert fields.did_you_mean("x" * 100_000, ["name"], "otherwise") == "otherwise"


def test_scalar_types_of_quoted_scalars_are_texts() -> None:
    assert fields.scalar_type(ScalarNode("yes", plain=False, at=Place(1, 1))) == "str"
    assert fields.scalar_type(ScalarNode("yes", plain=True, at=Place(1, 1))) == "bool"


def pairs_of(written: str) -> tuple[tuple[tuple[str, str], ...], Source]:
    node, source = value_of(written)

    def pair(key: ScalarNode, value: Node) -> tuple[str, str] | None:
        placed = fields.text(source, value, "a value")
        return None if placed is None else (key.value, placed.value)

    return fields.mapping(source, node, "it", pair, max_items=2), source


def test_a_mapping_keeps_the_order_of_the_file() -> None:
    assert pairs_of("{b: x, a: y}")[0] == (("b", "x"), ("a", "y"))


@pytest.mark.parametrize("written", ["[]", "word", "{}", "{a: b, c: d, e: f}", "{a: [b]}"])
def test_what_is_no_such_mapping_is_said_once(written: str) -> None:
    found, source = pairs_of(written)
    assert found == ()
    assert len(source.faults) == 1


def test_a_list_may_be_empty_where_that_means_something() -> None:
    source = open_source("f.yaml", "k: []\n")
    root = read_nodes(source)
    assert root is not None
    read = Fields(source, root, "it", optional=("k",))
    assert read.items("k", lambda node: node, max_items=1, empty=True) == ()
    assert not source.faults
    assert read.given == {"k"}


@pytest.mark.parametrize("written", ["'a b'", "é", "a,b", "'{x}'", '"a\\u200b"', "x" * 101])
def test_words_are_of_plain_characters(written: str) -> None:
    node, source = value_of(written)
    assert fields.word(source, node, "it") is None
    assert len(source.faults) == 1


def test_texts_that_are_written_into_answers_have_no_control_characters() -> None:
    node, source = value_of('"a\\nb\\tc"')
    assert fields.literal(source, node, "it") is not None
    node, source = value_of('"a\\e[2Jb"')
    assert fields.literal(source, node, "it") is None
    assert [fault.reason for fault in source.faults] == ["it has the control character `U+001B`"]
