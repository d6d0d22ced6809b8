"""A result that says its value once more as a text says the same after an edit."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.steps import done
from checkstream.core.wire.mcp.agreeing import agreeing

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "u@example.com", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)


def edited(value: Any) -> Any:
    """Return a value as an edit leaves it: another text, the same lists and objects."""
    if isinstance(value, dict):
        return {name: edited(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [edited(inner) for inner in value]
    return "[EMAIL]" if value == "u@example.com" else value


def containers(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(each for entry in inner for each in containers(entry))] if isinstance(value, dict | list) else []


def message(value: Any, texts: list[str]) -> dict[str, object]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"jsonrpc": "2.0", "id": 1, "result": {"content": content, "structuredContent": value}}


@given(VALUES, st.lists(VALUES, max_size=3), st.booleans())
def test_each_text_that_says_an_object_or_list_of_the_value_says_it_as_it_was_edited(
    value: Any, others: list[Any], indented: bool
) -> None:
    parts = [*containers(value), *others]
    texts = [json.dumps(part, indent=2 if indented else None) for part in parts]
    before, after = message(value, texts), message(edited(value), texts)
    said = json.loads(done(agreeing(before, json.dumps(after).encode())))["result"]["content"]
    known = containers(value)
    for part, text, block in zip(parts, texts, said, strict=True):
        if isinstance(part, dict | list) and part in known:
            assert json.loads(block["text"]) == edited(part)
        else:
            assert block["text"] == text


def test_numbers_that_python_takes_for_one_key_are_told_apart() -> None:
    """The hashes of -1 and -2 are equal."""
    before = message({"a": -1}, ['{"a": -2}'])
    assert done(agreeing(before, json.dumps(before).encode())) == json.dumps(before).encode()
