"""Scenario files of the bench: how many streams, how fast, and what they say; and the bytes that a model would send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from checkstream.bench.scenario import TEXTS

FOLDER = Path(__file__).with_name("scenarios")
_Positive = Annotated[int, msgspec.Meta(ge=1)]


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of `scenarios/`."""

    streams: _Positive
    per_s: float | None = None
    """Events a second of each stream; None: as fast as they are read."""
    tokens: _Positive = 1
    """Tokens of one event."""
    window_s: Annotated[float, msgspec.Meta(gt=0)]
    """How long one measurement lasts."""
    rounds: _Positive
    probes: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Further streams, one after the other, whose first events are timed while the others run."""
    modes: tuple[Literal["direct", "pass", "guarded", "safety", "default"], ...]
    """What takes turns: `proxy.MODES`."""
    prompt: str
    answer: str
    """File with the text that every stream says over and over."""


def load(name: str) -> Scenario:
    """Read `scenarios/NAME.yaml`.

    Raises:
        msgspec.ValidationError: the file does not have the form.
    """
    return msgspec.yaml.decode((FOLDER / f"{name}.yaml").read_bytes(), type=Scenario)


def tokens(text: str) -> list[str]:
    """Cut a text before each space, as models' tokens for common English words do; joined they are the text."""
    found: list[str] = []
    for char in text:
        if char == " " or not found:
            found.append(char)
        else:
            found[-1] += char
    return found


def answer(name: str) -> list[str]:
    """Return the tokens of a text of `checkstream/bench/texts`, its lines joined to one, paragraphs kept."""
    paragraphs = (TEXTS / name).read_text("utf-8").strip().split("\n\n")
    return tokens("\n\n".join(" ".join(part.split()) for part in paragraphs) + "\n\n")


def joined(said: list[str], count: int) -> list[str]:
    """Return tokens put together, so many to a piece."""
    return ["".join(said[at : at + count]) for at in range(0, len(said), count)]


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """Return one event as OpenAI sends it: about 245 bytes for a word."""
    body = {
        "id": "chatcmpl-Bq7w0ZyT4kMZ3v0yCkT1oHnXhY2dS",
        "object": "chat.completion.chunk",
        "created": 1751500000,
        "model": "gpt-4.1-mini",
        "system_fingerprint": "fp_6f2eabb9a5",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def request(model: str, prompt: str) -> bytes:
    """Return a chat request for a stream."""
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": prompt}]
    return json.dumps({"model": model, "stream": True, "messages": messages}).encode()


FIRST = event({"role": "assistant", "content": ""})
LAST = event({}, "stop")
DONE = b"data: [DONE]\n\n"
