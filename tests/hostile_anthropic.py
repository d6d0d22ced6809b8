"""Answers and requests of the Messages API that are dear to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.hostile_answers import Make, filled, many, named, nested
from tests.messages import answer, begun, call, delta, end, event, head, over, request, text, thought, whole

_EDITED = "u{}@example.com"


def _words(size: int) -> str:
    return "word " * (size // 5)


def _addresses(size: int) -> str:
    return "bob@example.com " * (size // 16)


def _named(size: int) -> dict[str, Any]:
    return named(lambda _: "a b", size)


def _pieces(size: int, said: str = "a") -> list[str]:
    """Return as many pieces as come in events of about so many bytes."""
    return [said] * max(size // 130, 1)


def _blocks(size: int, *, said: str = "a") -> bytes:
    return answer(*(text(n, said.format(n)) for n in range(max(size // 330, 1))))


def _calls(size: int, given: str) -> bytes:
    blocks = (call(n, "f", given.format(n), id=f"toolu_{n}") for n in range(max(size // 520, 1)))
    return answer(*blocks, reason="tool_use")


def _cited(number: int) -> bytes:
    citation = {
        "type": "char_location",
        "cited_text": f"word {number}",
        "document_index": 0,
        "start_char_index": number,
    }
    return delta(0, "citations_delta", citation=citation)


def _searched(size: int, said: str) -> list[bytes]:
    """Return a block that says all of a search at once."""
    results = many(
        lambda n: {"type": "web_search_result", "url": f"http://h{n}.org/", "title": said.format(n), "page_age": None},
        size,
    )
    return [begun(0, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=results), over(0)]


def _between(*events: bytes) -> bytes:
    return b"".join([head(), *events, end()])


STREAMS: Mapping[str, Make] = MappingProxyType({
    "letters": lambda size: answer(text(0, *_pieces(size))),
    "one text": lambda size: answer(text(0, _words(size))),
    "one text of line ends": lambda size: answer(text(0, "\n" * (size // 2))),
    "one text to edit": lambda size: answer(text(0, _addresses(size))),
    "one text of quotes to edit": lambda size: answer(text(0, "bob@example.com " + '"' * (size // 2))),
    "addresses in pieces": lambda size: answer(text(0, *_pieces(size, "bob@example.com "))),
    "blocks": _blocks,
    "blocks to edit": lambda size: _blocks(size, said=_EDITED),
    "thoughts": lambda size: answer(*(thought(n, "a") for n in range(max(size // 460, 1)))),
    "one thought to edit": lambda size: answer(thought(0, _addresses(size))),
    "a long signature": lambda size: answer(thought(0, "a", signature="QUJD" * (size // 4))),
    "hidden thoughts": lambda size: answer([begun(0, type="redacted_thinking", data="QUJD" * (size // 4)), over(0)]),
    "calls": lambda size: _calls(size, "{{}}"),
    "calls to edit": lambda size: _calls(size, '{{"a":"u{}@example.com"}}'),
    "one call": lambda size: answer(call(0, "f", json.dumps({"a": _words(size)})), reason="tool_use"),
    "one call to edit": lambda size: answer(call(0, "f", json.dumps({"a": _addresses(size)})), reason="tool_use"),
    "one call of many members": lambda size: answer(
        call(0, "f", json.dumps(named(lambda n: n, size))), reason="tool_use"
    ),
    "one call of many members to edit": lambda size: answer(
        call(0, "f", json.dumps(named(_EDITED.format, size))), reason="tool_use"
    ),
    "one call in pieces": lambda size: answer(
        call(0, "f", '{"a":"', *_pieces(size, "b@c.org "), '"}'), reason="tool_use"
    ),
    "one call of levels": lambda size: answer(
        call(0, "f", nested("[", "]", min(size, 3000))), reason="tool_use"
    ),
    "input at once": lambda size: answer(
        [begun(0, type="tool_use", id="toolu_1", name="f", input=named(lambda _: "a b", size)), over(0)]
    ),
    "results of a search": lambda size: answer(_searched(size, "word {}")),
    "results of a search to edit": lambda size: answer(_searched(size, _EDITED)),
    "citations": lambda size: answer([begun(0, type="text", text=""), *map(_cited, range(size // 190)), over(0)]),
    "pings": lambda size: _between(filled(event("ping"), size)),
    "blocks that begin": lambda size: _between(*(begun(n, type="text", text="") for n in range(size // 130))),
    "deltas nobody knows": lambda size: answer(
        [begun(0, type="text", text=""), *(delta(0, f"d{n}", x="a b") for n in range(size // 120)), over(0)]
    ),
    "events nobody knows": lambda size: _between(*(event(f"e{n}", x="a b") for n in range(size // 60))),
    "an event nobody knows": lambda size: _between(event("strange", x=many(lambda n: f"w{n:x}", size))),
    "an event of numbers": lambda size: _between(event("strange", x=many(lambda n: n, size))),
    "an event to edit": lambda size: _between(event("strange", x=many(_EDITED.format, size))),
    "a block nobody knows": lambda size: answer([begun(0, type="strange", **named(lambda _: "a b", size)), over(0)]),
    "members of a delta": lambda size: answer(
        [begun(0, type="text", text=""), delta(0, "text_delta", text="a", **named(lambda _: "a b", size)), over(0)]
    ),
    "a first word of members": lambda size: head(**named(lambda _: "a b", size)) + end(),
    "a first word of usage": lambda size: head(usage=named(lambda n: n, size)) + end(),
    "ends": lambda size: head() + filled(end(), size),
    "an error": lambda size: head() + event("error", error={"type": "api_error", "message": "x " * (size // 2)}),
})  # fmt: skip
"""Name -> an event stream of about so many bytes."""


def _said(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def _used(number: int, given: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "f", "input": given}


def _thinking(number: int) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"a {number}", "signature": "c2ln"}


WHOLE: Mapping[str, Make] = MappingProxyType({
    "one text": lambda size: whole(_said(_words(size))),
    "one text to edit": lambda size: whole(_said(_addresses(size))),
    "one text of quotes to edit": lambda size: whole(_said("bob@example.com " + '"' * (size // 2))),
    "blocks": lambda size: whole(*(_said("a") for _ in range(size // 32))),
    "blocks to edit": lambda size: whole(*(_said(_EDITED.format(n)) for n in range(size // 48))),
    "thoughts": lambda size: whole(*(_thinking(n) for n in range(size // 66))),
    "calls": lambda size: whole(*(_used(n, {"a": n}) for n in range(size // 76))),
    "calls to edit": lambda size: whole(*(_used(n, {"a": _EDITED.format(n)}) for n in range(size // 90))),
    "one call of many members": lambda size: whole(_used(1, named(lambda _: "a b", size))),
    "one call of many members to edit": lambda size: whole(_used(1, named(_EDITED.format, size))),
    "numbers": lambda size: whole(_used(1, {"a": many(lambda n: n, size)})),
    "levels": lambda size: whole(_used(1, {"a": json.loads(nested("[", "]", min(size, 200)))})),
    "blocks nobody knows": lambda size: whole(*({"type": "strange", "x": f"a {n}"} for n in range(size // 34))),
    "members nobody knows": lambda size: whole(_said("a"), **_named(size)),
    "usage": lambda size: whole(_said("a"), usage=named(lambda n: n, size)),
    "no JSON": lambda size: filled(b"[", size),
    "an error": lambda size: json.dumps(
        {"type": "error", "error": {"type": "api_error", "message": "x " * (size // 2)}}
    ).encode(),
})  # fmt: skip
"""Name -> a whole answer of about so many bytes."""


def _turns(size: int, said: str) -> bytes:
    turns = [{"role": ("user", "assistant")[n % 2], "content": said.format(n)} for n in range(max(size // 42, 1))]
    return request("hi", messages=turns)


def _result(number: int, said: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": said}


REQUESTS: Mapping[str, Make] = MappingProxyType({
    "one text": lambda size: request(_words(size)),
    "one text to edit": lambda size: request(_addresses(size)),
    "messages": lambda size: _turns(size, "a"),
    "messages to edit": lambda size: _turns(size, _EDITED),
    "blocks": lambda size: request([_said(f"a{n}") for n in range(size // 34)]),
    "results": lambda size: request([_result(n, f"a {n}") for n in range(size // 76)]),
    "results to edit": lambda size: request([_result(n, _EDITED.format(n)) for n in range(size // 86)]),
    "a system text": lambda size: request("hi", system=_addresses(size)),
    "system texts": lambda size: request("hi", system=[_said(f"a {n}") for n in range(size // 34)]),
    "tools": lambda size: request(
        "hi", tools=many(lambda n: {"name": f"f{n}", "description": f"a {n}", "input_schema": {"type": "object"}}, size)
    ),
    "a picture": lambda size: request([{
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" + "A" * (size // 4 * 4)},
    }]),
    "a document": lambda size: request([
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": _addresses(size)}}
    ]),
    "members nobody knows": lambda size: request("hi", **_named(size)),
    "metadata": lambda size: request("hi", metadata=named(lambda _: "a b", size)),
    "numbers": lambda size: request("hi", xx=many(lambda n: n, size)),
    "an escaped text": lambda size: request('"' * (size // 2) + " u@example.com"),
})  # fmt: skip
"""Name -> a request of about so many bytes."""
