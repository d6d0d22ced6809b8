"""Answers and requests of Ollama's APIs that are dear to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.hostile_answers import Make, filled, many, named, nested

_EDITED = "u{}@example.com"
_HEAD = {"model": "m", "created_at": "2025-01-01T10:00:00.123Z"}
_END = {"done": True, "done_reason": "stop", "total_duration": 5, "eval_count": 3}


def _line(**members: Any) -> bytes:
    return json.dumps({**_HEAD, "done": False, **members}, separators=(",", ":")).encode() + b"\n"


def _said(content: Any, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **more}}


def _ended(*lines: bytes) -> bytes:
    return b"".join([*lines, _line(**_said(""), **_END)])


def _addresses(size: int) -> str:
    return "bob@example.com " * (size // 16)


def _named(size: int) -> dict[str, Any]:
    return named(lambda _: "a b", size)


def _call(number: int, given: object) -> dict[str, Any]:
    return {"function": {"index": number, "name": "f", "arguments": given}}


def _token(number: int) -> dict[str, Any]:
    return {"token": f"t{number}", "logprob": -0.1, "bytes": [116, 48], "top_logprobs": []}


BODIES: Mapping[str, Callable[[int], dict[str, Any]]] = MappingProxyType({
    "one text": lambda size: _said("word " * (size // 5)),
    "one text of line ends": lambda size: _said("\n" * (size // 2)),
    "one text to edit": lambda size: _said(_addresses(size)),
    "one text of quotes to edit": lambda size: _said("bob@example.com " + '"' * (size // 2)),
    "one thought to edit": lambda size: _said("", thinking=_addresses(size)),
    "calls": lambda size: _said("", tool_calls=many(lambda n: _call(n, {"a": n}), size)),
    "calls to edit": lambda size: _said("", tool_calls=many(lambda n: _call(n, {"a": _EDITED.format(n)}), size)),
    "one call of many members": lambda size: _said("", tool_calls=[_call(0, named(lambda n: n, size))]),
    "one call of many members to edit": lambda size: _said("", tool_calls=[_call(0, named(_EDITED.format, size))]),
    "one call of levels": lambda size: _said(
        "", tool_calls=[_call(0, {"a": json.loads(nested("[", "]", min(size, 200)))})]
    ),
    "log probabilities": lambda size: _said("word" * (size // 60)) | {"logprobs": many(_token, size)},
    "a context": lambda size: _said("a") | {"context": many(lambda n: n, size)},
    "figures": lambda size: _said("a") | named(lambda n: n, size),
    "pictures": lambda size: _said("a", images=["iVBORw0KGgo" + "A" * size]),
    "members nobody knows": lambda size: _said("a") | named(lambda _: "a b", size),
    "members of a message": lambda size: _said("a", **named(lambda _: "a b", size)),
    "strings nobody knows": lambda size: _said("a") | {"x": many(lambda n: f"w{n:x}", size)},
    "strings to edit": lambda size: _said("a") | {"x": many(_EDITED.format, size)},
    "numbers nobody knows": lambda size: _said("a") | {"x": many(lambda n: n, size)},
    "an error": lambda size: {"error": "x " * (size // 2)},
})  # fmt: skip
"""Name -> what one line, or a whole answer, says."""


def _alone(make: Callable[[int], dict[str, Any]]) -> Make:
    return lambda size: _ended(_line(**make(size)))


STREAMS: Mapping[str, Make] = MappingProxyType({
    **{name: _alone(make) for name, make in BODIES.items()},
    "letters": lambda size: _ended(filled(_line(**_said("a")), size)),
    "addresses in letters": lambda size: _ended(
        *(_line(**_said(letter)) for letter in "bob@example.com " * max(size // 2000, 1))
    ),
    "thoughts in letters": lambda size: _ended(filled(_line(**_said("", thinking="a")), size)),
    "texts and thoughts in turn": lambda size: _ended(
        filled(_line(**_said("a")) + _line(**_said("", thinking="b")), size)
    ),
    "calls in lines": lambda size: _ended(
        *(_line(**_said("", tool_calls=[_call(n, {"a": n})])) for n in range(size // 190))
    ),
    "calls in lines to edit": lambda size: _ended(
        *(_line(**_said("", tool_calls=[_call(n, {"a": _EDITED.format(n)})])) for n in range(size // 200))
    ),
    "lines nobody knows": lambda size: _ended(*(_line(**_said("a"), **{f"x{n}": "a b"}) for n in range(size // 140))),
    "blank lines": lambda size: filled(b"\n", size) + _ended(),
    "blank lines with returns": lambda size: filled(b"\r\n", size) + _ended(),
    "empty objects": lambda size: filled(b"{}\n", size) + _ended(),
    "a line without end": lambda size: b'{"a":"' + filled(b"x", size),
    "lists without end": lambda size: b'{"x":' + filled(b"[", size) + b"\n",
    "white space": lambda size: b'{"done":false,"x":' + filled(b" ", size) + b"1}\n" + _ended(),
    "no UTF-8": lambda size: filled(b"\xff", size) + b"\n",
    "ends": lambda size: filled(_ended(), size),
})  # fmt: skip
"""Name -> a stream of lines of about so many bytes."""

WHOLE: Mapping[str, Make] = MappingProxyType({
    **{
        name: lambda size, make=make: json.dumps({**_HEAD, **make(size), **_END}).encode()  # type: ignore[misc]
        for name, make in BODIES.items()
    },
    "no JSON": lambda size: filled(b"[", size),
})  # fmt: skip
"""Name -> a whole answer of about so many bytes."""


def request(content: Any = "hi", *, stream: bool = True, **more: Any) -> bytes:
    """Return a request for a chat."""
    said = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": content}]}
    return json.dumps({**said, **more}).encode()


def _turns(size: int, said: str) -> bytes:
    turns = [{"role": ("user", "assistant")[n % 2], "content": said.format(n)} for n in range(max(size // 42, 1))]
    return request(messages=turns)


REQUESTS: Mapping[str, Make] = MappingProxyType({
    "one text": lambda size: request("word " * (size // 5)),
    "one text to edit": lambda size: request(_addresses(size)),
    "messages": lambda size: _turns(size, "a"),
    "messages to edit": lambda size: _turns(size, _EDITED),
    "tools": lambda size: request(
        tools=many(lambda n: {"type": "function", "function": {"name": f"f{n}", "description": f"a {n}"}}, size)
    ),
    "pictures": lambda size: request(
        messages=[{"role": "user", "content": "hi", "images": ["iVBORw0KGgo" + "A" * (size // 4 * 4)]}]
    ),
    "options": lambda size: request(options=named(lambda n: n, size)),
    "a format": lambda size: request(
        format={"type": "object", "properties": named(lambda _: {"type": "string"}, size)}
    ),
    "members nobody knows": lambda size: request(**_named(size)),
    "numbers": lambda size: request(xx=many(lambda n: n, size)),
    "an escaped text": lambda size: request('"' * (size // 2) + " u@example.com"),
})  # fmt: skip
"""Name -> a request of about so many bytes."""
