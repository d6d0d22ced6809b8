"""Answers of an upstream that are dear to read: each a form of its own that grows with its size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
END = b'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def event(delta: object, **more: object) -> bytes:
    """Return an event of one choice."""
    return of_choices([{"index": 0, "delta": delta, "finish_reason": None}], **more)


def of_choices(choices: object, **more: object) -> bytes:
    return b"data: " + json.dumps({**HEAD, "choices": choices, **more}, separators=(",", ":")).encode() + b"\n\n"


def filled(piece: bytes, size: int) -> bytes:
    """Return a piece over and over, so many bytes of it."""
    return (piece * (size // len(piece) + 1))[: size // len(piece) * len(piece)]


def many(make: Callable[[int], object], size: int) -> list[object]:
    """Return as many values as fill about `size` bytes of JSON."""
    each = len(json.dumps(make(10_000), separators=(",", ":"))) + 1
    return [make(number) for number in range(max(size // each, 1))]


def named(make: Callable[[int], object], size: int) -> dict[str, object]:
    """Return the same under names that all differ."""
    each = len(json.dumps(make(10_000), separators=(",", ":"))) + 9
    return {f"n{number}": make(number) for number in range(max(size // each, 1))}


def nested(opening: str, closing: str, size: int) -> str:
    """Return so many characters of containers within containers."""
    return opening * (size // 2) + closing * (size // 2)


def _token(_: int) -> object:
    top = [{"token": f"t{n}", "logprob": -1.5, "bytes": [116, 48 + n]} for n in range(5)]
    return {"token": "word", "logprob": -0.1, "bytes": [119, 111, 114, 100], "top_logprobs": top}


def _logprobs(size: int) -> bytes:
    tokens = many(_token, size)
    choice = {"index": 0, "delta": {"content": "word" * len(tokens)}, "logprobs": {"content": tokens}}
    return of_choices([choice])


Make = Callable[[int], bytes]


def _call(number: int) -> object:
    return {"index": number, "id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def _torn(number: int) -> object:
    return {"index": number, "id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{"}}


LEFT_OUT: Mapping[str, str] = MappingProxyType({
    "marks": "\u0336", "zero width characters": "\u200b", "controls": "\x01", "mixed marks": "\u0336\u200d\x01\u0301",
})  # fmt: skip
"""Characters that no view shows behind an ASCII letter."""


def _left_out(chars: str) -> Make:
    """Return what streams a letter, and behind it what is left out, in one piece."""
    return lambda size: event({"content": "a" + chars * (size // len(chars) // 6)})


def _left_out_in_tens(chars: str) -> Make:
    """Return what streams the same in many events."""
    ten = event({"content": (chars * 10)[:10]})
    return lambda size: event({"content": "a"}) + filled(ten, 2 * size)


TEXTS: Mapping[str, str] = MappingProxyType(
    {
        **{
            f"U+{ord(char):04X}": char
            for char in (
                "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e\u3164\u115f\u202e\u202c\u2066\u200e\u2800\u00a0\u3000"
                "\x01\x7f\x85\u2028\ufe00\ufe0f\U000e0100\U000e0151\U000e0001\U000e0041\U000e0034\u0301\u0336\u20dd\ufffd"
                "*_`~#|<>&[(\\%\"'=@.-/+:,!{}$09AaZ \n\r\t"
                "\u6f22\u0436\u05d0\u0e33\u11ab\uff41\u2460\ufdfa\U0001d41a\U0001f600\U0001f1e9\ud83d\ude00"
            )
        },
        **{
            f"a letter and {name}": f"a{char}"
            for name, char in {
                "a space": "\u200b",
                "a joiner": "\u200d",
                "an accent": "\u0301",
                "a stroke": "\u0336",
                "a selector": "\ufe0f",
                "a tag": "\U000e0041",
                "an override": "\u202e",
                "a dash": "-",
                "a star": "*",
                "a dot": ".",
            }.items()
        },
        **{
            f"a digit and {name}": f"4{char}"
            for name, char in {
                "a space": "\u200b",
                "a selector": "\ufe00",
                "a tag": "\U000e0034",
                "an override": "\u202e",
                "a gap": " ",
                "a dash": "-",
                "a dot": ".",
                "a comma": ",",
                "a slash": "/",
                "a colon": ":",
                "a line": "\n",
                "an underscore": "_",
            }.items()
        },
        "an override in tens": "411111\u202e",
        "spaces in tens": "\u200b" * 10 + "a",
        "mixed marks": "\u0336\u200d\x01\u0301",
        "groups of digits": "4111 ",
        "dashed digits": "4111-",
        "pairs": "41 ",
        "octets": "1.2.3.",
        "a list of digits": '"1", ',
        "eyJ": "eyJ",
        "eyJ.": "eyJ.",
        "begun keys": "-----BEGIN ",
        "private keys": "-----BEGIN PRIVATE KEY-----\n",
        "percent": "%41",
        "begun escapes": "\\u00",
        "braced escapes": "\\u{41}",
        "references": "&#65;",
        "ampersands": "&amp;amp;",
        "octal": "\\101",
        "hex": "deadbeef",
        "hex pairs": "de ad ",
        "escaped hex": "\\x41",
        "links": "[](",
        "bold": "**a**",
        "tags": "<b>",
        "begun tags": "<b ",
        "comments": "<!--",
        "letters apart": "k i l l ",
        "leet": "1gn0r3 ",
        "zero": "zero ",
        "begun addresses": "a@",
        "addresses": "a@b.c ",
        "hosts": "http://",
        "www": "www.",
        "tokens": "ghp_",
        "AWS": "AKIA",
        "passwords": "password: ",
        "IBAN": "GB82WEST",
        "phones": "+49 ",
        "families": "\U0001f468\u200d\U0001f469\u200d",
        "base64": "d29yZCB3b3JkIHdvcmQg",
        "numbers that chain": '4111" + "1111 1111" + "1111 ',
        "runs of base64": "AAAAAAAAAAAAAAAA ",
        "jamo": "\u1112\u1161\u11ab",
    }
)
"""What one text is made of -> it, to be said over and over: hidden, begun, escaped, encoded, set apart."""


def said_over(name: str, size: int) -> str:
    """Return a text of about so many bytes."""
    piece = TEXTS[name]
    return piece * (size // len(piece.encode("utf-8", "surrogatepass")))


def told_raw(text: str) -> bytes:
    """Return a text as JSON, with as few escapes as there may be."""
    return json.dumps(text, ensure_ascii=any("\ud800" <= char <= "\udfff" for char in text[:64])).encode()


def streamed_text(text: str) -> bytes:
    """Return what streams a text in one event."""
    return b'data: {"choices":[{"index":0,"delta":{"content":' + told_raw(text) + b"}}]}\n\n"


def whole_text(text: str) -> bytes:
    """Return a whole answer that says a text."""
    return b'{"choices":[{"index":0,"message":{"content":' + told_raw(text) + b'},"finish_reason":"stop"}]}'


STREAMS: Mapping[str, Make] = MappingProxyType({
    "blank lines": lambda size: filled(b"\n", size),
    "blank lines with returns": lambda size: filled(b"\r\n", size),
    "returns": lambda size: filled(b"\r", size),
    "comments": lambda size: filled(b":\n\n", size),
    "one comment": lambda size: b":" + filled(b"x", size) + b"\n\n",
    "lines of comments": lambda size: filled(b":\n", size) + b"\n",
    "fields nobody knows": lambda size: filled(b"x\n", size) + b"\n",
    "lines of data": lambda size: b"data: {\n" + filled(b"data:\n", size) + b"data: }\n\n",
    "lines of data with returns": lambda size: b"data: {\r" + filled(b"data:\r", size) + b"data: }\r\r",
    "other line ends in data": lambda size: b'data: {"a":"' + filled("\u2028".encode(), size) + b'"}\n\n',
    "no UTF-8": lambda size: b"data: " + filled(b"\xff", size) + b"\n\n",
    "an event without end": lambda size: b"data: " + filled(b"x", size),
    "empty events": lambda size: filled(b"data: \n\n", size),
    "empty objects": lambda size: filled(b"data: {}\n\n", size),
    "empty deltas": lambda size: filled(event({}), size),
    "letters": lambda size: filled(event({"content": "a"}), size),
    "one text": lambda size: event({"content": "word " * (size // 5)}),
    **{f"one text of {name}": _left_out(chars) for name, chars in LEFT_OUT.items()},
    **{f"{name} in tens": _left_out_in_tens(chars) for name, chars in LEFT_OUT.items()},
    "one text of escapes": lambda size: b'data: {"choices":[{"index":0,"delta":{"content":"'
        + filled(b"\\u0061", size) + b'"}}]}\n\n',
    "one text of escapes to edit": lambda size: b'data: {"choices":[{"index":0,"delta":{"content":"bob@example.com '
        + filled(b'\\"', size) + b'"}}]}\n\n',
    "one text of line ends": lambda size: event({"content": "\n" * (size // 2)}),
    "one text of lone surrogates": lambda size: b'data: {"choices":[{"index":0,"delta":{"content":"'
        + filled(b"\\ud800", size) + b'"}}]}\n\n',
    "choices": lambda size: of_choices(many(lambda n: {"index": n, "delta": {"content": "a"}}, size)),
    "one choice again and again": lambda size: of_choices(
        many(lambda _: {"index": 0, "delta": {"content": "a"}}, size)
    ),
    "choices that end": lambda size: of_choices(
        many(lambda n: {"index": n, "delta": {"content": "a"}, "finish_reason": "stop"}, size)
    ),
    "a choice for each event": lambda size: b"".join(
        of_choices([{"index": n, "delta": {"content": "a"}}]) for n in range(size // 110)
    ),
    "events of all choices": lambda size: filled(
        of_choices([{"index": n, "delta": {"content": "a"}} for n in range(100)]), size
    ),
    "parts": lambda size: event({"content": many(lambda _: {"type": "text", "text": "a"}, size)}),
    "parts of thoughts": lambda size: event(
        {"content": [{"type": "thinking", "thinking": many(lambda _: {"type": "text", "text": "a"}, size)}]}
    ),
    "details of reasoning": lambda size: event({"reasoning_details": many(lambda n: {"text": "a", "index": n}, size)}),
    "tool calls": lambda size: event({"tool_calls": many(_call, size)}),
    "one tool call again and again": lambda size: event({"tool_calls": many(lambda _: _call(0), size)}),
    "a tool call for each event": lambda size: b"".join(event({"tool_calls": [_call(n)]}) for n in range(size // 180)),
    "torn tool calls": lambda size: b"".join(event({"tool_calls": [_torn(n)]}) for n in range(min(size // 160, 1024))),
    "arguments as objects": lambda size: event(
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": named(lambda n: n, size)}}]}
    ),
    "calls with arguments as objects": lambda size: event({"tool_calls": many(
        lambda n: {"index": n, "function": {"name": "f", "arguments": {"a": n}}}, size
    )}),
    "numbers": lambda size: event({"x": many(lambda _: 1, size)}),
    "long numbers": lambda size: event({"x": many(lambda n: 10**17 + n, size)}),
    "one long number": lambda size: b'data: {"choices":[],"x":' + filled(b"7", size) + b"}\n\n",
    "strings nobody knows": lambda size: event({"x": many(lambda n: f"w{n:x}", size)}),
    "names nobody knows": lambda size: event({"x": named(lambda _: 1, size)}),
    "members nobody knows": lambda size: event({}, **named(lambda _: "a b", size)),
    "one long string nobody knows": lambda size: event({"x": "word " * (size // 5)}),
    "objects in a list": lambda size: event({"x": many(lambda _: {}, size)}),
    "lists in a list": lambda size: event({"x": many(lambda _: [], size)}),
    "lists within lists": lambda size: (
        b'data: {"choices":[],"x":' + nested("[", "]", min(size, 1800)).encode() + b"}\n\n"
    ),
    "lists without end": lambda size: b'data: {"choices":[],"x":' + filled(b"[", size) + b"}\n\n",
    "white space": lambda size: b'data: {"choices":[],"x":' + filled(b" ", size) + b"1}\n\n",
    "log probabilities": _logprobs,
    "log probabilities nobody knows": lambda size: of_choices(
        [{"index": 0, "delta": {"content": "a"}, "logprobs": {"x": many(lambda n: [n, "a"], size)}}]
    ),
    "token ids": lambda size: of_choices(
        [{"index": 0, "delta": {"content": "a"}, "token_ids": many(lambda n: n, size)}]
    ),
    "addresses in fields nobody knows": lambda size: event({"x": many(lambda n: f"u{n}@example.com", size)}),
    "addresses": lambda size: event({"content": "bob@example.com " * (size // 16)}),
    "addresses in letters": lambda size: b"".join(
        event({"content": piece}) for piece in "bob@example.com " * (size // 1200)
    ),
    "an error": lambda size: b"data: " + json.dumps({"error": {"message": "x " * (size // 2)}}).encode() + b"\n\n",
    "usage": lambda size: of_choices([], usage=named(lambda n: n, size)),
})  # fmt: skip
"""Name -> an event stream of about so many bytes, before its end."""


def _whole(message: object, **more: object) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "choices": [choice], **more}, separators=(",", ":")
    ).encode()


def _said(content: object, **more: object) -> bytes:
    return _whole({"role": "assistant", "content": content, **more})


WHOLE: Mapping[str, Make] = MappingProxyType({
    "one text": lambda size: _said("word " * (size // 5)),
    "one text of line ends": lambda size: _said("\n" * (size // 2)),
    "one text of other letters": lambda size: _said("\u6f22\u5b57" * (size // 12)),
    "parts": lambda size: _said(many(lambda _: {"type": "text", "text": "a"}, size)),
    "tool calls": lambda size: _said(None, tool_calls=many(_call, size)),
    "choices": lambda size: json.dumps({"choices": many(
        lambda n: {"index": n, "message": {"content": "a"}, "finish_reason": "stop"}, size
    )}).encode(),
    "numbers": lambda size: _said("a", x=many(lambda _: 1, size)),
    "numbers that all differ": lambda size: _said("a", x=many(lambda n: n, size)),
    "lists of numbers": lambda size: _said("a", x=many(lambda n: [n % 7, n % 250, 3], size)),
    "log probabilities of another text": lambda size: json.dumps({"choices": [{
        "index": 0, "message": {"content": "x"}, "logprobs": {"content": [_token(0) for _ in range(size // 330)]},
    }]}).encode(),
    "arguments as objects": lambda size: _said(None, tool_calls=[
        {"index": 0, "function": {"name": "f", "arguments": named(lambda n: [n], size)}}
    ]),
    "parts to edit": lambda size: _said(many(lambda n: {"type": "text", "text": f"u{n}@example.com"}, size)),
    "strings to edit": lambda size: _said("a", x=many(lambda n: f"u{n}@example.com", size)),
    "one text of escapes": lambda size: b'{"choices":[{"message":{"content":"bob@example.com '
        + filled(b'\\"', size) + b'"}}]}',
    "objects": lambda size: _said("a", x=many(lambda _: {}, size)),
    "names": lambda size: _said("a", x=named(lambda _: 1, size)),
    "strings": lambda size: _said("a", x=many(lambda n: f"w{n:x}", size)),
    "one long string": lambda size: _said("a", x="word " * (size // 5)),
    "log probabilities": lambda size: json.dumps({"choices": [{
        "index": 0, "message": {"content": "word" * (size // 330)}, "finish_reason": "stop",
        "logprobs": {"content": [_token(0) for _ in range(size // 330)]},
    }]}).encode(),
    "addresses": lambda size: _said("bob@example.com " * (size // 16)),
    "no JSON": lambda size: filled(b"[", size),
    "lists": lambda size: b'{"choices":[],"x":[' + filled(b"[],", size) + b"1]}",
    "an error": lambda size: json.dumps({"error": {"message": "x " * (size // 2)}}).encode(),
    "no UTF-8": lambda size: filled(b"\xff", size),
})  # fmt: skip
