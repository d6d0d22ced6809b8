"""Events that differ in their text alone: those of servers in common use are told by their bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkstream.core.terms import Channel, Unit
from checkstream.core.wire.moulds import Moulds
from checkstream.core.wire.ollama.surface import CHAT as OLLAMA
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.surface import Frame, Surface
from checkstream.core.wire.surfaces import SURFACES

CHAT, TEXT = OpenAIChat(), OpenAICompletions()
HEAD = '"id":"c-1","object":"chat.completion.chunk","created":1726000000'
SERVERS: dict[str, tuple[Surface, str]] = {
    "openai": (
        CHAT,
        (
            f'{{{HEAD},"model":"gpt-4o","service_tier":"default","system_fingerprint":"fp_1","choices":[{{"index":0,"delta":'
            '{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"%s"}'
        ),
    ),
    "azure": (
        CHAT,
        (
            '{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"delta":{"content":%s},'
            f'"finish_reason":null,"index":0,"logprobs":null}}],{HEAD},"model":"g","system_fingerprint":null}}'
        ),
    ),
    "vllm": (
        CHAT,
        (
            f'{{{HEAD},"model":"m","choices":[{{"index":1,"delta":{{"content":%s}},"logprobs":null,"finish_reason":null,'
            '"token_ids":null}]}'
        ),
    ),
    "reasoning": (
        CHAT,
        (
            f'{{{HEAD},"model":"m","choices":[{{"index":0,"delta":{{"content":null,"reasoning_content":%s}},'
            '"logprobs":null,"finish_reason":null}]}'
        ),
    ),
    "llama.cpp": (
        CHAT,
        (
            '{"choices":[{"finish_reason":null,"index":0,"delta":{"content":%s}}],"created":1,"id":"x","model":"q",'
            '"system_fingerprint":"b4400-1","object":"chat.completion.chunk"}'
        ),
    ),
    "ollama": (
        CHAT,
        (
            f'{{{HEAD},"model":"l","system_fingerprint":"fp_ollama","choices":[{{"index":0,"delta":{{"role":"assistant",'
            '"content":%s},"finish_reason":null}]}'
        ),
    ),
    "openrouter": (
        CHAT,
        (
            f'{{{HEAD},"provider":"DeepInfra","model":"x/y","choices":[{{"index":0,"delta":{{"role":"assistant","content":%s}},'
            '"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}'
        ),
    ),
    "arguments": (
        CHAT,
        (
            f'{{{HEAD},"model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":%s}}}}]}},'
            '"finish_reason":null}]}'
        ),
    ),
    "completions": (
        TEXT,
        f'{{{HEAD},"choices":[{{"index":0,"text":%s,"logprobs":null,"finish_reason":null}}],"model":"m"}}',
    ),
}


RESPONSES = {
    "openai": (
        '{"type":"response.output_text.delta","sequence_number":%(number)s,"item_id":"m","output_index":0,'
        '"content_index":0,"delta":%(text)s,"logprobs":[],"obfuscation":"%(padding)s"}'
    ),
    "vllm": (
        '{"content_index":0,"delta":%(text)s,"item_id":"m","logprobs":[],"output_index":0,"sequence_number":%(number)s,'
        '"type":"response.output_text.delta"}'
    ),
    "both behind": (
        '{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":%(text)s,'
        '"logprobs":[],"obfuscation":"%(padding)s","sequence_number":%(number)s}'
    ),
    "spaced": (
        '{"type": "response.output_text.delta", "sequence_number": %(number)s, "item_id": "m", "output_index": 0, '
        '"content_index": 0, "delta": %(text)s, "logprobs": []}'
    ),
    "none": '{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%(text)s,"item_id":"m"}',
}


def event(server: str, text: str, number: object, padding: str = "aZ9") -> Frame:
    data = (RESPONSES[server] % {"text": json.dumps(text), "number": number, "padding": padding}).encode()
    kind = "response.output_text.delta"
    return Frame(raw=b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n", data=data, event=kind)


@pytest.mark.parametrize("server", sorted(RESPONSES))
@pytest.mark.parametrize("text", [" sun", 'q"\\\n\u20ac\U0001f600', '{"sequence_number":7}'])
@pytest.mark.parametrize("number", [5, 10, 0, 999_999_999])
def test_g34_events_may_differ_in_their_numbers(server: str, text: str, number: int) -> None:
    reading = SURFACES["openai.responses"].receiving(None)
    moulds, first = Moulds(), event(server, "The \u20ac", 4)
    moulds.learn(first, reading.read_event(first))
    found = event(server, text, number, "kq7Ww")
    quick, slow = moulds.read(found), reading.read_event(found)
    assert quick is not None
    assert (quick.deltas, quick.choices, quick.number, quick.raw) == (slow.deltas, slow.choices, slow.number, slow.raw)
    assert slow.number == (None if server == "none" else number)
    assert b"kq7Ww" not in slow.raw


@pytest.mark.parametrize("server", sorted(RESPONSES.keys() - {"none"}))
@pytest.mark.parametrize(
    "number", ["-1", "01", "00", "1.0", "1e3", "1000000000", "4111111111111111", '"7"', "", "true", "\u0665"]
)
def test_g34_what_is_no_number_of_an_event_fits_no_mould(server: str, number: str) -> None:
    moulds, first = Moulds(), event(server, "The ", 4)
    moulds.learn(first, SURFACES["openai.responses"].receiving(None).read_event(first))
    assert moulds.read(event(server, "moon", 5)) is not None
    assert moulds.read(event(server, "moon", number)) is None


def test_a_number_in_events_that_have_none_is_read() -> None:
    line = '{"choices":[{"index":0,"delta":{"content":"%s"}}],"sequence_number":%s}'
    moulds, first = Moulds(), Frame(b"", (line % ("sun", 4)).encode())
    moulds.learn(first, msgspec.structs.replace(CHAT.read_event(first), extras=()))
    assert moulds.read(Frame(b"", (line % ("moon", 4)).encode())) is not None
    assert moulds.read(Frame(b"", (line % ("moon", 5)).encode())) is None


def frame(server: str, text: str, padding: str = "aZ9") -> Frame:
    template = SERVERS[server][1]
    data = template % ((json.dumps(text), padding) if template.count("%s") == 2 else json.dumps(text))
    return Frame(raw=b"data: " + data.encode() + b"\n\n", data=data.encode())


def learnt(server: str) -> Moulds:
    moulds, first = Moulds(), frame(server, "The ")
    moulds.learn(first, SERVERS[server][0].read_event(first))
    return moulds


@pytest.mark.parametrize("server", sorted(SERVERS))
@pytest.mark.parametrize("text", ["\\ud83d", "a\\ude00", "\\udc00 b"])
def test_an_event_with_half_a_character_is_read_in_full_since_another_may_have_the_rest(server: str, text: str) -> None:
    assert learnt(server).read(frame(server, json.loads(f'"{text}"'), "kq7Ww")) is None


@pytest.mark.parametrize("server", sorted(SERVERS))
@pytest.mark.parametrize("text", [" sun", 'q"\\\n\u20ac\U0001f600', '{"content":"x"}'])
def test_g34_an_event_that_differs_in_its_text_is_read_as_the_surface_reads_it(server: str, text: str) -> None:
    found = frame(server, text, "kq7Ww")
    quick, slow = learnt(server).read(found), SERVERS[server][0].read_event(found)
    assert quick is not None
    assert (quick.deltas, quick.choices, quick.finished, quick.raw) == (slow.deltas, slow.choices, (), slow.raw)
    assert quick.raw == frame(server, text, "xxxxx").raw


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"c-1"', b'"joe@example.com"'),
        (b'"finish_reason":null', b'"finish_reason":"stop"'),
        (b'"logprobs":null', b'"logprobs":{"content":[]}'),
        (b'"usage":null', b'"usage":{"total_tokens":3}'),
        (b'"content":', b'"content" :'),
        (b'"index":0', b'"index":1'),
        (b'" sun"', b'""'),
        (b'" sun"', b'" sun'),
        (b'" sun"', b'" su\xffn"'),
        (b'" sun"', b'" sun","content":"moon"'),
        (b'"aZ9"', b'"see here"'),
        (b'"aZ9"', b'"a","x":"b"'),
    ],
)
def test_g34_an_event_that_differs_in_anything_else_fits_no_mould(old: bytes, new: bytes) -> None:
    data = (frame("openai", " sun").data or b"").replace(old, new)
    assert learnt("openai").read(Frame(raw=data, data=data)) is None
    assert learnt("openai").read(Frame(raw=data, data=data, event="error")) is None


@pytest.mark.parametrize("padding", ["", "aZ9", "kq7Ww", "4111111111111111", "AKIAIOSFODNN7EXAMPLQ" * 9])
def test_g34_padding_leaves_as_no_more_than_its_length(padding: str) -> None:
    found = frame("openai", " sun", padding)
    for unit in (CHAT.read_event(found), learnt("openai").read(found)):
        assert unit is not None
        assert unit.raw == frame("openai", " sun", "x" * len(padding)).raw


def test_no_mould_is_made_of_an_event_that_says_more_than_a_text() -> None:
    moulds, found = Moulds(), frame("vllm", "x")
    unit = CHAT.read_event(found)
    others: list[dict[str, Any]] = [{"finished": (1,)}, {"usage": True}, {"unscanned": ("x",)}, {"deltas": ()}]
    for more in (*others, {"deltas": unit.deltas * 2}):
        moulds.learn(found, msgspec.structs.replace(unit, **more))
        assert moulds.read(found) is None
    moulds.learn(found, unit)
    assert moulds.read(found) == Unit(raw=found.raw, deltas=unit.deltas, choices=(1,))
    assert unit.deltas[0].channel == Channel("content", 1)


@pytest.mark.parametrize(
    ("moment", "known"),
    [
        ("2025-01-01T10:00:01.5Z", True),
        ("2026-12-31T23:59:59.999999999-07:00", True),
        ("2025-01-01T10:00:00.4111111111111111Z", False),
        ("4111 1111 1111 1111", False),
        ("mail joe@example.com", False),
        ("2025-13-01T10:00:00Z", False),
        ("", False),
        ("2025-01-01T10:00:00Z" + "0" * 100, False),
    ],
)
def test_events_may_differ_in_the_moment_that_they_tell(moment: str, known: bool) -> None:
    line = '{"model":"m","created_at":"%s","message":{"role":"assistant","content":"%s"},"done":false}'
    moulds = Moulds()
    first = Frame(b"", (line % ("2025-01-01T10:00:00.123456789Z", "Moon")).encode())
    moulds.learn(first, msgspec.structs.replace(OLLAMA.read_event(first), extras=()))
    data = (line % (moment, "潮汐 \\n x")).encode()
    unit = moulds.read(Frame(b"data: " + data + b"\n\n", data))
    assert (unit is not None) is known
    if unit is not None:
        read = OLLAMA.read_event(Frame(unit.raw, data))
        assert (unit.deltas, unit.choices) == (read.deltas, read.choices)
        assert unit.raw == b"data: " + data + b"\n\n"
