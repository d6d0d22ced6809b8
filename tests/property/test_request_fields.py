"""Every string of a request is text: a secret in any documented field is found, and goes on to no server (G31)."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.surfaces import SURFACES
from tests.chance import examples
from tests.guarded import plan
from tests.playbook import play

SECRETS = ["ann.lee@x-corp.io", "4111111111111111", "AKIAZ7QX2B4N6M8P0R1T", "Bluebird"]
RULES = """  - {name: p, id: P-1, stage: [ingress], entities: [EMAIL, CREDIT_CARD, AWS_ACCESS_KEY], phrases: [Bluebird],
     actions: [{type: redact}]}
"""
PLAN = plan(RULES)
WAV = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt " + bytes(range(256))).decode()
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "a town", "enum": ["Oslo", "Bergen"], "pattern": "^a"}},
    "required": ["city"],
    "$defs": {"Day": {"const": "monday", "default": "tuesday", "title": "day", "examples": ["friday"]}},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
CHAT: dict[str, Any] = {
    "model": "gpt-4o-mini-2024-07-18",
    "messages": [
        {"role": "developer", "content": "be kind", "name": "lead"},
        {"role": "system", "content": [{"type": "text", "text": "be short"}]},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "https://img.example/a.png?size=3", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "data:text/plain;base64,aGVsbG8gd29ybGQ="}},
                {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-abc"}},
                {"type": "file", "file": {"file_data": "data:text/csv,a%3Bb", "filename": "a.csv"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "no"}],
            "refusal": "I can't",
            "audio": {"id": "audio_1"},
            "tool_calls": [CALL, {"id": "call_2", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
        },
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"},
        {"role": "function", "name": "f", "content": "ok"},
    ],
    "audio": {"voice": "alloy", "format": "mp3"},
    "function_call": {"name": "f"},
    "functions": [{"name": "f", "description": "does it", "parameters": SCHEMA}],
    "metadata": {"team": "north"},
    "modalities": ["text"],
    "prediction": {"type": "content", "content": [{"type": "text", "text": "so it goes"}]},
    "prompt_cache_key": "key-1",
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "weather", "description": "of today", "schema": SCHEMA, "strict": True},
    },
    "safety_identifier": "u1",
    "service_tier": "auto",
    "stop": ["END"],
    "stream_options": {"include_obfuscation": False},
    "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [CALL]}},
    "tools": [
        {"type": "function", "function": {"name": "get_weather", "description": "of a town", "parameters": SCHEMA}},
        {
            "type": "custom",
            "custom": {
                "name": "sh",
                "description": "a shell",
                "format": {"type": "grammar", "grammar": {"definition": "start: WORD", "syntax": "lark"}},
            },
        },
    ],
    "user": "u1",
    "verbosity": "low",
    "web_search_options": {
        "search_context_size": "low",
        "user_location": {"type": "approximate", "approximate": {"country": "NO", "city": "Oslo", "timezone": "CET"}},
    },
}
COMPLETION: dict[str, Any] = {
    "model": "gpt-3.5-turbo-instruct",
    "prompt": ["say it", "say more"],
    "suffix": "the end",
    "stop": "END",
    "user": "u1",
    "stream_options": {"include_usage": True},
    "logit_bias": {"50256": -100},
}
EMBEDDING = {"model": "text-embedding-3-small", "input": ["one", "two"], "user": "u1", "encoding_format": "float"}
MODERATION = {
    "model": "omni-moderation-latest",
    "input": [
        {"type": "text", "text": "is it bad?"},
        {"type": "image_url", "image_url": {"url": "https://img.example/a.png?size=3"}},
    ],
}
RERANKING = {"model": "rerank-v3.5", "query": "which?", "documents": ["one", {"text": "two", "title": "b"}]}
MESSAGES: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 64,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [
        {"role": "user", "content": "Read this."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "It is here."},
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "A page."},
                    "title": "Page",
                    "context": "From the shelf.",
                    "citations": {"enabled": True},
                },
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "A part."}]}},
                {"type": "image", "source": {"type": "url", "url": "https://h/i.png"}},
                {
                    "type": "search_result",
                    "source": "https://h/s",
                    "title": "S",
                    "content": [{"type": "text", "text": "Found."}],
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I look.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "sun", "n": [1]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": False,
                    "content": [{"type": "text", "text": "It shines."}],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "Nothing."},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sun"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {
                            "type": "web_search_result",
                            "title": "Sun",
                            "url": "https://h/sun",
                            "encrypted_content": "ZW5j",
                            "page_age": "a day",
                        }
                    ],
                },
                {
                    "type": "code_execution_tool_result",
                    "tool_use_id": "srvtoolu_2",
                    "content": {
                        "type": "code_execution_result",
                        "stdout": "out",
                        "stderr": "err",
                        "return_code": 0,
                        "content": [{"type": "code_execution_output", "file_id": "file_1"}],
                    },
                },
                {
                    "type": "text",
                    "text": "So it is.",
                    "citations": [
                        {
                            "type": "char_location",
                            "cited_text": "A page.",
                            "document_index": 0,
                            "document_title": "Page",
                            "start_char_index": 0,
                            "end_char_index": 7,
                        }
                    ],
                },
            ],
        },
    ],
    "tools": [
        {
            "name": "look_up",
            "description": "Looks it up.",
            "input_schema": {"type": "object", "properties": {"q": {"type": "string", "description": "What."}}},
        },
        {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["h.example"]},
    ],
    "tool_choice": {"type": "tool", "name": "look_up"},
    "metadata": {"user_id": "u-1"},
    "stop_sequences": ["END"],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "mcp_servers": [{"type": "url", "url": "https://h/mcp", "name": "m", "authorization_token": "tok"}],
    "container": "container_1",
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"properties": {"a": {}}}}},
    "service_tier": "auto",
    "betas": ["files-api-2025-04-14"],
}
BODIES = {
    "anthropic.messages": MESSAGES,
    "openai.chat": CHAT,
    "openai.completions": COMPLETION,
    "openai.embeddings": EMBEDDING,
    "openai.moderations": MODERATION,
    "cohere.rerank": RERANKING,
}
NAMED_BY_CALLERS = {"metadata", "properties", "$defs"}
"""Objects whose members callers name."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where strings stand in a body, and with `None` at the end where callers name members."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, (*path, i))
    elif isinstance(value, dict):
        if path and path[-1] in NAMED_BY_CALLERS:
            yield (*path, None)
        for name, inner in value.items():
            yield from places(inner, (*path, name))


