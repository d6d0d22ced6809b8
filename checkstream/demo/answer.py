"""What the scripted LLM says: a script and a request give the events of a stream, or one whole body.

Both are made from the same tokens, so joined they say the same. Nothing here depends on a clock or on chance:
`id` and `created` follow from the scenario's name, and figures such as `logprob` from the token's position.
Source: the OpenAI API reference, "The chat completion chunk object", "The chat completion object",
"The completion object" and "Error codes".
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from checkstream.demo.asked import Asked
from checkstream.demo.scenario import Scenario
from checkstream.demo.script import Choice, Failure, Split, Text

CREATED = 1_700_000_000
FINGERPRINT = "fp_scripted"

Json = dict[str, Any]
Kind = Literal["reasoning_content", "reasoning", "content", "refusal", "tool"]
_TEXTS: tuple[Kind, ...] = ("reasoning_content", "reasoning", "content", "refusal")


class Event(msgspec.Struct, frozen=True):
    """One event of an answer, before it is bytes."""

    payload: Json
    token: bool
    """Carries a token, and so comes after the script's delay for one."""
    name: str = ""
    """Its type, where the API names them; such streams say their end themselves."""


class Token(msgspec.Struct, frozen=True):
    """One piece of what is said."""

    kind: Kind
    text: str
    place: int
    """Position among the choice's tokens of this kind."""
    call: int = 0
    """Index of the tool call."""


def tokens(text: Text, split: Split) -> Sequence[str]:
    """Return the tokens of a text; joined they are the text again."""
    if isinstance(text, list):
        return text
    if split.by == "whole" or not text:
        return [text] if text else []
    if split.by == "words":
        words = _words(text)
        return ["".join(words[at : at + split.size]) for at in range(0, len(words), split.size)]
    chance = random.Random(split.seed)  # noqa: S311 - repeatable cuts, not a secret
    found = []
    at = 0
    while at < len(text):
        size = split.size if split.by == "chars" else chance.randint(1, split.size)
        found.append(text[at : at + size])
        at += size
    return found


def _words(text: str) -> list[str]:
    """Cut before each run of white space that follows a word."""
    starts = [0, *(at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace())]
    return [text[start:end] for start, end in itertools.pairwise([*starts, len(text)])]


def events(asked: Asked, scenario: Scenario) -> list[Event]:
    """Return the events of a streamed answer, in order, without inserted events and terminator."""
    told = [_Told(asked, scenario, index) for index in range(asked.choices)]
    found = []
    for turn in itertools.zip_longest(*(choice.deltas() for choice in told)):
        found += [Event(_around(asked, scenario, [choice]), token) for choice, token in filter(None, turn)]
    if asked.usage_wanted and scenario.script.usage:
        for event in found:
            event.payload["usage"] = None
        found.append(Event(_around(asked, scenario, []) | {"usage": _usage(asked, told)}, token=False))
    return found


def whole(asked: Asked, scenario: Scenario) -> Json:
    """Return the body of an answer that is not streamed."""
    told = [_Told(asked, scenario, index) for index in range(asked.choices)]
    body = _around(asked, scenario, [choice.whole() for choice in told])
    if scenario.script.usage:
        body["usage"] = _usage(asked, told)
    return body


def _around(asked: Asked, scenario: Scenario, choices: list[Json]) -> Json:
    kind = {"chat": "chat.completion.chunk" if asked.streaming else "chat.completion"}.get(asked.api, "text_completion")
    return {
        "id": f"{'chatcmpl' if asked.api == 'chat' else 'cmpl'}-{scenario.name}",
        "object": kind,
        "created": CREATED,
        "model": asked.model,
        "system_fingerprint": FINGERPRINT,
        "choices": choices,
        **scenario.script.extra.event,
    }


def _usage(asked: Asked, told: Sequence[_Told]) -> Json:
    reasoning = sum(choice.reasoning_tokens for choice in told)
    completion = sum(len(choice.tokens) for choice in told)
    usage: Json = {
        "prompt_tokens": asked.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": asked.prompt_tokens + completion,
    }
    if asked.api == "chat":
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return usage


