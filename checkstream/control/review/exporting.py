"""Of what people have settled: cases for `policy test`, and labelled texts for `models eval`. Pure.

Only a text that is whole can be tried again: what is masked, or was never kept, is counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson
import yaml

from checkstream.control.review.judging import outcome
from checkstream.control.review.terms import Item, Word
from checkstream.errors import RequestInvalid

_MAX_NAME = 200


def with_texts(items: Iterable[Item], texts: Mapping[str, str]) -> list[Item]:
    """Return items with the texts that somebody has, stream -> text; others stay without."""
    return [
        msgspec.structs.replace(item, text=texts[item.stream], masked=False) if item.stream in texts else item
        for item in items
    ]


def texts_of(lines: str) -> dict[str, str]:
    """Return the texts of lines of JSON with `stream` and `text`: stream -> text.

    Raises:
        RequestInvalid: a line is none; says which.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(lines.split("\n"), 1):
        if line.strip():
            try:
                told = msgspec.json.decode(line, type=_Text)
            except (msgspec.DecodeError, UnicodeEncodeError) as error:
                raise RequestInvalid(
                    f'line {number} of the texts is not `{{"stream": ..., "text": ...}}`: {error}'
                ) from error
            found[told.stream] = told.text
    return found


class _Text(msgspec.Struct, frozen=True):
    stream: str
    text: str


class Export(msgspec.Struct, frozen=True):
    """A file, and how much is in it."""

    content: bytes
    kept: int
    left_out: int
    """Settled items whose text is not whole, or that are unsure."""


def cases(items: Iterable[Item], words: Mapping[str, Mapping[str, Word]]) -> Export:
    """Return the cases of a policy's `tests.yaml`: a rule must fire where it was right, and not where it was wrong.

    Args:
        items: What was reviewed.
        words: Item -> person -> word.
    """
    kept, left_out = _settled(items, words)
    made = [_case(item, right=right) for item, right in kept]
    written = yaml.dump({"cases": made}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return Export(written.encode() if made else b"", len(made), left_out)


class _Dumper(yaml.SafeDumper):
    """Puts quotes around all that is not plainly text: `08` is a number to one reader, and a fault to another."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text[:1].isalpha() else '"')


_Dumper.add_representer(str, _text)


def rows(items: Iterable[Item], words: Mapping[str, Mapping[str, Word]]) -> Export:
    """Return lines of JSON with `text` and `label` (1: the rule was right), as `models eval` reads them.

    Args:
        items: What was reviewed.
        words: Item -> person -> word.
    """
    kept, left_out = _settled(items, words)
    lines = [
        orjson.dumps(
            {"text": item.text, "label": int(right), "rule": item.rule, "detector": item.detector, "review": item.id}
        )
        for item, right in kept
    ]
    return Export(b"".join(line + b"\n" for line in lines), len(lines), left_out)


def _settled(items: Iterable[Item], words: Mapping[str, Mapping[str, Word]]) -> tuple[list[tuple[Item, bool]], int]:
    """Return the items that can be tried again with whether the rule was right, by id; and how many can't."""
    kept: dict[str, tuple[Item, bool]] = {}
    left_out = 0
    for item in items:
        word = outcome(words.get(item.id, {})).word
        if word is None:
            continue
        if word == "unsure" or item.masked or not item.text:
            left_out += 1
        else:
            kept[item.id] = item, word == "right"
    return [kept[key] for key in sorted(kept)], left_out


def _case(item: Item, *, right: bool) -> dict[str, Any]:
    what = "right" if right else "wrong"
    made: dict[str, Any] = {"name": f"reviewed as {what}: {item.rule}, {item.id}"[:_MAX_NAME]}
    made["prompt" if item.stage == "ingress" else "answer"] = item.text
    if item.detector and item.score is not None:
        made["scores"] = {item.detector: item.score}
    made["expect"] = {"action": item.action, "rule_id": item.rule} if right else {"action": "allow"}
    return made