PLACES = [(surface, path) for surface, body in BODIES.items() for path in places(body)]
LETTER = "Dear all, this goes on for a while before it comes to what it is about. {} And then it goes on. " * 3
FORMS: dict[str, Callable[[str], str]] = {
    "alone": lambda secret: secret,
    "within": lambda secret: f"see {secret} now",
    "base64": lambda secret: base64.b64encode(LETTER.replace("{}", secret, 1).encode()).decode(),
    "data": lambda secret: f"data:text/plain;base64,{base64.b64encode(f'to {secret} '.encode()).decode()}",
    "mixed data": lambda secret: (
        f"data:application/json;base64,{base64.b64encode(b'xyz ' + bytes([0, 7, 255, 32]) + secret.encode()).decode()}"
    ),
    "address": lambda secret: f"https://img.example/a.png?size=3&for={quote(secret)}",
    "encoded address": lambda secret: "https://img.example/?q=" + "".join(f"%{ord(char):02x}" for char in secret),
}


def planted(body: dict[str, Any], path: tuple[Any, ...], text: str) -> dict[str, Any]:
    """Return a body with a text at a place."""
    made = copy.deepcopy(body)
    found: Any = made
    for name in path[:-1]:
        found = found[name]
    if path[-1] is None:
        found[text] = {"type": "string"} if path[-2] != "metadata" else "a"
    else:
        found[path[-1]] = text
    return made


def readings(text: str) -> Iterator[str]:
    """Yield what a server could make of a body."""
    yield text
    yield unquote(text)
    for run in re.findall(r"[A-Za-z0-9+/_-]{16,}", text):
        for skip in range(4):
            part = run[skip:].translate(str.maketrans("-_", "+/"))
            yield base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1")


def forwarded(surface: str, body: dict[str, Any]) -> bytes | None:
    return play(SURFACES[surface], PLAN, json.dumps(body).encode(), [], streaming=False, status=500).forwarded


@pytest.mark.parametrize("surface", BODIES)
def test_g31_a_calm_request_with_all_documented_fields_goes_on_as_it_came(surface: str) -> None:
    assert forwarded(surface, BODIES[surface]) == json.dumps(BODIES[surface]).encode()


@settings(max_examples=examples(250), deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(SECRETS), st.sampled_from(sorted(FORMS)))
def test_g31_a_secret_in_any_documented_field_goes_on_to_no_server(
    place: tuple[str, tuple[Any, ...]], secret: str, form: str
) -> None:
    surface, path = place
    text = FORMS[form](secret)
    if text == "Bluebird" and path[-1] in (None, "model"):
        return  # one word is no secret as a model's name, nor as that of a schema's member, of which there are many
    out = forwarded(surface, planted(BODIES[surface], path, text))
    assert out is None or not any(secret in reading for reading in readings(out.decode()))
