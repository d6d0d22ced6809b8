"""What the scripted LLM says where it is asked as OpenAI's Responses API is: the same scenarios, as items.

Source: OpenAI API reference, "Create a model response", "The response object" and "Streaming events".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from checkstream.demo.answer import CREATED, Event, Json, Token, told
from checkstream.demo.asked import Asked
from checkstream.demo.scenario import Scenario
from checkstream.demo.script import Choice

_FORMS = {"content": "output_text", "refusal": "refusal"}
"""Kind of text -> form of the part of a message that holds it; all else that is no call is reasoning."""


class _Said(msgspec.Struct, frozen=True):
    """One item of an answer, whole, and the tokens of each of its texts."""

    item: Json
    texts: list[list[Token]]


def events(asked: Asked, scenario: Scenario) -> list[Event]:
    """Return the events of a streamed answer, in order: what is new is told first, then what there is."""
    choice, tokens, cut = told(asked, scenario, 0)
    stream = _Stream()
    begun = _response(asked, scenario, [])
    stream.add("response.created", response=begun)
    stream.add("response.in_progress", response=begun)
    items = _items(choice, tokens, cut=cut)
    for index, said in enumerate(items):
        stream.item(index, said)
    answer = _ended(asked, scenario, items, tokens, cut=cut)
    stream.add(f"response.{answer['status']}", response=answer)
    return stream.events


def whole(asked: Asked, scenario: Scenario) -> Json:
    """Return the body of an answer that is not streamed."""
    choice, tokens, cut = told(asked, scenario, 0)
    return _ended(asked, scenario, _items(choice, tokens, cut=cut), tokens, cut=cut)


class _Stream:
    """Numbers events as they are added."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, kind: str, **members: object) -> None:
        payload = {"type": kind, "sequence_number": len(self.events), **members}
        self.events.append(Event(payload, token=kind.endswith(".delta"), name=kind))

    def item(self, index: int, said: _Said) -> None:
        item = said.item
        at: Json = {"item_id": item["id"], "output_index": index}
        begun = {"status": "in_progress"} if "status" in item else {}
        emptied: Json = {name: type(item[name])() for name in ("arguments", "content", "summary") if name in item}
        self.add("response.output_item.added", output_index=index, item=item | begun | emptied)
        if item["type"] == "function_call":
            for token in said.texts[0]:
                self.add("response.function_call_arguments.delta", **at, delta=token.text)
            self.add("response.function_call_arguments.done", **at, arguments=item["arguments"])
        elif item["type"] == "message":
            for number, (part, tokens) in enumerate(zip(item["content"], said.texts, strict=True)):
                self._part({**at, "content_index": number}, part, tokens)
        else:
            self._part({**at, "summary_index": 0}, item["summary"][0], said.texts[0])
        self.add("response.output_item.done", output_index=index, item=item)

    def _part(self, at: Json, part: Json, tokens: list[Token]) -> None:
        form = part["type"]
        summary = form == "summary_text"
        name = "response.reasoning_summary_part" if summary else "response.content_part"
        kind = "response.reasoning_summary_text" if summary else f"response.{form}"
        member = "refusal" if form == "refusal" else "text"
        more: Json = {"logprobs": []} if form == "output_text" else {}
        self.add(f"{name}.added", **at, part=part | {member: ""})
        for token in tokens:
            self.add(f"{kind}.delta", **at, delta=token.text, **more)
        self.add(f"{kind}.done", **at, **{member: part[member]}, **more)
        self.add(f"{name}.done", **at, part=part)


def _items(choice: Choice, tokens: list[Token], *, cut: bool) -> list[_Said]:
    """Return the items of an answer; the last one of an answer that was cut off is incomplete."""
    items = list(_told(choice, tokens))
    if cut and items and "status" in items[-1].item:
        items[-1].item["status"] = "incomplete"
    return items


def _told(choice: Choice, tokens: list[Token]) -> Iterator[_Said]:
    for (kind, call), group in itertools.groupby(tokens, lambda token: (_kind(token), token.call)):
        said = list(group)
        if kind == "function_call":
            tool = choice.tool_calls[call]
            about = {"id": f"fc_{call}", "type": kind, "status": "completed", "name": tool.name}
            yield _Said(about | {"call_id": tool.id or f"call_{call}", "arguments": _text(said)}, [said])
        elif kind == "reasoning":
            summary = {"type": "summary_text", "text": _text(said)}
            yield _Said({"id": "rs_0", "type": kind, "summary": [summary]}, [said])
        else:
            texts = [list(each) for _, each in itertools.groupby(said, lambda token: token.kind)]
            about = {"id": "msg_0", "type": kind, "status": "completed", "role": "assistant"}
            yield _Said(about | {"content": [_whole_part(text) for text in texts]}, texts)


def _whole_part(said: list[Token]) -> Json:
    if said[0].kind == "refusal":
        return {"type": "refusal", "refusal": _text(said)}
    return {"type": "output_text", "text": _text(said), "annotations": [], "logprobs": []}


def _kind(token: Token) -> str:
    return "function_call" if token.kind == "tool" else "message" if token.kind in _FORMS else "reasoning"


def _text(said: list[Token]) -> str:
    return "".join(token.text for token in said)


def _ended(asked: Asked, scenario: Scenario, items: list[_Said], tokens: list[Token], *, cut: bool) -> Json:
    """Return the answer as it is in the end."""
    finish = scenario.script.choices[0].finish_reason
    why = "max_output_tokens" if cut or finish == "length" else "content_filter" if finish == "content_filter" else None
    output = [said.item for said in items]
    status = "incomplete" if why else "completed"
    usage = {
        "input_tokens": asked.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": len(tokens),
        "output_tokens_details": {"reasoning_tokens": sum(_kind(token) == "reasoning" for token in tokens)},
        "total_tokens": asked.prompt_tokens + len(tokens),
    }
    details = {"reason": why} if why else None
    return _response(asked, scenario, output, status=status, incomplete_details=details, usage=usage)


def _response(asked: Asked, scenario: Scenario, output: list[Json], **told: object) -> Json:
    return {
        "id": f"resp_{scenario.name}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": asked.max_tokens,
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "metadata": {},
        "usage": None,
        **told,
        **scenario.script.extra.event,
    }