class _Told:
    """One choice of one answer: its tokens, told in pieces or as a whole."""

    def __init__(self, asked: Asked, scenario: Scenario, index: int) -> None:
        script = scenario.script
        self._asked = asked
        self._extra = script.extra
        self._index = index
        self._choice = script.choices[index % len(script.choices)]
        _, self.tokens, cut = told(asked, scenario, index)
        self.reasoning_tokens = sum(token.kind.startswith("reasoning") for token in self.tokens)
        calls = self._choice.tool_calls and asked.api != "completions"  # which knows none
        self._finish = self._choice.finish_reason or ("tool_calls" if calls else "stop")
        if cut:
            self._finish = "length"

    def deltas(self) -> Iterator[tuple[Json, bool]]:
        """Yield the choice object of each event, and whether it carries a token."""
        if self._asked.api == "completions":
            for at, token in enumerate(self.tokens):
                yield self._legacy(token.text, self._legacy_logprobs(at, at + 1), None), True
            yield self._legacy("", None, self._finish), False
            return
        opening = None if self._choice.content is None else ""
        yield self._chunk({"role": "assistant", "content": opening, "refusal": None}), False
        calls = iter(self._calls())
        named = -1
        for token in self.tokens:
            if token.kind == "tool":
                while named < token.call:  # the name stands in an event of its own, before the first fragment
                    named = next(calls)
                    yield self._named(named), False
                fragment = {"index": token.call, "function": {"arguments": token.text}}
                yield self._chunk({"tool_calls": [fragment]}), True
            else:
                yield self._chunk({token.kind: token.text}, self._logprobs([token])), True
        for call in calls:
            yield self._named(call), False
        yield self._chunk({}, finish=self._finish), False

    def whole(self) -> Json:
        """Return the choice object of a whole body."""
        if self._asked.api == "completions":
            text = "".join(token.text for token in self.tokens)
            return self._legacy(text, self._legacy_logprobs(0, len(self.tokens)), self._finish)
        message: Json = {"role": "assistant", "content": None, "refusal": None}
        for kind in _TEXTS:
            said = [token.text for token in self.tokens if token.kind == kind]
            if said or (kind == "content" and self._choice.content is not None):
                message[kind] = "".join(said)
        if calls := self._calls():
            message["tool_calls"] = [self._call(call, self._arguments(call)) for call in calls]
        return {
            "index": self._index,
            "message": message | self._extra.delta,
            "logprobs": self._logprobs(self.tokens),
            "finish_reason": self._finish,
            **self._extra.choice,
        }

    def _calls(self) -> Sequence[int]:
        """Return the tool calls that were begun before the answer was cut off."""
        if self._finish != "length":
            return range(len(self._choice.tool_calls))
        return range(1 + max((token.call for token in self.tokens if token.kind == "tool"), default=-1))

    def _named(self, call: int) -> Json:
        return self._chunk({"tool_calls": [{"index": call, **self._call(call, "")}]})

    def _arguments(self, call: int) -> str:
        return "".join(token.text for token in self.tokens if token.kind == "tool" and token.call == call)

    def _call(self, call: int, arguments: str) -> Json:
        tool = self._choice.tool_calls[call]
        name = tool.id or f"call_{self._index}_{call}"
        return {"id": name, "type": "function", "function": {"name": tool.name, "arguments": arguments}}

    def _chunk(self, delta: Json, logprobs: Json | None = None, finish: str | None = None) -> Json:
        return {
            "index": self._index,
            "delta": delta | self._extra.delta,
            "logprobs": logprobs,
            "finish_reason": finish,
            **self._extra.choice,
        }

    def _legacy(self, text: str, logprobs: Json | None, finish: str | None) -> Json:
        choice = {"text": text, "index": self._index, "logprobs": logprobs, "finish_reason": finish}
        return choice | self._extra.choice

    def _logprobs(self, told: Sequence[Token]) -> Json | None:
        if not self._asked.logprobs:
            return None
        found: dict[str, list[Json] | None] = {"content": None, "refusal": None}
        for token in told:
            if token.kind in {"content", "refusal"}:
                found[token.kind] = [*(found[token.kind] or ()), self._logprob(token)]
        return found if any(found.values()) else None

    def _logprob(self, token: Token) -> Json:
        rivals = (_scored(_rival(token.text, rank), token.place + rank) for rank in range(self._asked.top_logprobs))
        return _scored(token.text, token.place) | {"top_logprobs": list(rivals)}

    def _legacy_logprobs(self, start: int, end: int) -> Json | None:
        if not self._asked.logprobs:
            return None
        told = self.tokens[start:end]
        offset = sum(len(token.text) for token in self.tokens[:start])
        lengths = [len(token.text) for token in told]
        return {
            "tokens": [token.text for token in told],
            "token_logprobs": [_logprob(token.place) for token in told],
            "top_logprobs": [
                {_rival(token.text, rank): _logprob(token.place + rank) for rank in range(self._asked.top_logprobs)}
                for token in told
            ],
            "text_offset": [offset + sum(lengths[:at]) for at in range(len(told))],
        }


def told(asked: Asked, scenario: Scenario, index: int) -> tuple[Choice, list[Token], bool]:
    """Return a choice of a scenario, what is said of it, and whether more would have been said if it might."""
    script = scenario.script
    choice = script.choices[index % len(script.choices)]
    found = list(_tokens(choice, script.split, asked))
    return choice, found[: asked.max_tokens], asked.max_tokens is not None and len(found) > asked.max_tokens


def _tokens(choice: Choice, split: Split, asked: Asked) -> Iterator[Token]:
    for kind in _TEXTS:
        text: Text | None = getattr(choice, kind)
        if text is not None and (kind == "content" or asked.api != "completions"):
            times = choice.repeat if kind == "content" else 1
            for place, piece in enumerate(list(tokens(_filled(text, asked), split)) * times):
                yield Token(kind, piece, place)
    if asked.api not in ("completions", "ollama.generate"):
        for call, tool in enumerate(choice.tool_calls):
            for place, piece in enumerate(tokens(_filled(tool.arguments, asked), split)):
                yield Token("tool", piece, place, call)


def _filled(text: Text, asked: Asked) -> Text:
    if isinstance(text, list):
        return [piece for piece in (str(_filled(piece, asked)) for piece in text) if piece]
    return text.replace("${model}", asked.model).replace("${last_user}", asked.last_user)


def _logprob(place: int) -> float:
    return -round(0.01 + 0.07 * (place % 13), 4)


def _rival(text: str, rank: int) -> str:
    """Return the token of a rank among the likely ones; the first is the one that was said."""
    return text if rank == 0 else f"{text}~{rank}"


def _scored(text: str, place: int) -> Json:
    return {"token": text, "logprob": _logprob(place), "bytes": list(text.encode())}


_USUAL: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request could not be read."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "permission_denied", "You are not allowed to use this model."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}


def failure_body(failure: Failure) -> Json:
    """Return the API's error object; what the scenario leaves out has the usual value for the status."""
    nearest = failure.status if failure.status in _USUAL else (400 if failure.status < 500 else 500)
    kind, code, message = _USUAL[nearest]
    return {
        "error": {
            "message": failure.message or message,
            "type": failure.type or kind,
            "param": failure.param,
            "code": failure.code or code,
        }
    }
