"""What the scripted LLM says where it is asked as Anthropic's Messages API is: the same scenarios, as blocks.

Source: Anthropic API reference, "Create a Message", "Streaming messages" and "Errors".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from checkstream.demo.answer import Event, Json, Token, told
from checkstream.demo.asked import Asked
from checkstream.demo.scenario import Scenario
from checkstream.demo.script import Choice, Failure

_SIGNATURE = "c2NyaXB0ZWQ="
_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


def events(asked: Asked, scenario: Scenario) -> list[Event]:
    """Return the events of a streamed answer, in order."""
    choice, tokens, cut = told(asked, scenario, 0)
    extra = scenario.script.extra.event
    begun = _message(asked, scenario, [], None, 1) | extra
    found = [_event("message_start", message=begun)]
    for index, (block, said) in enumerate(_blocks(choice, tokens)):
        found.append(_event("content_block_start", index=index, content_block=block | _emptied(block)))
        found += (_delta(index, token) for token in said)
        if block["type"] == "thinking":
            signed = {"type": "signature_delta", "signature": _SIGNATURE}
            found.append(_event("content_block_delta", index=index, delta=signed))
        found.append(_event("content_block_stop", index=index))
    ended = {"stop_reason": _reason(choice, cut=cut), "stop_sequence": None}
    found.append(_event("message_delta", delta=ended, usage={"output_tokens": len(tokens)}))
    return [*found, _event("message_stop")]


def whole(asked: Asked, scenario: Scenario) -> Json:
    """Return the body of an answer that is not streamed."""
    choice, tokens, cut = told(asked, scenario, 0)
    content = [
        block
        for block, said in _blocks(choice, tokens)
        if block["type"] != "tool_use" or _is_json("".join(token.text for token in said))
    ]
    return _message(asked, scenario, content, _reason(choice, cut=cut), len(tokens)) | scenario.script.extra.event


def failure_body(failure: Failure, message: str) -> Json:
    """Return Anthropic's error object."""
    kind = failure.type or _ERRORS.get(failure.status, "invalid_request_error" if failure.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


def _message(asked: Asked, scenario: Scenario, content: list[Json], reason: str | None, tokens: int) -> Json:
    return {
        "id": f"msg_{scenario.name}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": asked.prompt_tokens, "output_tokens": tokens},
    }


def _blocks(choice: Choice, tokens: list[Token]) -> Iterator[tuple[Json, list[Token]]]:
    """Yield the blocks of an answer, each with what is said in it."""
    for (kind, call), group in itertools.groupby(tokens, lambda token: (_kind(token), token.call)):
        said = list(group)
        text = "".join(token.text for token in said)
        if kind == "tool_use":
            tool = choice.tool_calls[call]
            given = msgspec.json.decode(text) if _is_json(text) else {}
            yield {"type": kind, "id": tool.id or f"toolu_{call}", "name": tool.name, "input": given}, said
        elif kind == "thinking":
            yield {"type": kind, "thinking": text, "signature": _SIGNATURE}, said
        else:
            yield {"type": kind, "text": text}, said


def _kind(token: Token) -> str:
    return {"tool": "tool_use", "content": "text", "refusal": "text"}.get(token.kind, "thinking")


def _emptied(block: Json) -> Json:
    """Return what a block has of its text when it begins."""
    match block["type"]:
        case "tool_use":
            return {"input": {}}
        case "thinking":
            return {"thinking": "", "signature": ""}
        case _:
            return {"text": ""}


def _delta(index: int, token: Token) -> Event:
    match _kind(token):
        case "tool_use":
            said = {"type": "input_json_delta", "partial_json": token.text}
        case "thinking":
            said = {"type": "thinking_delta", "thinking": token.text}
        case _:
            said = {"type": "text_delta", "text": token.text}
    return msgspec.structs.replace(_event("content_block_delta", index=index, delta=said), token=True)


def _event(name: str, **members: object) -> Event:
    return Event({"type": name, **members}, token=False, name=name)


def _reason(choice: Choice, *, cut: bool) -> str:
    reason = "length" if cut else choice.finish_reason or ("tool_calls" if choice.tool_calls else "stop")
    return _REASONS.get(reason, reason)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True
