from __future__ import annotations

import pytest
import yaml

from checkstream.core.policy import nodes
from checkstream.core.policy.nodes import (
    Broken,
    MappingNode,
    Place,
    ScalarNode,
    SequenceNode,
    Source,
    open_source,
    read_nodes,
    shown,
)


def read(content: str | bytes) -> tuple[nodes.Node | None, Source]:
    source = open_source("f.yaml", content)
    return read_nodes(source), source


def reasons(content: str | bytes) -> list[str]:
    return [fault.reason for fault in read(content)[1].faults]


def test_tree_has_places_and_quotes() -> None:
    root, source = read("a: [x, 'y']\nb:\n  c: |\n    d\n")
    assert not source.faults
    assert isinstance(root, MappingNode)
    (a, items), (_, inner) = root.entries
    assert (a.value, a.at) == ("a", Place(1, 1))
    assert isinstance(items, SequenceNode)
    assert items.items == (ScalarNode("x", plain=True, at=Place(1, 5)), ScalarNode("y", plain=False, at=Place(1, 8)))
    assert isinstance(inner, MappingNode)
    value = inner.entries[0][1]
    assert isinstance(value, ScalarNode)
    assert (value.value, value.plain) == ("d\n", False)


def test_byte_order_mark_is_dropped() -> None:
    for content in ("\ufeffa: b", "\ufeffa: b".encode()):
        root, source = read(content)
        assert isinstance(root, MappingNode)
        assert not source.faults


def test_columns_count_characters_not_bytes() -> None:
    _, source = read("é: 1\n😀: [*x]\n")
    assert [(fault.line, fault.column) for fault in source.faults] == [(2, 5)]
    assert source.faults[0].render().splitlines()[2] == "      ^"


def test_alias_bomb_costs_nothing_and_is_refused() -> None:
    lines = ["a0: &a0 x"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    _, source = read("\n".join(lines))
    assert len(source.faults) == nodes.MAX_FAULTS + 1
    assert source.faults[-1].reason == f"more than {nodes.MAX_FAULTS} faults"


def test_recursive_alias_is_refused() -> None:
    root, source = read("a: &x [*x]")
    assert [fault.reason for fault in source.faults] == ["anchor `&x` is not allowed", "alias `*x` is not allowed"]
    assert isinstance(root, MappingNode)
    items = root.entries[0][1]
    assert isinstance(items, SequenceNode)
    assert isinstance(items.items[0], Broken)


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!!str", "!local", "!<tag:example.com,2000:x>", "!"]
)
def test_tags_are_refused(tag: str) -> None:
    assert any("is not allowed" in reason for reason in reasons(f"a: {tag} b")), tag


def test_keys_must_be_words() -> None:
    assert reasons("? [a, b]\n: c") == ["a key must be a word"]
    assert reasons("{{a: b}: c}") == ["a key must be a word"]


def test_an_alias_as_a_key_is_reported_once() -> None:
    assert reasons("*a : b") == ["alias `*a` is not allowed"]


def test_merge_key_in_quotes_is_an_ordinary_key() -> None:
    root, source = read("'<<': 1")
    assert isinstance(root, MappingNode)
    assert not source.faults


def test_deep_nesting_stops_early_in_any_style() -> None:
    for deep in ("[" * 50_000, "{a: " * 50_000, "- " * 5_000 + "x", "? " * 5_000 + "x"):
        assert reasons(deep) == [f"nested deeper than {nodes.MAX_DEPTH} levels"]


def test_too_many_values_and_too_long_a_file() -> None:
    assert reasons("[" + "a," * nodes.MAX_NODES + "]") == [f"the file has more than {nodes.MAX_NODES} values"]
    too_long = "a" * (nodes.MAX_FILE_CHARS + 1)
    assert reasons(too_long) == [f"the file is longer than {nodes.MAX_FILE_CHARS} characters"]


@pytest.mark.parametrize("char", ["\0", "\x07", "\x0b", "\x7f", "\x85", "\x9b", "\ufffe", "\ud800"])
def test_forbidden_characters(char: str) -> None:
    _, source = read(f"ab: c\nd: e{char}\n")
    assert [(fault.line, fault.column) for fault in source.faults] == [(2, 5)]
    assert source.faults[0].reason.startswith(f"the character `U+{ord(char):04X}`")


@pytest.mark.parametrize(
    ("content", "line", "column"), [(b"a\xff", 1, 2), (b"a: b\n\xc3\xa9: \xe2\x82", 2, 4), (b"\xff\xfea\0", 1, 1)]
)
def test_bytes_that_are_not_utf8(content: bytes, line: int, column: int) -> None:
    _, source = read(content)
    assert [(fault.line, fault.column) for fault in source.faults] == [(line, column)]
    assert "is not valid UTF-8" in source.faults[0].reason


def test_empty_files() -> None:
    for content in ("", "   \n", "# comment\n", "---\n", "--- \n...\n"):
        assert reasons(content) == ["the file is empty"], content


def test_syntax_errors_read_alike_with_and_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ["a: [1\nb: 2", "a:\n\tb: 1", "a: 'x", "a: b: c", "a: @x", "- a\nb: 1", "%YAML 3.0\n---\na: 1", "}"]
    with_libyaml = [[fault.render() for fault in read(content)[1].faults] for content in broken]
    monkeypatch.setattr(nodes, "_fast_loader", lambda: yaml.SafeLoader)
    without = [[fault.render() for fault in read(content)[1].faults] for content in broken]
    assert with_libyaml == without
    assert all(len(found) == 1 for found in without)


def test_trees_are_alike_with_and_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a: [x, 'y', \"z\"]\nb: |\n  text\nc: >-\n  more\nd:\n  - {e: 1}\nf:\n"
    fast = read(content)[0]
    monkeypatch.setattr(nodes, "_fast_loader", lambda: yaml.SafeLoader)
    assert read(content)[0] == fast


def test_a_long_line_is_not_shown_and_control_characters_are_blanked() -> None:
    _, source = read("a: [" + "x" * 300 + ", *b]\n")
    assert source.faults[0].source == ""
    _, source = read("a:\t[*b]\n")
    assert "\t" not in source.faults[0].source


def test_shown_is_one_short_line() -> None:
    assert shown("a\nb") == "`a?b`"
    assert len(shown("x" * 1_000)) == nodes.MAX_SHOWN_CHARS + 2
