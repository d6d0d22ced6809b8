"""What the scripted LLM says where it is asked as Ollama is: the same scenarios, as objects of Ollama's form.

Source: Ollama's API reference, "Generate a chat message" and "Generate a response".
"""

from __future__ import annotations

import msgspec

from checkstream.demo.answer import Event, Json, Token, told
from checkstream.demo.asked import Asked
from checkstream.demo.scenario import Scenario
from checkstream.demo.script import Choice

_MOMENT = "2023-11-14T22:13:20.000000000Z"
_NS_A_TOKEN = 10_000_000
_THINKING = ("reasoning_content", "reasoning")


def events(asked: Asked, scenario: Scenario) -> list[Event]:
    """Return the objects of a streamed answer, in order."""
    choice, tokens, cut = told(asked, scenario, 0)
    found = [Event(_object(asked, {_member(token): token.text}), token=True) for token in tokens if _speaks(token)]
    if calls := _calls(choice, tokens, cut=cut):
        found.append(Event(_object(asked, {"tool_calls": calls}), token=True))
    return [*found, Event(_object(asked, {}) | _end(asked, len(tokens), cut=cut), token=False)]


def whole(asked: Asked, scenario: Scenario) -> Json:
    """Return the body of an answer that is not streamed."""
    choice, tokens, cut = told(asked, scenario, 0)
    said: Json = {}
    for token in filter(_speaks, tokens):
        said[_member(token)] = said.get(_member(token), "") + token.text
    if calls := _calls(choice, tokens, cut=cut):
        said["tool_calls"] = calls
    return _object(asked, said) | _end(asked, len(tokens), cut=cut)


def failure_body(message: str) -> Json:
    """Return Ollama's error object."""
    return {"error": message}


def _speaks(token: Token) -> bool:
    return token.kind != "tool"


def _member(token: Token) -> str:
    return "thinking" if token.kind in _THINKING else "content"


def _object(asked: Asked, said: Json) -> Json:
    message: Json = {"role": "assistant", "content": "", **said}
    if asked.api == "ollama.generate":
        told = {"response": message["content"], **{name: said[name] for name in ("thinking",) if name in said}}
    else:
        told = {"message": message}
    return {"model": asked.model, "created_at": _MOMENT, **told, "done": False}


def _calls(choice: Choice, tokens: list[Token], *, cut: bool) -> list[Json]:
    """Return the calls of tools; an answer that was cut off has none, since half a call is no JSON."""
    found: list[Json] = []
    for index, tool in enumerate(choice.tool_calls if not cut else ()):
        arguments = "".join(token.text for token in tokens if token.kind == "tool" and token.call == index)
        found.append(
            {"function": {"index": index, "name": tool.name, "arguments": msgspec.json.decode(arguments or "{}")}}
        )
    return found


def _end(asked: Asked, tokens: int, *, cut: bool) -> Json:
    return {
        "done": True,
        "done_reason": "length" if cut else "stop",
        "total_duration": (tokens + 1) * _NS_A_TOKEN,
        "load_duration": _NS_A_TOKEN,
        "prompt_eval_count": asked.prompt_tokens,
        "prompt_eval_duration": _NS_A_TOKEN,
        "eval_count": tokens,
        "eval_duration": tokens * _NS_A_TOKEN,
    }
