"""A test case as the bytes of an exchange on `openai.chat`: the request, and the upstream's answer in any cut."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import msgspec

from checkstream.core.wire import sse
from checkstream.trial.cases import Case

_HEAD = {"id": "chatcmpl-case", "created": 1, "model": "m"}
_DEFAULT_PROMPT = "Hello."
_DEFAULT_ANSWER = "Very well."
"""Of cases that look at the prompt."""
_MOST_PIECES = 12
_MOST_READS = 40


class Cut(msgspec.Struct, frozen=True):
    """How an answer comes: whole, as a stream of one event for each text, or as pieces cut by chance."""

    name: str

    @property
    def streaming(self) -> bool:
        """As an event stream."""
        return self.name != "whole"

    @property
    def random(self) -> bool:
        """Texts and bytes are cut by chance."""
        return self.name not in ("whole", "stream")


def cuts(case: Case, splits: int) -> tuple[Cut, ...]:
    """Return the ways in which a case is run."""
    whole = () if case.stream is True else (Cut("whole"),)
    if case.stream is False:
        return whole
    return (*whole, Cut("stream"), *(Cut(f"split {number}") for number in range(1, splits + 1)))


def request_body(case: Case, *, streaming: bool) -> bytes:
    """Return the caller's body."""
    body: dict[str, object] = {"model": case.model, "messages": _messages(case)}
    if streaming:
        body["stream"] = True
    if len(case.texts) > 1:
        body["n"] = len(case.texts)
    if case.temperature is not None:
        body["temperature"] = case.temperature
    if case.user is not None:
        body["user"] = case.user
    if case.tools:
        parameters = {"type": "object", "properties": {}}
        body["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": parameters}} for name in case.tools
        ]
    documents = [*case.documents, *([case.prompt] if case.kind == "document" else [])]
    extension: dict[str, object] = {"context": case.context} if case.context is not None else {}
    if case.conversation is not None:
        extension["conversation"] = "c"
    if documents or extension:
        body["checkstream"] = extension | ({"documents": documents} if documents else {})
    return msgspec.json.encode(body)


def _messages(case: Case) -> list[dict[str, object]]:
    if isinstance(case.prompt, tuple):
        return [_message(message.role, message.content) for message in case.prompt]
    hello = _message("user", _DEFAULT_PROMPT)
    kind = "user" if case.texts else case.kind
    if case.prompt is None or kind == "document":
        return [hello]
    match kind:
        case "system":
            return [_message("system", case.prompt), hello]
        case "assistant":
            return [hello, _message("assistant", case.prompt), _message("user", "Go on.")]
        case "tool_result":
            call = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
            asked: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
            return [hello, asked, _message("tool", case.prompt)]
        case _:
            return [_message("user", case.prompt)]


def _message(role: str, content: str) -> dict[str, object]:
    message: dict[str, object] = {"role": role, "content": content}
    return message | ({"tool_call_id": "call_1"} if role == "tool" else {})


def answer_texts(case: Case, turn: int) -> tuple[str, ...]:
    """Return the text of each choice of the upstream's answer; `turn` counts how often it was asked to go on."""
    if turn:
        return (case.continued or "",)
    return case.texts or (_DEFAULT_ANSWER,)


def answer_kind(case: Case) -> str:
    """Return the channel of the answer's text."""
    return case.kind if case.texts else "content"


def answer_pieces(case: Case, cut: Cut, turn: int = 0) -> list[bytes]:
    """Return the upstream's body as it is read, piece by piece.

    Cuts by chance depend on the names of the case and of the cut only, so that a failure comes again.
    """
    kind = "content" if turn else answer_kind(case)
    texts = answer_texts(case, turn)
    if not cut.streaming:
        return [_whole(case.model, kind, texts)]
    if not cut.random:
        return [b"".join(_events(case.model, kind, [(choice, text) for choice, text in enumerate(texts)], len(texts)))]
    chance = random.Random(f"{case.name}/{cut.name}/{turn}")  # noqa: S311 - cuts a test's text, nothing secret
    queues = [_split(text, chance) for text in texts]
    order = [choice for choice, queue in enumerate(queues) for _ in queue]
    chance.shuffle(order)
    taken = [iter(queue) for queue in queues]
    body = b"".join(_events(case.model, kind, [(choice, next(taken[choice])) for choice in order], len(texts)))
    edges = sorted({0, len(body), *(chance.randrange(len(body)) for _ in range(chance.randrange(1, _MOST_READS)))})
    return [body[low:high] for low, high in itertools.pairwise(edges)]


def _split(text: str, chance: random.Random) -> list[str]:
    """Cut a text at up to `_MOST_PIECES` places, or into its characters."""
    if chance.random() < 0.25:  # some defects show only where every character comes alone
        return list(text) or [text]
    edges = {0, len(text), *(chance.randrange(len(text) + 1) for _ in range(chance.randrange(_MOST_PIECES)))}
    return [text[low:high] for low, high in itertools.pairwise(sorted(edges))] or [text]


def _events(model: str, kind: str, deltas: Sequence[tuple[int, str]], choices: int) -> list[bytes]:
    """Return the events of a stream: who speaks, the deltas in order, the ends, the terminator."""
    opened: set[int] = set()
    events = [_event(model, choice, {"role": "assistant", "content": ""}, None) for choice in range(choices)]
    for choice, text in deltas:
        events.append(_event(model, choice, _delta(kind, text, first=choice not in opened), None))
        opened.add(choice)
    if kind == "tool_name":
        events += [_event(model, choice, _call({"arguments": "{}"}), None) for choice in sorted(opened)]
    finish = "tool_calls" if kind.startswith("tool_") else "stop"
    events += [_event(model, choice, {}, finish) for choice in range(choices)]
    return [*events, sse.encode(b"[DONE]")]


def _event(model: str, choice: int, delta: dict[str, object], finish: str | None) -> bytes:
    body = _HEAD | {
        "object": "chat.completion.chunk",
        "model": model,
        "choices": [{"index": choice, "delta": delta, "finish_reason": finish}],
    }
    return sse.encode(msgspec.json.encode(body))


def _delta(kind: str, text: str, *, first: bool) -> dict[str, object]:
    match kind:
        case "tool_arguments":
            call = {"id": "call_1", "type": "function"} if first else {}
            return _call(({"name": "lookup"} if first else {}) | {"arguments": text}, call)
        case "tool_name":
            return _call({"name": text}, {"id": "call_1", "type": "function"} if first else {})
        case _:
            return {_FIELDS[kind]: text}


def _call(function: dict[str, str], rest: dict[str, str] | None = None) -> dict[str, object]:
    return {"tool_calls": [{"index": 0, **(rest or {}), "function": function}]}


_FIELDS = {"content": "content", "refusal": "refusal", "reasoning": "reasoning_content", "extra": "note"}


def _whole(model: str, kind: str, texts: Sequence[str]) -> bytes:
    finish = "tool_calls" if kind.startswith("tool_") else "stop"
    body = _HEAD | {
        "object": "chat.completion",
        "model": model,
        "choices": [
            {"index": choice, "message": _whole_message(kind, text), "finish_reason": finish}
            for choice, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return msgspec.json.encode(body)


def _whole_message(kind: str, text: str) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": None}
    if kind.startswith("tool_"):
        function = {"name": text, "arguments": "{}"} if kind == "tool_name" else {"name": "lookup", "arguments": text}
        return message | {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    return message | {_FIELDS[kind]: text}
