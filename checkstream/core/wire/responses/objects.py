"""JSON that is put together anew of the pieces it came in: members and entries that nobody touches keep their bytes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import msgspec

from checkstream.core.wire.json_text.spans import JsonText, Path
from checkstream.core.wire.json_text.strings import quote

_ENTRIES_A_STEP = 32
Members = dict[str, bytes]
"""Name -> JSON."""
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def members(data: bytes) -> Members:
    """Return the members of a JSON object, each as it stands there."""
    try:
        return {name: bytes(raw) for name, raw in _OBJECT.decode(data).items()}
    except msgspec.DecodeError:  # half a character somewhere, which this parser refuses
        return {str(name): value for name, value in _slices(data).items()}


def entries(data: bytes) -> list[bytes]:
    """Return the entries of a JSON list, each as it stands there."""
    try:
        return [bytes(raw) for raw in _LIST.decode(data)]
    except msgspec.DecodeError:
        return list(_slices(data).values())


def _slices(data: bytes) -> dict[str | int, bytes]:
    document = JsonText(data.decode())
    return {name: document.text[at.start : at.end].encode() for name, at in document.entries(()).items()}


def written(found: Mapping[str, bytes]) -> bytes:
    """Return a JSON object of these members."""
    return b"{" + b",".join(quote(name).encode() + b":" + value for name, value in found.items()) + b"}"


def listed(found: Iterable[bytes]) -> bytes:
    """Return a JSON list of these entries."""
    return b"[" + b",".join(found) + b"]"


def is_object(data: bytes) -> bool:
    """Tell whether a value is an object, as it stands there without white space before it."""
    return data[:1] == b"{"


def tree_of(paths: Mapping[Path, Any]) -> dict[str | int, Any]:
    """Return what belongs to some paths, by their names one within the other."""
    tree: dict[str | int, Any] = {}
    for path, value in paths.items():
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return tree


def rewriting(
    data: bytes, tree: Mapping[str | int, Any], put: Callable[[Any, bytes], bytes]
) -> Generator[None, None, bytes]:
    """Return, in steps, JSON in which other values stand at some places; where none differs, the same bytes.

    Beside a text that is another now no log probabilities stay.

    Args:
        data: The JSON.
        tree: As `tree_of` returns it; at its leaves stands whatever `put` wants to know.
        put: Returns the value at a leaf, given what belongs to it and the value that stands there.
    """
    if is_object(data):
        found: Any = members(data)
        there = found.keys()
    else:
        found = entries(data)
        there = range(len(found))
    changed = False
    for count, (name, inner) in enumerate(tree.items(), 1):
        if count % _ENTRIES_A_STEP == 0:
            yield
        if name in there:
            was = found[name]
            found[name] = (yield from rewriting(was, inner, put)) if isinstance(inner, dict) else put(inner, was)
            changed = changed or found[name] != was
            if found[name] != was and not isinstance(inner, dict) and "logprobs" in there:
                found["logprobs"] = b"[]"
    if not changed:
        return data
    return written(found) if is_object(data) else listed(found)
