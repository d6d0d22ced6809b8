"""What a model server says in each API: the same texts, calls and failures, in the form of a surface."""

from __future__ import annotations

import json
from typing import Any, Protocol

from tests import responses
from tests.e2e.sdks import test_messages, test_ollama, test_responses
from tests.e2e.sdks.upstream import Turn

PIECE = 7
"""Characters of a piece: what is looked for never stands in one."""


class Speech(Protocol):
    """One API."""

    place: str
    """Where the only text of a prompt stands, as a refusal names it."""

    def texts(self, *said: str, stream: bool) -> Turn:
        """An answer of these texts: choices, blocks or items, as the API has them."""

    def calls(self, *calls: tuple[str, dict[str, Any]], stream: bool) -> Turn:
        """An answer that calls tools, each once: agents tell calls apart by ids, which are made of the names."""

    def failure(self, status: int, message: str) -> Turn:
        """An error in place of an answer."""

    def broken(self, said: str, *, stream: bool) -> Turn:
        """An answer in whose midst the connection is reset."""


def cut(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _torn(stream: dict[str, Any] | None) -> Turn:
    return stream or {"raw": '{"id": "a", "choices": [', "breaks": True}


class _Chat:
    place = "messages[0]"

    def texts(self, *said: str, stream: bool) -> Turn:
        del stream
        return {"choices": [{"content": cut(each)} for each in said]}

    def calls(self, *calls: tuple[str, dict[str, Any]], stream: bool) -> Turn:
        del stream
        made = [{"id": f"call_{name}", "name": name, "arguments": cut(json.dumps(given))} for name, given in calls]
        return {"choices": [{"tool_calls": made}]}

    def failure(self, status: int, message: str) -> Turn:
        error = {"message": message, "type": "t", "code": None, "param": None}
        return {"body": {"error": error}, "status": status}

    def broken(self, said: str, *, stream: bool) -> Turn:
        whole = {**self.texts(said, stream=True), "fault": {"kind": "reset", "after_events": 4}}
        return _torn(whole if stream else None)


class _Completions(_Chat):
    place = "prompt"

    def texts(self, *said: str, stream: bool) -> Turn:
        head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}

        def choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
            return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}

        if not stream:
            return {"body": {**head, "choices": [choice(index, text, "stop") for index, text in enumerate(said)]}}
        told = [choice(index, piece, None) for index, text in enumerate(said) for piece in cut(text)]
        ends = [choice(index, "", "stop") for index in range(len(said))]
        return {"events": [{**head, "choices": [each]} for each in told + ends]}

    def broken(self, said: str, *, stream: bool) -> Turn:
        events = "".join(f"data: {json.dumps(event)}\n\n" for event in self.texts(said, stream=True)["events"][:4])
        return _torn({"sse": events, "breaks": True} if stream else None)


class _Responses(_Chat):
    place = "input[0]"

    def texts(self, *said: str, stream: bool) -> Turn:
        items = [test_responses.text(text, number) for number, text in enumerate(said, 1)]
        return test_responses.says(*items, stream=stream)

    def calls(self, *calls: tuple[str, dict[str, Any]], stream: bool) -> Turn:
        made = [
            responses.call(name, json.dumps(given), number=at) | {"id": f"fc_{name}", "call_id": f"call_{name}"}
            for at, (name, given) in enumerate(calls, 1)
        ]
        # Libraries tell answers apart by their names.
        return test_responses.says(*made, stream=stream, **({} if stream else {"id": "resp_0"}))

    def broken(self, said: str, *, stream: bool) -> Turn:
        whole = self.texts(said, stream=True)["sse"]
        return _torn({"sse": whole[: len(whole) // 2], "breaks": True} if stream else None)


class _Messages(_Chat):
    def texts(self, *said: str, stream: bool) -> Turn:
        return test_messages.says(*map(test_messages.text, said), stream=stream)

    def calls(self, *calls: tuple[str, dict[str, Any]], stream: bool) -> Turn:
        made = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
            for number, (name, given) in enumerate(calls, 1)
        ]
        return test_messages.says(*made, reason="tool_use", stream=stream)

    def failure(self, status: int, message: str) -> Turn:
        kind = {429: "rate_limit_error"}.get(status, "api_error")
        error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
        return {"body": error, "status": status}

    def broken(self, said: str, *, stream: bool) -> Turn:
        whole = self.texts(said, stream=True)["sse"]
        return _torn({"sse": whole[: len(whole) // 2], "breaks": True} if stream else None)


class _Ollama(_Chat):
    do = "chat"

    def texts(self, *said: str, stream: bool) -> Turn:
        return test_ollama.turn(*cut("".join(said)), stream=stream, do=self.do)

    def calls(self, *calls: tuple[str, dict[str, Any]], stream: bool) -> Turn:
        made = [{"function": {"name": name, "arguments": given}} for name, given in calls]
        return test_ollama.turn("", stream=stream, tool_calls=made)

    def failure(self, status: int, message: str) -> Turn:
        return {"body": {"error": message}, "status": status}

    def broken(self, said: str, *, stream: bool) -> Turn:
        lines = {"lines": self.texts(said, stream=True)["lines"][:2], "breaks": True} if stream else None
        return _torn(lines)


class _Generate(_Ollama):
    place = "prompt"
    do = "generate"


SPEECHES: dict[str, Speech] = {
    "openai.chat": _Chat(),
    "openai.completions": _Completions(),
    "openai.responses": _Responses(),
    "anthropic.messages": _Messages(),
    "ollama.chat": _Ollama(),
    "ollama.generate": _Generate(),
}
