r"""Draws texts from banks of alternatives, so that a few pages of phrases yield any number of different texts.

    == greeting
    {Hello|Hi} {name}!\nHow are you?

A line is one alternative of its bank. `{name}` draws from a bank, `{a|b|}` chooses in place and may nest, and `\n` is a
line end. Any other pair of braces stands for itself. Lines that start with `#` outside a bank are comments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

BANKS = Path(__file__).with_name("banks")
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class _Draw:
    """Draw from a bank."""

    bank: str


@dataclass(frozen=True, slots=True)
class _Choice:
    """Choose one of some alternatives."""

    alternatives: tuple[tuple[_Node, ...], ...]


_Node = str | _Draw | _Choice


@dataclass
class Grammar:
    """Banks by name."""

    banks: dict[str, tuple[tuple[_Node, ...], ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, *names: str, pool: Mapping[str, Sequence[str]]) -> Grammar:
        """Read files of banks; a bank of a later file hides one of its name.

        Args:
            names: files in the folder `banks`, without ending.
            pool: further banks, whose texts are taken as they stand.

        Raises:
            ValueError: a pair of braces isn't closed, or a bank is empty.
        """
        lines: dict[str, list[str]] = {}
        for name in names:
            lines.update(_sections((BANKS / f"{name}.txt").read_text(encoding="utf-8")))
        known = lines.keys() | pool.keys()
        banks = {name: tuple(_parsed(line, known) for line in alternatives) for name, alternatives in lines.items()}
        banks |= {name: tuple((text,) for text in texts) for name, texts in pool.items()}
        for name, alternatives in banks.items():
            if not alternatives:
                raise ValueError(f"bank `{name}` is empty; give it a line")
        return cls(banks)

    def draw(self, bank: str, random: Random) -> str:
        """Return a text of a bank.

        Raises:
            KeyError: there is no such bank.
            RecursionError: a bank draws from itself without end.
        """
        return self._written(random.choice(self.banks[bank]), random, 0)

    def _written(self, nodes: tuple[_Node, ...], random: Random, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise RecursionError("a bank draws from itself without end; give it another way out")
        parts: list[str] = []
        for node in nodes:
            if isinstance(node, str):
                parts.append(node)
            elif isinstance(node, _Draw):
                parts.append(self._written(random.choice(self.banks[node.bank]), random, depth + 1))
            else:
                parts.append(self._written(random.choice(node.alternatives), random, depth + 1))
        return "".join(parts)


def _sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.split("\n"):
        if line.startswith("== "):
            current = found.setdefault(line.removeprefix("== ").strip(), [])
        elif line and current is not None:
            current.append(line.replace("\\n", "\n"))
    return found


def _parsed(text: str, known: set[str]) -> tuple[_Node, ...]:
    nodes: list[_Node] = []
    at = 0
    while (start := text.find("{", at)) >= 0:
        inside, end = _closed(text, start)
        nodes.append(text[at:start])
        alternatives = _split(inside)
        if len(alternatives) > 1:
            nodes.append(_Choice(tuple(_parsed(alternative, known) for alternative in alternatives)))
        elif inside in known:
            nodes.append(_Draw(inside))
        elif inside.isidentifier():
            raise ValueError(f"there is no bank `{inside}`; add it or correct `{text[:60]}`")
        else:
            nodes += ["{", *_parsed(inside, known), "}"]
        at = end
    nodes.append(text[at:])
    return tuple(node for node in nodes if node != "")


def _closed(text: str, start: int) -> tuple[str, int]:
    """Return what stands between a brace and its partner, and where the text goes on."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if not depth:
            return text[start + 1 : at], at + 1
    raise ValueError(f"a brace isn't closed in `{text[:60]}`; close it")


def _split(text: str) -> list[str]:
    """Split at the bars that stand in no inner braces."""
    parts, depth, since = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if sign == "|" and not depth:
            parts.append(text[since:at])
            since = at + 1
    return [*parts, text[since:]]
