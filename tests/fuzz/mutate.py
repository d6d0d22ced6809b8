"""Makes hostile inputs from good ones: mutations of bytes, of tokens, of lines and of JSON trees."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

MAX_BYTES = 20_000

_JSON = (
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u0000", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"null",
    b"true", b"-0", b"1e999", b"-1", b"NaN", b"Infinity", b"9" * 40, b"[" * 300, b'{"a":' * 300, b'""', b"\xef\xbb\xbf",
    b'"content":', b'"index":', b'"choices":', b'"delta":', b'"tool_calls":', b'"n":', b'"stream":', b'"logprobs":',
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x7f", b"\x1b[2J", b" " * 50,
    b'"jsonrpc":"2.0",', b'"id":7,', b'"method":"tools/call",', b'"result":{', b'"structuredContent":', b'"params":',
)  # fmt: skip
_SSE = (
    b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"data", b"data:", b"data: ", b"data: [DONE]\n\n", b"event: ",
    b"event: error\n", b"id: \x00\n", b"retry: 1\n", b": keep-alive\n", b": ", b"\xef\xbb\xbf", b"data: {}\n\n",
    b'data: {"error": {"message": "x"}}\n\n', b"code-12", b"joe@example.com", b"zero risk", b"guaranteed", b"idiot",
    b"4111 1111 1111 1111", "é😀漢\u200b".encode(), b"data: \n\n", b"x" * 3000,
)  # fmt: skip
_YAML = (
    b"- ", b": ", b"\n  ", b"\n", b"{", b"}", b"[", b"]", b"&a ", b"*a", b"<<: *a", b"!!python/object:os.system ",
    b"!x ", b"? ", b"| \n", b"> \n", b"'", b'"', b"#", b"---\n", b"...\n", b"%YAML 9.9\n", b"\t", b"yes", b"0777",
    b"1:30", b".inf", b"~", b"2026-01-01", b"\\0", b"\\x00", b'"\\0"', b'"\\ud800"', b'"\\U0010ffff"', b"\x00",
    b"\xff", b"\xfe\xff", b"a" * 300, b"[" * 40, b"{a: " * 40, b"\xe2\x80\xa8", b"\x85", b"99999999999999999999",
    b"-1", b"1e400", b"(?P<a>", b"a{1,1000}", b"(a|b)*", b".*", b"(?i)", b"\\p{L}", b"[^", b"{env: HOME}",
    b"{file: key}", b"{file: .}", b"[::1]:1", b"http://[::1", b"http://a:b@c:99999/\xc3\xa4?#", b"builtin:../x",
    b"group:all",
)  # fmt: skip
_CEL = (
    b"(", b")", b"[", b"]", b"{", b"}", b"?", b":", b".", b",", b"&&", b"||", b"!", b"!!", b"-", b"--", b"==", b"!=",
    b"<=", b" in ", b"has(", b"size(", b".matches('", b".all(x, ", b".exists(y, ", b".map(x, x)", b".filter(x, true)",
    b"context", b"request.model", b"request.tools", b"scores.toxicity", b"findings.EMAIL", b"stream.tokens", b"null",
    b"true", b"1u", b"0x1F", b"1e400", b"9" * 30, b"'", b'"', b"'''", b"r'", b"b'\\xff'", b"'\\ud800'", b"\\u0000",
    b"timestamp('2026-01-01T00:00:00Z')", b"duration('1h')", b"type(", b"dyn(", b"int(", b"(" * 300, b"[" * 300,
    b"!" * 300, b" + 1" * 200, b" && true" * 100, b"'(a*)*$'", b"\n", b"\t", b"// x\n", b"\xff", b"\xf0\x9f\x98\x80",
)  # fmt: skip
_TEXT = (
    b"{", b"}", b"{{", b"}}", b"|", b".", b"{model}", b"{context.a.b}", b"{context.a|b}", b"{sources}", b"{|}", b"{}",
    b"{context}", b"{context.}", b"{context." + b"a." * 20, b"\x1b", b"\xe2\x80\xae", b"\xff", b"{" * 300, b"}" * 300,
    b"{rule_id}", b"{{{model}}}", b"\n",
)  # fmt: skip
_ONNX = (
    b"\x00", b"\xff" * 10, b"\x80" * 11, b"\x3a\x00", b"\x70\x01", b"\x6a\x00", b"ai.onnx", b"com.microsoft", b"evil",
    b"location", b"../../etc/passwd", b"\x0a\x08location\x12\x01x", b"\x3a\x02" * 70, b"\x0a\x7f", b"\x0b", b"\x0c",
)  # fmt: skip
DICTIONARIES: Mapping[str, Sequence[bytes]] = MappingProxyType(
    {"json": _JSON, "sse": _JSON + _SSE, "yaml": _YAML, "cel": _CEL, "text": _TEXT, "onnx": _ONNX}
)
KINDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("sse", "chat_event", "completions_event", "exchange", "cuts", "mcp_exchange", "mcp_cuts"), "sse"
        ),
        **dict.fromkeys(("config", "policy", "scenario"), "yaml"),
        "condition": "cel",
        "template": "text",
        "graph": "onnx",
    }
)
"""Target -> dictionary; the others are JSON."""
_VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 1.5, 2**63, 2**70, 10**30, "", "x", "\ud800", "\u0000", "code-12 ", [], {}, [[]], [None],
    {"": ""}, "a" * 300, "😀", [{"index": 0}], {"index": "0"}, 1e308, {"text": "hi"}, "data", ["text", "text"],
)  # fmt: skip


class Mutator:
    """Draws inputs for one target; equal seeds draw equal inputs."""

    def __init__(self, target: str, corpus: Sequence[bytes], dice: random.Random) -> None:
        """Start from the seeds of `corpus`, of which there must be one."""
        self._corpus = corpus
        self._tokens = DICTIONARIES[KINDS.get(target, "json")]
        self._dice = dice
        self._bytes: tuple[Callable[[bytearray], None], ...] = (
            self._flip, self._set, self._insert_token, self._insert_token, self._replace_token, self._cut, self._repeat,
            self._truncate, self._splice, self._swap_lines, self._repeat_line,
        )  # fmt: skip

    def draw(self) -> bytes:
        """Return the next input."""
        data = self._dice.choice(self._corpus)
        if self._dice.random() < 0.4:
            data = self._change_tree(data)
        if self._dice.random() < 0.75:
            work = bytearray(data)
            for _ in range(self._dice.choice((1, 1, 2, 3, 6))):
                self._dice.choice(self._bytes)(work)
            data = bytes(work)
        return data[:MAX_BYTES]

    def _place(self, data: bytearray) -> int:
        return self._dice.randint(0, len(data))

    def _range(self, data: bytearray) -> tuple[int, int]:
        start = self._place(data)
        return start, min(len(data), start + self._dice.choice((1, 2, 5, 20, 100)))

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._dice.randrange(len(data))] ^= 1 << self._dice.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._dice.randrange(len(data))] = self._dice.randrange(256)

    def _insert_token(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self._dice.choice(self._tokens)

    def _replace_token(self, data: bytearray) -> None:
        start, end = self._range(data)
        data[start:end] = self._dice.choice(self._tokens)

    def _cut(self, data: bytearray) -> None:
        start, end = self._range(data)
        del data[start:end]

    def _repeat(self, data: bytearray) -> None:
        start, end = self._range(data)
        data[start:start] = data[start:end] * self._dice.choice((1, 2, 30))

    def _truncate(self, data: bytearray) -> None:
        del data[self._place(data) :]

    def _splice(self, data: bytearray) -> None:
        other = self._dice.choice(self._corpus)
        data[self._place(data) :] = other[self._dice.randint(0, len(other)) :]

    def _swap_lines(self, data: bytearray) -> None:
        lines = bytes(data).split(b"\n")
        one, two = self._dice.randrange(len(lines)), self._dice.randrange(len(lines))
        lines[one], lines[two] = lines[two], lines[one]
        data[:] = b"\n".join(lines)

    def _repeat_line(self, data: bytearray) -> None:
        lines = bytes(data).split(b"\n")
        lines.insert(self._dice.randrange(len(lines) + 1), self._dice.choice(lines))
        data[:] = b"\n".join(lines)

    def _change_tree(self, data: bytes) -> bytes:
        """Change one JSON document of the input: all of it, a line, or what follows `data: ` in a line."""
        lines = data.split(b"\n")
        for _ in range(4):
            number = self._dice.randrange(len(lines))
            whole = self._dice.random() < 0.2
            text = data if whole else lines[number]
            head = text[: text.find(b"{")] if b"{" in text else text
            try:
                tree = json.loads(text[len(head) :])
            except (ValueError, RecursionError):
                continue
            for _ in range(self._dice.choice((1, 1, 2, 4))):
                tree = self._change(tree)
            changed = head + json.dumps(tree, ensure_ascii=self._dice.random() < 0.5).encode("utf-8", "surrogatepass")
            if whole:
                return changed
            lines[number] = changed
            return b"\n".join(lines)
        return data

    def _change(self, tree: object) -> object:
        """Change one place of a JSON tree: another value, a missing member, a doubled item, another name."""
        if isinstance(tree, dict) and tree and self._dice.random() < 0.85:
            name = self._dice.choice(list(tree))
            match self._dice.randrange(8):
                case 0:
                    del tree[name]
                case 1:
                    tree[name.upper() if self._dice.random() < 0.5 else name + "_"] = tree[name]
                case _:
                    tree[name] = self._change(tree[name])
            return tree
        if isinstance(tree, list) and tree and self._dice.random() < 0.85:
            place = self._dice.randrange(len(tree))
            match self._dice.randrange(8):
                case 0:
                    del tree[place]
                case 1:
                    tree.insert(place, tree[place])
                case _:
                    tree[place] = self._change(tree[place])
            return tree
        value = self._dice.choice(_VALUES)
        return json.loads(json.dumps(value)) if isinstance(value, dict | list) else value
