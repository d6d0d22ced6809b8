"""What is no personal data and no secret, however it is set: tables, lists, versions, logs, Markdown and code."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from checkstream.core.match.scan import Scan
from tests.property.test_respelled import patterns

LINES = 400


def _table(chance: random.Random) -> str:
    cells = [str(chance.randint(1000, 9999)) for _ in range(chance.randint(5, 9))]
    return chance.choice(("| {} |", "{}")).format(chance.choice((" | ", "\t", "  ", ", ")).join(cells))


def _sum(chance: random.Random) -> str:
    return " + ".join(f"{chance.randint(1, 99999) / 100:.2f}" for _ in range(6)) + " = 12.5 * 3"


def _log(chance: random.Random) -> str:
    some = chance.randint
    time = f"2025-0{some(1, 9)}-{some(10, 28)}T10:{some(10, 59)}:07.{some(100, 999)}Z"
    return f"{time} [info] took {some(1, 900)}ms pid={some(100, 9999)}"


def _version(chance: random.Random) -> str:
    parts = [str(chance.randint(0, 30)) for _ in range(3)]
    return f"pip install left_pad=={'.'.join(parts)} # build 20250{chance.randint(101, 928)}.{chance.randint(1, 9)}"


def _markdown(chance: random.Random) -> str:
    word = chance.choice(("value", "list_of_items", "__init__", "self._cache"))
    return (
        f"- **Item {chance.randint(1, 20)}**: use `{word}` *or* ~~{word}~~, see [docs](https://docs.example/{word}#1)."
    )


def _code(chance: random.Random) -> str:
    number = chance.randrange(1 << 32)
    return f"    x[{number % 10}] = a*b**2 + c\\d & 0x{number:08x} if n<m else r'\\d{{3}}\\.\\w+'  # 100%"


def _html(chance: random.Random) -> str:
    some = chance.randint
    return f"<td>{some(1000, 9999)}</td><td><b>{some(1, 99)}</b>%</td> &amp; &nbsp;<a href='/p/{some(1, 999)}'>x</a>"


def _isbn(chance: random.Random) -> str:
    some = chance.randint
    return f"ISBN 978-3-16-{some(100000, 999999)}-0, pages {some(1, 99)}-{some(100, 400)}, doi:10.1000/{some(100, 999)}"


def _emoji(chance: random.Random) -> str:
    signs = ("\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f", "\u00bd cup", "x\u00b2 + y\u00b3", "caf\u00e9")
    return f"1\ufe0f\u20e3 {chance.choice(signs)} \u2460 \u2461"


KINDS: Mapping[str, Callable[[random.Random], str]] = {
    "arithmetic": _sum,
    "code": _code,
    "emoji and signs": _emoji,
    "html": _html,
    "isbn and pages": _isbn,
    "logs": _log,
    "markdown": _markdown,
    "tables": _table,
    "versions": _version,
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_ordinary_text_of_numbers_and_marks_holds_nothing(kind: str) -> None:
    chance = random.Random(kind)
    text = "\n".join(KINDS[kind](chance) for _ in range(LINES))
    scan = Scan(patterns())
    found = [*scan.feed(text), *scan.end()]
    assert [text[each.span.start : each.span.end] for each in found] == []
