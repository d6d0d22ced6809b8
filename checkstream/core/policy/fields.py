"""Readers from nodes to typed values: each gives the value with its place, or notes a fault and gives None.

Types are strict: a number is a decimal number, `true` and `false` are the only truth values, and a text
that YAML would read as something else must stand in quotes.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import yaml
import yaml.resolver

from checkstream.core.policy.nodes import Broken, MappingNode, Node, Placed, ScalarNode, SequenceNode, Source, shown

T = TypeVar("T")

_RESOLVER = yaml.resolver.Resolver()
_TAG = "tag:yaml.org,2002:"
_MAX_NUMBER_CHARS = 18
MAX_WORD_CHARS = 100
MAX_LITERAL_CHARS = 4_000


def scalar_type(scalar: ScalarNode) -> str:
    """Return what YAML 1.1 reads a scalar as: str, bool, int, float, null, timestamp, merge or value."""
    if not scalar.plain:
        return "str"
    tag = _RESOLVER.resolve(yaml.ScalarNode, scalar.value, (True, False))  # type: ignore[no-untyped-call]
    return str(tag).removeprefix(_TAG)


_WORDS = {
    "bool": "a truth value",
    "int": "a number",
    "float": "a number",
    "null": "nothing",
    "timestamp": "a date",
    "merge": "a merge key",
    "value": "a special value",
    "str": "a text",
}


def describe(node: Node) -> str:
    """Return what a node is, in words, for `must be ..., not ...`."""
    if isinstance(node, ScalarNode):
        return _WORDS[scalar_type(node)]
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return advice that names the nearest known word, or `otherwise`."""
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word[:100].casefold(), list(by_folded), n=1, cutoff=0.6)
    return f"did you mean `{by_folded[near[0]]}`?" if near else otherwise


class Fields:
    """The keys of one mapping, each asked for by name; what isn't known or is missing has been reported."""

    def __init__(
        self, source: Source, node: Node, what: str, *, required: Sequence[str] = (), optional: Sequence[str] = ()
    ) -> None:
        """Read `node`, which messages call `what` (`a rule`, `the pack`)."""
        self.source = source
        self.what = what
        self.at = node.at
        self.readable = isinstance(node, MappingNode)
        self._nodes: dict[str, Node] = {}
        if not isinstance(node, MappingNode):
            if not isinstance(node, Broken):
                names = ", ".join(f"`{name}`" for name in (*required, *optional))
                source.fault(node.at, f"{what} must be a mapping, not {describe(node)}", f"its keys are {names}")
            return
        known = (*required, *optional)
        for key, value in node.entries:
            if key.value in known:
                self._nodes[key.value] = value
            else:
                otherwise = "known keys: " + ", ".join(f"`{name}`" for name in known)
                source.fault(
                    key.at,
                    f"{what} has no key {shown(key.value)}",
                    did_you_mean(key.value, [name for name in known if name not in self._nodes], otherwise),
                )
        for name in required:
            if name not in self._nodes:
                source.fault(node.at, f"{what} needs the key `{name}`", f"add `{name}:`")

    @property
    def given(self) -> frozenset[str]:
        """The known keys that the mapping has."""
        return frozenset(self._nodes)

    def node(self, name: str) -> Node | None:
        """Return the node of a key, or None when it isn't there."""
        return self._nodes.get(name)

    def text(self, name: str, *, max_chars: int = 200, empty: bool = False) -> Placed[str] | None:
        """Return a text."""
        node = self._nodes.get(name)
        return None if node is None else text(self.source, node, f"`{name}`", max_chars=max_chars, empty=empty)

    def integer(self, name: str, low: int, high: int) -> Placed[int] | None:
        """Return a whole number within bounds, both included."""
        node = self._nodes.get(name)
        return None if node is None else integer(self.source, node, f"`{name}`", low, high)

    def number(self, name: str, low: float, high: float) -> Placed[float] | None:
        """Return a number within bounds, both included."""
        node = self._nodes.get(name)
        return None if node is None else number(self.source, node, f"`{name}`", low, high)

    def choice(self, name: str, options: Sequence[str]) -> Placed[str] | None:
        """Return one of some words."""
        node = self._nodes.get(name)
        return None if node is None else choice(self.source, node, f"`{name}`", options)

    def items(
        self, name: str, read: Callable[[Node], T | None], *, max_items: int, empty: bool = False
    ) -> tuple[T, ...]:
        """Return what `read` makes of each item of a list; nothing when the key isn't there."""
        node = self._nodes.get(name)
        if node is None or isinstance(node, Broken):
            return ()
        if not isinstance(node, SequenceNode):
            advice = f"write `{name}: [...]`"
            self.source.fault(node.at, f"`{name}` must be a list, not {describe(node)}", advice)
            return ()
        if len(node.items) > max_items:
            self.source.fault(node.at, f"`{name}` has more than {max_items} items", "split the rule")
            return ()
        if not node.items and not empty:
            self.source.fault(node.at, f"`{name}` is empty", "remove the key or add an item")
        found = (read(item) for item in node.items)
        return tuple(item for item in found if item is not None)


