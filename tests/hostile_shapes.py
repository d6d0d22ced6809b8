"""Any value at any place of any answer or request: shapes of JSON that grow with their size, put where anything stands.

A place is a member or an entry of a body that says most of what its API can say. There the value stands instead of what
stood there, or beside it: as a member nobody knows, or as members or entries of the object or list that stands there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from checkstream.core import events as on
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from tests import hostile_ollama, messages, responses
from tests.hostile_answers import END, filled, many, named
from tests.watchdog import answered

_HERE = "HERE"
_EDITED = "u{}@example.com"
_LEVELS = 40
Path = tuple[str | int, ...]


def _text(piece: bytes) -> Callable[[int], str]:
    """Return what makes a string of a piece of JSON, over and over."""
    return lambda size: '"' + filled(piece, size).decode() + '"'


def _edited(piece: bytes) -> Callable[[int], str]:
    return lambda size: '"bob@example.com ' + filled(piece, size).decode() + '"'


def _list(make: Callable[[int], object]) -> Callable[[int], str]:
    return lambda size: _dumped(many(make, size))


def _object(make: Callable[[int], object]) -> Callable[[int], str]:
    return lambda size: _dumped(named(make, size))


def _dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _deep(opening: str, inner: str, closing: str) -> object:
    return json.loads(opening * _LEVELS + inner + closing * _LEVELS)


TEXTS: Mapping[str, Callable[[int], str]] = MappingProxyType({
    "words": _text(b"word "),
    "words to edit": _edited(b"word "),
    "addresses": _text(b"bob@example.com "),
    "quotes": _text(b'\\"'),
    "quotes to edit": _edited(b'\\"'),
    "backslashes to edit": _edited(b"\\\\"),
    "line ends": _text(b"\\n"),
    "line ends to edit": _edited(b"\\n"),
    "escapes": _text(b"\\u0061"),
    "escapes to edit": _edited(b"\\u00e4"),
    "pairs to edit": _edited(b"\\ud83d\\ude00"),
    "other letters": _text("\u6f22".encode()),
    "other letters to edit": _edited("\u6f22".encode()),
    "figures": _text(b"4111 "),
    "base64": _text(b"QUJD"),
    "JSON to edit": _edited(b'{\\"a\\":\\"u@example.com\\"},'),
    "a list of JSON": lambda size: _dumped(_dumped(many(_EDITED.format, size))),
    "an object of JSON": lambda size: _dumped(_dumped(named(lambda n: [n], size))),
})  # fmt: skip
"""Strings, as JSON."""
LISTS: Mapping[str, Callable[[int], str]] = MappingProxyType({
    "empty objects": _list(lambda _: {}),
    "empty lists": _list(lambda _: []),
    "empty strings": _list(lambda _: ""),
    "words in a list": _list(lambda n: f"w{n:x}"),
    "addresses in a list": _list(_EDITED.format),
    "nothing": _list(lambda _: None),
    "numbers": _list(lambda n: n),
    "one number": _list(lambda _: 1),
    "broken numbers": _list(lambda n: n + 0.5),
    "long numbers": _list(lambda n: 10**17 + n),
    "types": _list(lambda _: {"type": "text"}),
    "parts": _list(lambda _: {"type": "text", "text": "a"}),
    "parts to edit": _list(lambda n: {"type": "text", "text": _EDITED.format(n)}),
    "numbered": _list(lambda n: {"index": n}),
    "pairs": _list(lambda n: [n % 250, 3]),
    "calls": _list(lambda _: {"function": {}}),
    "levels": _list(lambda _: _deep("[", "1", "]")),
    "levels of objects": _list(lambda _: _deep('{"a":', '"u@example.com"', "}")),
})  # fmt: skip
OBJECTS: Mapping[str, Callable[[int], str]] = MappingProxyType({
    "members": _object(lambda _: "a b"),
    "members to edit": _object(_EDITED.format),
    "members of nothing": _object(lambda _: None),
    "members of numbers": _object(lambda n: n),
    "members of lists": _object(lambda n: [n]),
    "members of objects": _object(lambda _: {}),
    "members of levels": _object(lambda _: _deep("[", '""', "]")),
    "names to edit": lambda size: _dumped({_EDITED.format(n): n for n in range(size // 25)}),
    "a long name": lambda size: '{"' + "a" * size + '":1}',
    "a long name of words": lambda size: '{"' + filled(b"word ", size).decode() + '":1}',
    "a long name to edit": lambda size: '{"' + filled(b"bob@example.com ", size).decode() + '":1}',
    "names of escapes": lambda size: "{" + ",".join(f'"\\"{n}":1' for n in range(size // 12)) + "}",
})  # fmt: skip
SHAPES: Mapping[str, Callable[[int], str]] = MappingProxyType({**TEXTS, **LISTS, **OBJECTS})
"""Name -> a value of about so many bytes, as JSON."""


class Form(NamedTuple):
    """A form in which an API answers, or asks."""

    surface: Surface
    body: Mapping[str, Any]
    """What says most of what can be said; places are in it."""
    told: Callable[[bytes], list[on.AnyEvent]]
    """What happens when that is said."""


class Place(NamedTuple):
    """Where a value stands in a body."""

    path: Path
    how: str
    """`instead` of what stands there, `beside` it in the object there, or `within` it: as its members or entries."""

    def __str__(self) -> str:
        return f"{self.how} {'.'.join(map(str, self.path)) or 'all'}"


def places(body: object, path: Path = ()) -> Iterator[Place]:
    """Yield every place of a body."""
    if path:
        yield Place(path, "instead")
    if isinstance(body, dict):
        yield Place(path, "beside")
        yield Place(path, "within")
        for name, value in body.items():
            yield from places(value, (*path, name))
    elif isinstance(body, list):
        yield Place(path, "within")
        for at, value in enumerate(body):
            yield from places(value, (*path, at))


def put(body: Mapping[str, Any], place: Place, value: str) -> bytes:
    """Return a body with a value, as JSON, at a place; what has no members or entries to add is added itself."""
    copy = json.loads(json.dumps(body))
    found: Any = copy
    way = place.path[:-1] if place.how == "instead" else place.path
    for each in way:
        found = found[each]
    if place.how == "instead":
        found[place.path[-1]] = _HERE
        return _written(copy, f'"{_HERE}"', value)
    inner = value[1:-1]
    if isinstance(found, list):
        found.append(_HERE)
        return _written(copy, f'"{_HERE}"', inner if value[0] == "[" and inner else value)
    found[_HERE] = 0
    within = place.how == "within" and value[0] == "{" and inner
    return _written(copy, f'"{_HERE}":0', inner if within else f'"xx":{value}')


def _written(body: object, mark: str, value: str) -> bytes:
    return _dumped(body).replace(mark, value).encode("utf-8", "surrogatepass")


_USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}
_PROBABILITIES = {"content": [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}]}
_CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}
_SAID = {
    "role": "assistant", "content": "a", "refusal": None, "reasoning_content": "b", "tool_calls": [_CALL],
    "reasoning_details": [{"type": "reasoning.text", "text": "c", "index": 0}], "annotations": [{"type": "url"}],
}  # fmt: skip
_CHOICE = {"index": 0, "logprobs": _PROBABILITIES, "finish_reason": None, "content_filter_results": {}}
_HEAD = {"id": "c1", "created": 7, "model": "m", "usage": _USAGE, "system_fingerprint": "f"}
_PARTS = {**_SAID, "content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"text": "b"}]}]}
_CHATS = {"object": "chat.completion.chunk", **_HEAD, "choices": [{**_CHOICE, "delta": _SAID}]}
_CHAT = {"object": "chat.completion", **_HEAD, "choices": [{**_CHOICE, "finish_reason": "stop", "message": _SAID}]}
_CHAT_OF_PARTS = {**_CHAT, "choices": [{**_CHOICE, "finish_reason": "stop", "message": _PARTS}]}
_TEXT = {**_HEAD, "object": "text_completion", "choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}
_TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
_ASKED = {
    "model": "m", "stream": True, "temperature": 1, "tools": [_TOOL], "metadata": {"a": "b"}, "stop": ["x"],
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "messages": [
        {"role": "system", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "c"},
    ],
}  # fmt: skip
_BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "a", "signature": "s"},
    {"type": "text", "text": "b", "citations": [{"type": "x"}]},
    {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "b"}},
    {"type": "server_tool_use", "id": "s1", "name": "g", "input": {"a": "b"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
]  # fmt: skip
_LINE = {
    "model": "m", "created_at": "2025-01-01T10:00:00.1Z", "done": False, "eval_count": 3, "context": [1, 2],
    "message": {"role": "assistant", "content": "a", "thinking": "b", "images": ["c"], "tool_calls": [
        {"function": {"index": 0, "name": "f", "arguments": {"a": "b"}}}
    ]},
}  # fmt: skip
_ITEMS = [
    responses.reasoning("a"),
    responses.message("b"),
    responses.call("f", '{"a":1}'),
    responses.search("word", number=2),
]


def _of_chat(*, stream: bool, name: str = "openai.chat") -> Callable[[bytes], list[on.AnyEvent]]:
    asked = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}], "prompt": "hi"}
    asked.pop("prompt" if name == "openai.chat" else "messages")
    head, tail = (b"data: ", b"\n\n" + END) if stream else (b"", b"")
    return lambda body: answered(_dumped(asked).encode(), head + body + tail, streaming=stream)


def _of_messages(kind: str) -> Callable[[bytes], list[on.AnyEvent]]:
    begun, stop, rest = messages.answer(messages.text(0, "a")).partition(b"event: content_block_stop")
    over = stop + b"\ndata: " + _dumped({"type": "content_block_stop", "index": 0}).encode() + b"\n\n"
    head, tail = {
        "whole": (b"", b""),
        "delta": (begun + b"event: content_block_delta\ndata: ", b"\n\n" + stop + rest),
        "start": (begun + over + b"event: content_block_start\ndata: ", b"\n\n"),
    }[kind]
    stream = kind != "whole"
    return lambda body: answered(messages.request(stream=stream), head + body + tail, streaming=stream)


def _of_ollama(*, stream: bool) -> Callable[[bytes], list[on.AnyEvent]]:
    last = _dumped({**_LINE, "message": {"role": "assistant", "content": ""}, "done": True}).encode() + b"\n"
    return lambda body: answered(
        hostile_ollama.request(stream=stream), body + b"\n" + last if stream else body, streaming=stream
    )


def _of_responses(kind: str) -> Callable[[bytes], list[on.AnyEvent]]:
    def told(body: bytes) -> list[on.AnyEvent]:
        stream = kind != "whole"
        framed = b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n" if stream else body
        return answered(responses.request(stream=stream), framed, streaming=stream)

    return told


def _asked(body: bytes) -> list[on.AnyEvent]:
    return answered(body, b'{"choices":[]}', streaming=False)


_CHAT_API, _MESSAGES, _OLLAMA = SURFACES["openai.chat"], messages.MESSAGES, SURFACES["ollama.chat"]
_WHOLE_RESPONSE = json.loads(responses.whole(*_ITEMS, metadata={"a": "b"}, instructions="c"))
_LAST = {"type": "response.completed", "sequence_number": 0, "response": _WHOLE_RESPONSE}

FORMS: Mapping[str, Form] = MappingProxyType({
    "chat, whole": Form(_CHAT_API, _CHAT, _of_chat(stream=False)),
    "chat, whole of parts": Form(_CHAT_API, _CHAT_OF_PARTS, _of_chat(stream=False)),
    "chat, streamed": Form(_CHAT_API, _CHATS, _of_chat(stream=True)),
    "chat, asked": Form(_CHAT_API, _ASKED, _asked),
    "completions, whole": Form(
        SURFACES["openai.completions"], _TEXT, _of_chat(stream=False, name="openai.completions")
    ),
    "messages, whole": Form(
        _MESSAGES, json.loads(messages.whole(*_BLOCKS)), _of_messages("whole")
    ),
    "messages, a delta": Form(_MESSAGES, {
        "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"},
    }, _of_messages("delta")),
    "messages, a block": Form(
        _MESSAGES, {"type": "content_block_start", "index": 1, "content_block": _BLOCKS[3]}, _of_messages("start")
    ),
    "messages, asked": Form(_MESSAGES, json.loads(messages.request(
        [{"type": "text", "text": "a"}], tools=[{"name": "f", "input_schema": {"type": "object"}}], system="b"
    )), _asked),
    "ollama, whole": Form(_OLLAMA, {**_LINE, "done": True}, _of_ollama(stream=False)),
    "ollama, streamed": Form(_OLLAMA, _LINE, _of_ollama(stream=True)),
    "ollama, asked": Form(_OLLAMA, json.loads(hostile_ollama.request(options={"a": 1}, format={"b": "c"})), _asked),
    "responses, whole": Form(responses.RESPONSES, _WHOLE_RESPONSE, _of_responses("whole")),
    "responses, the last word": Form(responses.RESPONSES, _LAST, _of_responses("response.completed")),
    "responses, an item": Form(responses.RESPONSES, {
        "type": "response.output_item.done", "sequence_number": 0, "output_index": 0, "item": _ITEMS[1],
    }, _of_responses("response.output_item.done")),
    "responses, asked": Form(responses.RESPONSES, json.loads(responses.request(
        [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, *_ITEMS], metadata={"a": "b"}
    )), _asked),
})  # fmt: skip
"""Name -> what says most of what can be said so."""
