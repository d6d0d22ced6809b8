"""Messages of tools and their servers that are dear to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.hostile_answers import Make, filled, many, named, nested
from tests.mcp import call, event, notice, request, result, said


def _words(size: int) -> str:
    return "word " * (size // 5)


def _addresses(size: int) -> str:
    return "bob@example.com " * (size // 16)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _given(values: object) -> bytes:
    return request("tools/call", {"name": "echo", "arguments": values})


def _mail(number: int) -> str:
    return f"u{number}@example.com"


def _tool(number: int, says: str = "") -> dict[str, Any]:
    fields = {"a": {"type": "string", "description": f"what {number} is called"}}
    schema = {"type": "object", "properties": fields, "required": ["a"]}
    return {"name": f"tool_{number}", "description": f"does {number} {says}", "inputSchema": schema}


def _twice(value: Any) -> bytes:
    """Return a result that says a value, and as a text once more."""
    return result(content=[_text(json.dumps(value))], structuredContent=value)


RESULTS: Mapping[str, Make] = MappingProxyType({
    "one text": lambda size: said(_words(size)),
    "one text of line ends": lambda size: said("\n" * (size // 2)),
    "one text to edit": lambda size: said(_addresses(size)),
    "one text of quotes to edit": lambda size: said("bob@example.com " + '"' * (size // 2)),
    "one text of JSON": lambda size: said(json.dumps(many(lambda n: n, size))),
    "one text of other letters": lambda size: said("\u6f22\u5b57" * (size // 12)),
    "parts": lambda size: result(content=many(lambda n: _text(f"a{n}"), size)),
    "parts to edit": lambda size: result(content=many(lambda n: _text(_mail(n)), size)),
    "parts of JSON": lambda size: result(content=many(lambda n: _text(f'{{"a":{n}}}'), size)),
    "pictures": lambda size: result(
        content=many(lambda _: {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, size)
    ),
    "a picture": lambda size: result(
        content=[{"type": "image", "data": "iVBORw0KGgo" + "A" * size, "mimeType": "image/png"}]
    ),
    "resources": lambda size: result(
        content=many(lambda n: {"type": "resource", "resource": {"uri": f"file:///{n}", "text": "a b"}}, size)
    ),
    "resources to edit": lambda size: result(
        content=many(lambda n: {"type": "resource", "resource": {"uri": f"file:///{n}", "text": _mail(n)}}, size)
    ),
    "links": lambda size: result(
        content=many(lambda n: {"type": "resource_link", "uri": f"http://h{n}.org/a", "name": f"n{n}"}, size)
    ),
    "a value of names": lambda size: result(content=[], structuredContent=named(lambda _: 1, size)),
    "a value of words": lambda size: result(content=[], structuredContent=named(lambda _: "a b", size)),
    "a value of numbers": lambda size: result(content=[], structuredContent={"a": many(lambda n: n, size)}),
    "a value of one number": lambda size: result(content=[], structuredContent={"a": many(lambda _: 1, size)}),
    "a value of fractions": lambda size: result(content=[], structuredContent={"a": many(lambda n: n / 7, size)}),
    "a value of rows": lambda size: result(content=[], structuredContent={"a": many(lambda n: [n, n % 7], size)}),
    "a value of objects": lambda size: result(
        content=[], structuredContent={"a": many(lambda n: {"id": n, "mail": "none", "ok": True}, size)}
    ),
    "a value to edit": lambda size: result(content=[], structuredContent={"a": many(_mail, size)}),
    "a value to edit over each border": lambda size: result(
        content=[_text("x john")], structuredContent={"a": many(lambda _: "@example.com w john", size)}
    ),
    "a value of one text": lambda size: result(content=[], structuredContent={"a": _words(size)}),
    "a value of one text to edit": lambda size: result(content=[], structuredContent={"a": _addresses(size)}),
    "a value of levels": lambda size: result(
        content=[], structuredContent={"a": json.loads(nested("[", "]", min(size, 200)))}
    ),
    "a value said twice": lambda size: _twice({"a": many(lambda n: {"id": n, "says": "a b"}, size // 2)}),
    "a value to edit said twice": lambda size: _twice({"a": many(lambda n: {"id": n, "mail": _mail(n)}, size // 2)}),
    "a value of many to edit, each said twice": lambda size: result(
        content=[_text(json.dumps({"mail": _mail(n)})) for n in range(size // 110)],
        structuredContent={"a": [{"mail": _mail(n)} for n in range(size // 110)]},
    ),
    "a value to edit beside many": lambda size: result(
        content=many(lambda n: _text(f'{{"a":{n}}}'), size), structuredContent={"mail": _mail(1)}
    ),
    "what nobody knows": lambda size: result(content=[], **named(lambda _: "a b", size)),
    "what nobody knows to edit": lambda size: result(content=[], **named(_mail, size)),
    "tools": lambda size: result(tools=many(_tool, size)),
    "tools to edit": lambda size: result(tools=many(lambda n: _tool(n, _mail(n)), size)),
    "tools to refuse": lambda size: result(tools=many(lambda n: _tool(n, "obey the hidden order"), size)),
    "tools of one name": lambda size: result(tools=many(lambda _: _tool(1), size)),
    "a tool of many members": lambda size: result(tools=[{**_tool(1), "inputSchema": {
        "type": "object", "properties": named(lambda n: {"type": "string", "description": f"the {n}"}, size),
    }}]),
    "a tool of a long text": lambda size: result(tools=[_tool(1, _words(size))]),
    "a tool of choices": lambda size: result(tools=[{**_tool(1), "inputSchema": {
        "type": "object", "properties": {"a": {"enum": many(lambda n: f"choice {n}", size)}},
    }}]),
    "prompts": lambda size: result(prompts=many(lambda n: {"name": f"p{n}", "description": "a b"}, size)),
    "a prompt": lambda size: result(
        messages=many(lambda n: {"role": "user", "content": _text(f"word {n}")}, size)
    ),
    "a list of resources": lambda size: result(
        resources=many(lambda n: {"uri": f"file:///{n}", "name": f"n{n}", "description": "a b"}, size)
    ),
    "contents": lambda size: result(contents=many(lambda n: {"uri": f"file:///{n}", "text": "a b"}, size)),
    "contents to edit": lambda size: result(contents=many(lambda n: {"uri": f"file:///{n}", "text": _mail(n)}, size)),
    "a file": lambda size: result(contents=[{"uri": "file:///a", "blob": "aGVsbG8gd29ybGQg" * (size // 16)}]),
    "files": lambda size: result(contents=many(lambda n: {"uri": f"file:///{n}", "blob": "aGVsbG8gd29ybGQg"}, size)),
    "completions": lambda size: result(completion={"values": many(lambda n: f"word {n}", size)}),
    "an error": lambda size: json.dumps(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": _words(size), "data": {}}}
    ).encode(),
    "data of an error": lambda size: json.dumps(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no", "data": named(lambda _: "a b", size)}}
    ).encode(),
    "a batch": lambda size: b"[" + b",".join([said("a")] * (size // 90)) + b"]",
    "white space": lambda size: filled(b" ", size) + said("a"),
    "white space within": lambda size: said("a")[:-1] + filled(b" ", size) + b"}",
    "lists without end": lambda size: b'{"jsonrpc":"2.0","id":1,"result":{"a":' + filled(b"[", size),
    "no UTF-8": lambda size: b'{"jsonrpc":"2.0","id":1,"result":{"a":"' + filled(b"\xff", size) + b'"}}',
    "lone surrogates": lambda size: b'{"jsonrpc":"2.0","id":1,"result":{"a":"' + filled(b"\\ud800", size) + b'"}}',
    "one long number": lambda size: b'{"jsonrpc":"2.0","id":1,"result":{"a":' + filled(b"7", size) + b"}}",
    "one long name": lambda size: result(**{"word " * (size // 5): 1}),
    "members of one name": lambda size: b'{"jsonrpc":"2.0","id":1,"result":{' + b'"a":1,' * (size // 6) + b'"b":2}}',
})  # fmt: skip
"""Name -> the answer to a call, of about so many bytes."""

STREAMS: Mapping[str, Make] = MappingProxyType({
    "notices": lambda size: b"".join(
        event(notice("notifications/progress", progressToken=1, progress=n, message="a b")) for n in range(size // 140)
    ) + event(said("a")),
    "notices to edit": lambda size: b"".join(
        event(notice("notifications/message", level="info", data=_mail(n))) for n in range(size // 130)
    ) + event(said("a")),
    "a long notice": lambda size: event(notice("notifications/message", level="info", data=_words(size)))
        + event(said("a")),
    "requests": lambda size: b"".join(
        event(request("sampling/createMessage", {"messages": [], "maxTokens": 7}, n)) for n in range(size // 130)
    ) + event(said("a")),
    "names of events": lambda size: b"".join(event(notice("notifications/x", a=n), str(n)) for n in range(size // 100))
        + event(said("a")),
    "empty events": lambda size: filled(b"data: \n\n", size) + event(said("a")),
    "comments": lambda size: filled(b":\n\n", size) + event(said("a")),
    "blank lines": lambda size: filled(b"\n", size) + event(said("a")),
    "events nobody knows": lambda size: filled(b"event: x\ndata: {}\n\n", size) + event(said("a")),
    "lines of data": lambda size: b"data: [\n" + filled(b"data: 1,\n", size) + b"data: 1]\n\n" + event(said("a")),
})  # fmt: skip
"""Name -> what a server streams, of about so many bytes."""

CALLS: Mapping[str, Make] = MappingProxyType({
    "one argument": lambda size: call(says=_words(size)),
    "one argument to edit": lambda size: call(says=_addresses(size)),
    "arguments": lambda size: _given(named(lambda _: "a b", size)),
    "arguments to edit": lambda size: _given(named(_mail, size)),
    "numbers": lambda size: call(a=many(lambda n: n, size)),
    "rows": lambda size: call(a=many(lambda n: [n, n % 7], size)),
    "objects": lambda size: call(a=many(lambda n: {"id": n, "says": "a b"}, size)),
    "levels": lambda size: call(a=json.loads(nested("[", "]", min(size, 200)))),
    "members nobody knows": lambda size: request("tools/call", {"name": "f", **named(lambda _: "a b", size)}),
    "a batch": lambda size: b"[" + b",".join([call(a=1)] * (size // 100)) + b"]",
    "no JSON": lambda size: filled(b"[", size),
    "white space": lambda size: filled(b" ", size) + call(a=1),
    "a long name of a tool": lambda size: call(name="word" * (size // 4)),
    "a method nobody knows": lambda size: request("x/y", named(lambda _: "a b", size)),
    "an escaped text": lambda size: call(a='"' * (size // 2) + " u@example.com"),
    "a result": lambda size: said(_words(size)),
    "a sampled text": lambda size: result(role="assistant", model="m", content=_text(_addresses(size))),
})  # fmt: skip
"""Name -> what a caller sends, of about so many bytes."""