def mapping(
    source: Source,
    node: Node,
    what: str,
    read: Callable[[ScalarNode, Node], T | None],
    *,
    max_items: int,
) -> tuple[T, ...]:
    """Return what `read` makes of each key and value of a mapping whose keys are the author's own."""
    if isinstance(node, Broken):
        return ()
    if not isinstance(node, MappingNode):
        source.fault(node.at, f"{what} must be a mapping, not {describe(node)}", "write `{key: value}`")
        return ()
    if len(node.entries) > max_items:
        source.fault(node.at, f"{what} has more than {max_items} keys", "split the rule")
        return ()
    if not node.entries:
        source.fault(node.at, f"{what} is empty", "remove the key or add an entry")
    found = (read(key, value) for key, value in node.entries)
    return tuple(item for item in found if item is not None)


def text(source: Source, node: Node, what: str, *, max_chars: int = 200, empty: bool = False) -> Placed[str] | None:
    """Return a text: quoted, or plain where YAML too reads it as text."""
    if isinstance(node, Broken):
        return None
    if not isinstance(node, ScalarNode):
        source.fault(node.at, f"{what} must be a text, not {describe(node)}")
        return None
    kind = scalar_type(node)
    if kind == "null":
        source.fault(node.at, f"{what} has no value", "write a text")
        return None
    if kind != "str":
        advice = f'put it in quotes: "{node.value[:40]}"'
        source.fault(node.at, f"{shown(node.value)} without quotes is {_WORDS[kind]}, and {what} is a text", advice)
        return None
    if not node.value.strip() and not empty:
        source.fault(node.at, f"{what} is empty", "write a text")
        return None
    if len(node.value) > max_chars:
        source.fault(node.at, f"{what} is longer than {max_chars} characters", "shorten it")
        return None
    return Placed(node.value, node.at)


def word(source: Source, node: Node | None, what: str) -> Placed[str] | None:
    """Return a name: printable ASCII without blanks and without what would need quoting in headers and logs."""
    if node is None:
        return None
    placed = text(source, node, what, max_chars=MAX_WORD_CHARS)
    if placed is not None and not all(char.isascii() and (char.isalnum() or char in "_-.:/+") for char in placed.value):
        source.fault(placed.at, f"{what} can't be {shown(placed.value)}", "use ASCII letters, digits and `_-.:/+`")
        return None
    return placed


def literal(
    source: Source, node: Node, what: str, *, max_chars: int = MAX_LITERAL_CHARS, empty: bool = False
) -> Placed[str] | None:
    """Return a text that is written as it stands: no control characters but newline and tab."""
    placed = text(source, node, what, max_chars=max_chars, empty=empty)
    if placed is None:
        return None
    bad = next((char for char in placed.value if ord(char) < 0x20 and char not in "\n\t"), None)
    if bad is not None:
        source.fault(placed.at, f"{what} has the control character `U+{ord(bad):04X}`", "remove it")
        return None
    return placed


def choice(source: Source, node: Node, what: str, options: Sequence[str]) -> Placed[str] | None:
    """Return one of `options`."""
    if isinstance(node, ScalarNode) and scalar_type(node) in {"str", "bool"} and node.value not in options:
        known = "use one of " + ", ".join(f"`{option}`" for option in options)
        source.fault(node.at, f"{what} can't be {shown(node.value)}", did_you_mean(node.value, options, known))
        return None
    return text(source, node, what)


def integer(source: Source, node: Node, what: str, low: int, high: int) -> Placed[int] | None:
    """Return a whole number in decimal digits, `low` and `high` included."""
    if isinstance(node, Broken):
        return None
    digits = node.value.removeprefix("-") if isinstance(node, ScalarNode) else ""
    if not isinstance(node, ScalarNode) or scalar_type(node) not in {"int", "float"}:
        source.fault(node.at, f"{what} must be a whole number, not {describe(node)}", _unquote(node))
        return None
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    if not plain or len(digits) > _MAX_NUMBER_CHARS:
        source.fault(node.at, f"{what} can't be {shown(node.value)}", "write a whole number in decimal digits")
        return None
    value = int(node.value)
    if not low <= value <= high:
        source.fault(node.at, f"{what} can't be {shown(node.value)}", f"it goes from {low} to {high}")
        return None
    return Placed(value, node.at)


def number(source: Source, node: Node, what: str, low: float, high: float) -> Placed[float] | None:
    """Return a number written as decimal digits, with or without a point, `low` and `high` included."""
    if isinstance(node, Broken):
        return None
    if not isinstance(node, ScalarNode) or scalar_type(node) not in {"int", "float"}:
        source.fault(node.at, f"{what} must be a number, not {describe(node)}", _unquote(node))
        return None
    whole, point, fraction = node.value.removeprefix("-").partition(".")
    well_formed = (
        whole.isascii()
        and whole.isdigit()
        and (whole == "0" or not whole.startswith("0"))
        and (not point or (fraction.isascii() and fraction.isdigit()))
        and len(node.value) <= _MAX_NUMBER_CHARS
    )
    if not well_formed:
        source.fault(node.at, f"{what} can't be {shown(node.value)}", "write a decimal number such as `0.75`")
        return None
    value = float(node.value)
    if not low <= value <= high:
        source.fault(node.at, f"{what} can't be {shown(node.value)}", f"it goes from {low:g} to {high:g}")
        return None
    return Placed(value, node.at)


def _unquote(node: Node) -> str:
    """Return the advice for a number that was written in quotes."""
    if isinstance(node, ScalarNode) and not node.plain:
        bare = ScalarNode(node.value, plain=True, at=node.at)
        if scalar_type(bare) in {"int", "float"}:
            return "write it without quotes"
    return "write a number"
