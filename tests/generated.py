"""One answer said on every surface: what a chance makes up, streamed as the scripted model streams it, and guarded.

The secret is written in letters that stand nowhere else, neither in calm texts nor in any API's own words, so that one
byte of it in what leaves is a leak.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from checkstream.core.wire.framing import LINES
from checkstream.core.wire.surfaces import SURFACES
from checkstream.demo import answer, anthropic, ollama, responses, wire
from checkstream.demo.asked import Api, Asked, read_asked
from checkstream.demo.scenario import Scenario
from checkstream.demo.script import Choice, Script, Split, ToolCall
from tests.guarded import plan
from tests.playbook import Played, play

APIS: dict[str, Api] = {
    "openai.chat": "chat",
    "openai.completions": "completions",
    "openai.responses": "openai.responses",
    "anthropic.messages": "anthropic.messages",
    "ollama.chat": "ollama.chat",
    "ollama.generate": "ollama.generate",
}
"""Surface -> what the scripted model calls it."""
SECRET = "\u0448\u0438\u0444\u0440 \u0436\u0443\u043a"
LETTERS = frozenset(SECRET) - {" "}
_CALM = [
    "The tides",
    " follow",
    " the moon.",
    "\n",
    " \u00c4rger, \u6f6e\u6c50",
    " \U0001f30a!",
    ' "so',
    "} {",
    " 1.5",
    "\\",
]
_RULE = "  - {{name: r, id: R-1, stage: [midstream], phrases: ['{}'], actions: [{{{}}}]}}\n"
RULES = {
    "redact": _RULE.format(SECRET, "type: redact, text: '[GONE]'"),
    "rewrite": _RULE.format(SECRET, f"type: rewrite_span, words: {{'{SECRET}': expected}}, scope: span"),
    "stop": _RULE.format(SECRET, "type: stop, message: Halt."),
}
"""What may be done about the secret."""
PLANS = {name: plan(rules) for name, rules in RULES.items()}


def made_up(chance: random.Random, *, secret: bool) -> Script:
    """Return an answer of texts and calls; the secret stands in one of them or more, if it is there at all."""
    choice = _choice(chance)
    others = [_choice(chance) for _ in range(chance.choice([0, 0, 1]))]
    if secret:
        choice = _with_secret(chance, choice)
    split = Split(by="random", size=chance.randint(1, 12), seed=chance.randrange(1000))
    return Script(choices=[choice, *others], split=split, usage=chance.random() < 0.5)


def _choice(chance: random.Random) -> Choice:
    calls = [
        ToolCall(name="look_up", arguments=_arguments(chance, _text(chance)))
        for _ in range(chance.choice([0, 0, 1, 2]))
    ]
    thoughts = _text(chance) if chance.random() < 0.4 else None
    refusal = _text(chance) if chance.random() < 0.2 else None
    return Choice(content=_text(chance) or "Well.", reasoning_content=thoughts, refusal=refusal, tool_calls=calls)


def _text(chance: random.Random) -> str:
    return "".join(chance.choice(_CALM) for _ in range(chance.randint(1, 6)))


def _arguments(chance: random.Random, text: str) -> str:
    return json.dumps({"about": text, "n": [1, {"deep": text}]}, ensure_ascii=chance.random() < 0.5)


def _with_secret(chance: random.Random, choice: Choice) -> Choice:
    def hidden(text: str) -> str:
        at = chance.randint(0, len(text))
        return f"{text[:at]} {SECRET} {text[at:]}"

    places = ["content", *(name for name in ("reasoning_content", "refusal") if getattr(choice, name)), "tool_calls"]
    for place in chance.sample(places, chance.randint(1, len(places))):
        if place == "tool_calls":
            made = ToolCall(name="look_up", arguments=_arguments(chance, hidden(_text(chance))))
            choice = msgspec.structs.replace(choice, tool_calls=[*choice.tool_calls, made])
        else:
            choice = msgspec.structs.replace(choice, **{place: hidden(getattr(choice, place))})
    return choice


def speaks_of_it(surface: str, script: Script) -> bool:
    """Return whether the secret is said on a surface: not all have calls, and one has nothing but text."""
    choice = script.choices[0]
    said = [choice.content]
    if surface != "openai.completions":
        said += [choice.reasoning_content, choice.refusal]
    if surface not in {"openai.completions", "ollama.generate"}:
        said += [json.dumps(json.loads(str(call.arguments)), ensure_ascii=False) for call in choice.tool_calls]
    return any(SECRET in str(text) for text in said)


def request(surface: str, script: Script, *, stream: bool = True) -> bytes:
    """Return the question that the answer answers."""
    said: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
    if surface in {"openai.completions", "ollama.generate"}:
        said = {"prompt": "hi"}
    elif surface == "openai.responses":
        said = {"input": "hi"}
    if surface in {"openai.chat", "openai.completions"}:
        said |= {"n": len(script.choices)} | ({"stream_options": {"include_usage": True}} if stream else {})
    more = {"max_tokens": 4096} if surface == "anthropic.messages" else {}
    return json.dumps({"model": "m", "stream": stream, **said, **more}).encode()


def told(surface: str, script: Script, *, stream: bool = True) -> bytes:
    """Return the bytes of the model."""
    asked: Asked = read_asked(APIS[surface], request(surface, script, stream=stream))
    scenario = Scenario("made-up", script)
    speech: Any = {"openai.responses": responses, "anthropic.messages": anthropic}.get(surface, answer)
    speech = ollama if surface.startswith("ollama") else speech
    if not stream:
        return wire.whole(speech.whole(asked, scenario), script)[0].data
    framed = wire.lines if SURFACES[surface].framing is LINES else wire.stream
    return b"".join(piece.data for piece in framed(speech.events(asked, scenario), script))


def cut(chance: random.Random, data: bytes) -> list[bytes]:
    """Return bytes as the network may cut them."""
    edges = sorted({0, len(data), *(chance.randint(0, len(data)) for _ in range(chance.randint(0, 8)))})
    return [data[low:high] for low, high in itertools.pairwise(edges)]


def guarded(surface: str, action: str, script: Script, pieces: list[bytes], *, stream: bool = True) -> Played:
    """Return what becomes of an answer under a rule."""
    asked = request(surface, script, stream=stream)
    return play(SURFACES[surface], PLANS[action], asked, pieces, streaming=stream)


def sent(out: Played) -> bytes:
    """Return what the caller gets."""
    return out.joined if out.reply is None else out.reply.body


def events(surface: str, data: bytes, *, stream: bool = True) -> Iterator[Any]:
    """Yield each event's JSON, as a client reads it; of a whole answer, the body."""
    if not stream:
        yield json.loads(data)
        return
    for line in data.decode().split("\n"):
        text = (
            line
            if SURFACES[surface].framing is LINES
            else line.removeprefix("data: ")
            if line.startswith("data: ")
            else ""
        )
        if text and text != "[DONE]":
            yield json.loads(text)
