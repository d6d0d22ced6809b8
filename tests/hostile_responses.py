"""Answers and requests of the Responses API that are dear to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tests.hostile_answers import Make, filled, many, named, nested
from tests.responses import Stream, answer, call, event, message, reasoning, request, response, search, whole

_EDITED = "u{}@example.com"


def _addresses(size: int) -> str:
    return "bob@example.com " * (size // 16)


def _named(size: int) -> dict[str, Any]:
    return named(lambda _: "a b", size)


def _lines(size: int, text: str = "word") -> list[str]:
    return [f"{text} {number}" for number in range(max(size // 12, 1))]


def _of(*items: Any, pieces: int = 3, **more: Any) -> bytes:
    return answer(*items, pieces=pieces, **more)


def _each_in_an_item(made: Sequence[dict[str, Any]]) -> bytes:
    return _of(*made, pieces=1)


def _one_event(kind: str, **members: Any) -> bytes:
    """Return a stream in which, behind the beginning, one event says all this."""
    stream = Stream(1)
    stream.item(0, message("a"))
    stream.add(kind, **members)
    stream.end(message("a"))
    return stream.joined


def _last_word(*items: Any, **more: Any) -> bytes:
    """Return a stream of which the last word alone says what there is."""
    stream = Stream(1)
    stream.end(*items, **more)
    return stream.joined


def _letters(size: int) -> bytes:
    text = "word " * (size // 5 // 40)
    return _of(message(text), pieces=len(text))


def _source(code: str) -> dict[str, Any]:
    return {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": code, "container_id": "c"}


def _shell(commands: list[str]) -> dict[str, Any]:
    action = {"commands": commands}
    return {"id": "sh_1", "type": "shell_call", "status": "completed", "call_id": "c1", "action": action}


def _citation(number: int) -> dict[str, Any]:
    return {"type": "url_citation", "url": f"http://h{number}.org", "start_index": number, "end_index": number + 2}


def _annotated(size: int) -> dict[str, Any]:
    item = message("word " * 20)
    item["content"][0]["annotations"] = many(_citation, size)
    return item


def _probable(size: int) -> dict[str, Any]:
    item = message("word" * (size // 330))
    token = {"token": "word", "logprob": -0.1, "bytes": [119, 111, 114, 100], "top_logprobs": []}
    item["content"][0]["logprobs"] = [token] * (size // 330)
    return item


def _within(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def _picture(size: int) -> dict[str, Any]:
    said = "iVBORw0KGgo" + "A" * size
    return {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": said}


ITEMS: Mapping[str, Callable[[int], list[dict[str, Any]]]] = MappingProxyType({
    "one text": lambda size: [message("word " * (size // 15))],
    "one text of line ends": lambda size: [message("\n" * (size // 6))],
    "one text of quotes": lambda size: [message("bob@example.com " + '"' * (size // 6))],
    "one text of addresses": lambda size: [message(_addresses(size // 3))],
    "parts": lambda size: [message(*("a" for _ in range(size // 90)))],
    "parts to edit": lambda size: [message(*(_EDITED.format(n) for n in range(size // 100)))],
    "messages": lambda size: [message("a", id=f"m{n}") for n in range(size // 160)],
    "messages to edit": lambda size: [message(_EDITED.format(n), id=f"m{n}") for n in range(size // 180)],
    "thoughts": lambda size: [reasoning(*("a" for _ in range(size // 90)))],
    "thoughts to edit": lambda size: [reasoning(*(_EDITED.format(n) for n in range(size // 100)))],
    "texts of thoughts": lambda size: [reasoning(texts=["a"] * (size // 90))],
    "a call": lambda size: [call("f", json.dumps({"a": "word " * (size // 15)}))],
    "a call to edit": lambda size: [call("f", json.dumps({"a": _addresses(size // 3)}))],
    "a call of many members to edit": lambda size: [
        call("f", json.dumps({f"n{n}": _EDITED.format(n) for n in range(size // 90)}))
    ],
    "a call of numbers": lambda size: [call("f", json.dumps({"a": [n % 977 for n in range(size // 15)]}))],
    "a call of escapes": lambda size: [call("f", json.dumps({"a": "bob@example.com " + '"' * (size // 12)}))],
    "a call of levels": lambda size: [call("f", nested("[", "]", min(size // 3, 3000)))],
    "a call of levels of objects": lambda size: [call("f", _within(min(size // 18, 900)))],
    "calls": lambda size: [call("f", "{}", number=n) for n in range(size // 180)],
    "calls to edit": lambda size: [call("f", f'{{"a":"u{n}@example.com"}}', number=n) for n in range(size // 200)],
    "a custom call": lambda size: [call("f", _addresses(size // 3), form="custom_tool_call")],
    "code": lambda size: [_source("print(1)\n" * (size // 30))],
    "commands": lambda size: [_shell(_lines(size // 3))],
    "searches": lambda size: [search(f"word {n}", number=n) for n in range(size // 180)],
    "a search of many members": lambda size: [
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"queries": _lines(size // 3)}}
    ],
    "annotations": lambda size: [_annotated(size // 3)],
    "log probabilities": lambda size: [_probable(size // 3)],
    "unknown members": lambda size: [{**message("a"), "x": many(lambda n: f"w{n:x}", size // 3)}],
    "unknown members to edit": lambda size: [{**message("a"), "x": many(_EDITED.format, size // 3)}],
    "unknown names": lambda size: [{**message("a"), "x": named(lambda _: 1, size // 3)}],
    "unknown numbers": lambda size: [{**message("a"), "x": many(lambda n: n, size // 3)}],
    "unknown items": lambda size: [{"id": f"x{n}", "type": "strange", "says": "a b"} for n in range(size // 60)],
    "compacted": lambda size: [{"id": "c1", "type": "compaction", "encrypted_content": "QUJD" * (size // 12)}],
    "an image": lambda size: [_picture(size // 3)],
})  # fmt: skip
"""Name -> the items of an answer."""


def _delta(number: int, **more: Any) -> bytes:
    said = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "a", "logprobs": [], **more}
    return event("response.output_text.delta", number, **said)


def _streamed(make: Callable[[int], list[dict[str, Any]]]) -> Make:
    return lambda size: _of(*make(size))


def _told_last(make: Callable[[int], list[dict[str, Any]]]) -> Make:
    return lambda size: _last_word(*make(3 * size // 4))


def _whole(make: Callable[[int], list[dict[str, Any]]]) -> Make:
    return lambda size: whole(*make(3 * size))


STREAMS: Mapping[str, Make] = MappingProxyType({
    **{f"{name}, streamed": _streamed(make) for name, make in ITEMS.items()},
    "letters": _letters,
    "one delta": lambda size: _of(message("word " * (size // 15)), pieces=1),
    "one delta of arguments": lambda size: _of(call("f", json.dumps({"a": "word " * (size // 15)})), pieces=1),
    "a call in letters": lambda size: _of(call("f", json.dumps({"a": _addresses(size // 200)})), pieces=size // 200),
    "an event nobody knows": lambda size: _one_event("response.strange", says=many(lambda n: f"w{n:x}", size)),
    "an event of numbers": lambda size: _one_event("response.strange", says=many(lambda n: n, size)),
    "an event to edit": lambda size: _one_event("response.strange", says=many(_EDITED.format, size)),
    "events nobody knows": lambda size: b"".join(
        event(f"response.e{n}", n, output_index=0, x="a b") for n in range(size // 110)
    ),
    **{
        f"{name}, in the last word alone": _told_last(make)
        for name, make in ITEMS.items()
    },
    "a last word of members": lambda size: _last_word(message("a"), **named(lambda _: "a b", size)),
    "a last word of instructions": lambda size: _last_word(message("a"), instructions="word " * (size // 5)),
    "a last word of tools": lambda size: _last_word(
        message("a"), tools=many(lambda n: {"type": "function", "name": f"f{n}", "parameters": {}}, size)
    ),
    "a last word of metadata": lambda size: _last_word(message("a"), metadata=named(lambda _: "a b", size)),
    "a last word of usage": lambda size: _last_word(message("a"), usage=named(lambda n: n, size)),
    "a first word of instructions": lambda size: (
        b'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":'
        + json.dumps(response(instructions="word " * (size // 5))).encode() + b"}\n\n"
    ),
    "first words": lambda size: b"".join(
        b'data: {"type":"response.in_progress","sequence_number":%d,"response":' % n + whole() + b"}\n\n"
        for n in range(size // 900)
    ),
    "an error": lambda size: event("error", 0, message="x " * (size // 2)),
    "a failure": lambda size: _last_word(
        status="failed", error={"code": "server_error", "message": "x " * (size // 2)}
    ),
    "padding": lambda size: _delta(0, obfuscation="x" * size),
    "lists within lists": lambda size: (
        b'data: {"type":"response.x","x":' + nested("[", "]", min(size, 1800)).encode() + b"}\n\n"
    ),
    "deltas of many parts": lambda size: b"".join(
        _delta(n, content_index=n) for n in range(min(size // 160, 4000))
    ),
    "deltas of many items": lambda size: b"".join(
        _delta(n, output_index=n, item_id=f"msg_{n}") for n in range(min(size // 160, 4000))
    ),
    "items that begin": lambda size: b"".join(
        event("response.output_item.added", n, output_index=n, item=message(id=f"m{n}"))
        for n in range(min(size // 220, 4000))
    ),
})  # fmt: skip
"""Name -> an event stream of about so many bytes."""


WHOLE: Mapping[str, Make] = MappingProxyType({
    **{name: _whole(make) for name, make in ITEMS.items()},
    "members nobody knows": lambda size: whole(message("a"), **named(lambda _: "a b", size)),
    "instructions": lambda size: whole(message("a"), instructions="word " * (size // 5)),
    "tools": lambda size: whole(
        message("a"), tools=many(lambda n: {"type": "function", "name": f"f{n}", "parameters": {}}, size)
    ),
    "metadata": lambda size: whole(message("a"), metadata=named(lambda _: "a b", size)),
    "usage": lambda size: whole(message("a"), usage=named(lambda n: n, size)),
    "no JSON": lambda size: filled(b"[", size),
    "no UTF-8": lambda size: filled(b"\xff", size),
    "an error": lambda size: json.dumps({"error": {"message": "x " * (size // 2)}}).encode(),
})  # fmt: skip
"""Name -> a whole answer of about so many bytes."""


def _said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _shown(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_image", "image_url": url}]}


def _output(number: int, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": text}


REQUESTS: Mapping[str, Make] = MappingProxyType({
    "one text": lambda size: request("word " * (size // 5)),
    "one text to edit": lambda size: request(_addresses(size)),
    "messages": lambda size: request([_said("a") for _ in range(size // 34)]),
    "messages to edit": lambda size: request([_said(_EDITED.format(n)) for n in range(size // 50)]),
    "parts": lambda size: request(
        [{"role": "user", "content": many(lambda n: {"type": "input_text", "text": f"a{n}"}, size)}]
    ),
    "calls": lambda size: request(
        [each for n in range(size // 220) for each in (call("f", "{}", number=n), _output(n, "a b"))]
    ),
    "results to edit": lambda size: request([_output(n, _EDITED.format(n)) for n in range(size // 90)]),
    "items of an answer": lambda size: request([message("a", id=f"m{n}") for n in range(size // 160)]),
    "thoughts": lambda size: request([reasoning("a", id=f"r{n}") for n in range(size // 90)]),
    "tools": lambda size: request(
        "hi", tools=many(lambda n: {"type": "function", "name": f"f{n}", "parameters": {"type": "object"}}, size)
    ),
    "instructions": lambda size: request("hi", instructions=_addresses(size)),
    "a picture": lambda size: request([_shown("data:image/png;base64,iVBORw0KGgo" + "A" * size)]),
    "members nobody knows": lambda size: request("hi", **_named(size)),
    "metadata": lambda size: request("hi", metadata=named(lambda _: "a b", size)),
    "numbers": lambda size: request("hi", xx=many(lambda n: n, size)),
    "an escaped text": lambda size: request('"' * (size // 2) + " u@example.com"),
})  # fmt: skip
"""Name -> a request of about so many bytes."""
