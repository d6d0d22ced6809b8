"""Requests, events and answers of the Responses API for tests, and what a client makes of a stream."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from openai.types.responses import Response, ResponseStreamEvent

from checkstream.core.wire.surfaces import SURFACES
from tests.guarded import plan
from tests.playbook import Played, by_words, play

RESPONSES = SURFACES["openai.responses"]
MAIL = "john.doe@example.com"
USAGE = {
    "input_tokens": 7, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16,
}  # fmt: skip
_EVENTS: dict[str, Any] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(get_args(ResponseStreamEvent)[0])
}
"""Type of an event -> what the SDK takes it for."""
_PARTS = {"output_text": "text", "refusal": "refusal"}


def request(content: Any = "hi", *, stream: bool = True, **more: Any) -> bytes:
    return json.dumps({"model": "gpt", "stream": stream, "input": content, **more}).encode()


# --- what a model says: the items of its output, whole


def message(*texts: str, id: str = "msg_1", form: str = "output_text") -> dict[str, Any]:  # noqa: A002
    more: dict[str, Any] = {"annotations": [], "logprobs": []} if form == "output_text" else {}
    parts = [{"type": form, **more, _PARTS[form]: text} for text in texts]
    return {"id": id, "type": "message", "status": "completed", "content": parts, "role": "assistant"}


def reasoning(*summaries: str, texts: Sequence[str] = (), id: str = "rs_1") -> dict[str, Any]:  # noqa: A002
    item: dict[str, Any] = {"id": id, "type": "reasoning"}
    item["summary"] = [{"type": "summary_text", "text": text} for text in summaries]
    return item | ({"content": [{"type": "reasoning_text", "text": text} for text in texts]} if texts else {})


def call(name: str, given: str, *, number: int = 1, form: str = "function_call") -> dict[str, Any]:
    item = {"id": f"fc_{number}", "type": form, "status": "completed", "call_id": f"call_{number}", "name": name}
    return item | {"input" if form == "custom_tool_call" else "arguments": given}


def search(query: str, *, number: int = 1) -> dict[str, Any]:
    action = {"type": "search", "query": query}
    return {"id": f"ws_{number}", "type": "web_search_call", "status": "completed", "action": action}


def found(*texts: str, number: int = 1) -> dict[str, Any]:
    """Return a search in files, of which each has one of the texts."""
    results = [
        {"file_id": f"file-{at}", "filename": f"{at}.txt", "score": at / 8, "text": text, "attributes": {}}
        for at, text in enumerate(texts)
    ]
    item = {"id": f"fs_{number}", "type": "file_search_call", "status": "completed", "queries": ["a", "b"]}
    return item | {"results": results}


def cited(text: str, *titles: str, id: str = "msg_1") -> dict[str, Any]:  # noqa: A002
    """Return a message with annotations, which have titles."""
    item = message(text, id=id)
    forms = itertools.cycle(["url_citation", "container_file_citation"])
    for at, (title, form) in enumerate(zip(titles, forms, strict=False)):
        more = {"url": f"https://{at}.example", "title": title}
        if form != "url_citation":
            more = {"container_id": "cntr_1", "file_id": f"cfile_{at}", "filename": title}
        item["content"][0]["annotations"].append({"type": form, "start_index": 0, "end_index": at, **more})
    return item


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1741476777, "status": status, "background": False,
        "error": None, "incomplete_details": None, "instructions": None, "max_output_tokens": None, "model": "gpt",
        "output": list(items), "parallel_tool_calls": True, "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None}, "service_tier": "default", "store": True, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": None if status == "in_progress" else USAGE, "user": None, "metadata": {},
        **more,
    }  # fmt: skip


def whole(*items: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(response(*items, **more)).encode()


# --- the same as it is streamed


def event(kind: str, number: int, **members: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **members})}\n\n".encode()


def cut(text: str, pieces: int) -> list[str]:
    """Return a text in so many pieces, as even as may be."""
    edges = [len(text) * i // pieces for i in range(pieces + 1)]
    return [text[low:high] for low, high in itertools.pairwise(edges)]


class Stream:
    """Streams items as OpenAI does: each event tells what is new, then what there is."""

    def __init__(self, pieces: int = 3) -> None:
        self.events: list[bytes] = []
        self._pieces = pieces
        self.add("response.created", response=response(status="in_progress"))
        self.add("response.in_progress", response=response(status="in_progress"))

    def add(self, kind: str, **members: Any) -> None:
        self.events.append(event(kind, len(self.events), **members))

    def item(self, index: int, item: dict[str, Any], *, pieces: Sequence[str] | None = None) -> None:
        """Stream an item; `pieces` are those of its one text."""
        at = {"item_id": item["id"], "output_index": index}
        begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
        for name in ("content", "summary"):
            begun |= {name: []} if name in item else {}
        for name in ("arguments", "input"):
            begun |= {name: ""} if name in item else {}
        self.add("response.output_item.added", output_index=index, item=begun)
        for name, count in (("content", "content_index"), ("summary", "summary_index")):
            for number, part in enumerate(item.get(name, ())):
                self._part({**at, count: number}, part, pieces)
        for name, kind in (("arguments", "function_call_arguments"), ("input", "custom_tool_call_input")):
            if name in item:
                form = "mcp_call_arguments" if item["type"] == "mcp_call" else kind
                for piece in pieces or cut(item[name], self._pieces):
                    self.add(f"response.{form}.delta", **at, delta=piece)
                self.add(f"response.{form}.done", **at, **{name: item[name]})
        self.add("response.output_item.done", output_index=index, item=item)

    def _part(self, at: dict[str, Any], part: dict[str, Any], pieces: Sequence[str] | None) -> None:
        form = part["type"]
        member = "refusal" if form == "refusal" else "text"
        name = "response.reasoning_summary_part" if form == "summary_text" else "response.content_part"
        kind = "response.reasoning_summary_text" if form == "summary_text" else f"response.{form}"
        more: dict[str, Any] = {"logprobs": []} if form == "output_text" else {}
        begun = {**part, member: ""} | ({"annotations": []} if "annotations" in part else {})
        self.add(f"{name}.added", **at, part=begun)
        for piece in pieces or cut(part[member], self._pieces):
            self.add(f"{kind}.delta", **at, delta=piece, **more, obfuscation="xxxx")
        for number, annotation in enumerate(part.get("annotations", ())):
            self.add(f"{'response.output_text'}.annotation.added", **at, annotation_index=number, annotation=annotation)
        self.add(f"{kind}.done", **at, **{member: part[member]}, **more)
        self.add(f"{name}.done", **at, part=part)

    def end(self, *items: dict[str, Any], status: str = "completed", **more: Any) -> None:
        self.add(f"response.{status}", response=response(*items, status=status, **more))

    @property
    def joined(self) -> bytes:
        return b"".join(self.events)


def answer(*items: dict[str, Any], pieces: int = 3, **more: Any) -> bytes:
    """Return a stream of these items."""
    made = Stream(pieces)
    for index, item in enumerate(items):
        made.item(index, item)
    made.end(*items, **more)
    return made.joined


def one(item: dict[str, Any], *, stream: bool, pieces: Sequence[str]) -> bytes:
    """Return an answer of one item, streamed with its one text in these pieces, or whole."""
    if not stream:
        return whole(item)
    made = Stream()
    made.item(0, item, pieces=pieces)
    made.end(item)
    return made.joined


def stream(rules: str, pieces: Sequence[bytes], body: bytes | None = None, **settings: Any) -> Played:
    scorer = by_words("lexicon.toxicity", ["idiot"])
    return play(RESPONSES, plan(rules, **settings), body or request(), pieces, scorer=scorer)


def reply(rules: str, body: bytes, asked: bytes | None = None, *, status: int = 200, **settings: Any) -> Played:
    scorer = by_words("lexicon.toxicity", ["idiot"])
    asked = asked or request(stream=False)
    return play(RESPONSES, plan(rules, **settings), asked, [body], streaming=False, status=status, scorer=scorer)


# --- what a client makes of it


def events(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield what a client reads: each event's data, which has the name of the event."""
    for raw in data.split(b"\n\n"):
        lines = [line for line in raw.split(b"\n") if line and not line.startswith(b":")]
        if lines:
            *names, line = lines
            assert line.startswith(b"data: "), raw
            body = json.loads(line[6:])
            assert names == ([f"event: {body['type']}".encode()] if body["type"] in RESPONSES.events else []), raw
            yield body


class Reader:
    """Puts an answer together; a stream that is no legal sequence, or not true to itself, fails the test."""

    def __init__(self, *, typed: bool = True) -> None:
        self.response: dict[str, Any] = {}
        self.error: dict[str, Any] = {}
        self.items: list[dict[str, Any]] = []
        self.text = ""
        self._typed = typed
        self._next: int | None = None
        self._open: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str, int], dict[str, Any]] = {}
        self.ended = False

    def take(self, body: dict[str, Any]) -> None:
        kind, number = body["type"], body["sequence_number"]
        if self._typed:
            _EVENTS[kind].model_validate(body)
        assert not self.ended, "nothing comes behind the last word"
        assert self._next in (None, number), f"no gap: {self._next} then {number}"
        self._next = number + 1
        if kind == "error":
            self.error = body
            self.ended = True
            return
        assert bool(self.response) == (kind != "response.created"), "the answer begins first"
        name, _, step = kind.rpartition(".")
        if "response" in body:
            self._take_answer(kind, body["response"])
        elif name == "response.output_item":
            self._take_item(step, body)
        elif name in ("response.content_part", "response.reasoning_summary_part"):
            self._take_part(step, body)
        elif "output_index" in body:
            self._take_text(kind, body)

    def _take_answer(self, kind: str, answer: dict[str, Any]) -> None:
        assert not self.response or answer["id"] == self.response["id"]
        self.response = answer
        if kind not in ("response.created", "response.in_progress", "response.queued"):
            self.ended = True
            assert not self._open, "each item is over"
            assert answer["output"] == self.items, "the answer is what was streamed"
            assert answer["status"] == kind.removeprefix("response.")

    def _take_item(self, step: str, body: dict[str, Any]) -> None:
        index, item = body["output_index"], body["item"]
        if step == "added":
            assert index == len(self.items) + len(self._open), "no gap"
            self._open[index] = item
            return
        begun = self._open.pop(index)
        assert (begun["id"], begun["type"]) == (item["id"], item["type"])
        assert index == len(self.items), "in their order"
        for name in ("content", "summary"):
            for number, part in enumerate(item.get(name, ())):
                assert self._parts.pop((index, name, number)) == part, "the item is what was streamed"
        for name in ("name", "arguments", "input"):
            assert item.get(name) == begun.get(name), "the item is what was streamed"
        assert not any(at == index for at, _, _ in self._parts)
        self.items.append(item)

    def _take_part(self, step: str, body: dict[str, Any]) -> None:
        key = _key(body)
        if step == "added":
            assert key not in self._parts
            self._parts[key] = dict(body["part"])
            return
        streamed, told = dict(self._parts[key]), body["part"]
        assert streamed.pop("over", False), "its text is told before"
        member = "refusal" if told["type"] == "refusal" else "text"
        assert told[member] == streamed[member], "the part is what was streamed"
        assert told.get("annotations") == streamed.get("annotations")
        self._parts[key] = told

    def _take_text(self, kind: str, body: dict[str, Any]) -> None:
        item = self._open[body["output_index"]]
        assert body["item_id"] == item["id"]
        name, _, step = kind.rpartition(".")
        form = name.removeprefix("response.")
        if form in ("function_call_arguments", "custom_tool_call_input", "mcp_call_arguments"):
            member, target = ("input" if form.startswith("custom") else "arguments"), item
        elif form in ("output_text", "refusal", "reasoning_text", "reasoning_summary_text"):
            member, target = ("refusal" if form == "refusal" else "text"), self._parts[_key(body)]
        elif form == "output_text.annotation":
            self._parts[_key(body)]["annotations"].append(body["annotation"])
            return
        else:
            return
        if step == "delta":
            assert not target.get("over"), "nothing is added to a text that is over"
            target[member] += body["delta"]
            self.text += body["delta"] if form == "output_text" else ""
        else:
            assert body[member] == target[member], "what is over is what was streamed"
            if target is not item:
                target["over"] = True


def _key(body: dict[str, Any]) -> tuple[int, str, int]:
    name = "summary" if "summary_index" in body else "content"
    return body["output_index"], name, body[f"{name}_index"]


def read(data: bytes, *, typed: bool = True) -> dict[str, Any]:
    """Return the answer that a stream comes to; a stream that is no legal sequence fails the test."""
    reader = Reader(typed=typed)
    for body in events(data):
        reader.take(body)
    assert reader.ended, "the stream has an end"
    assert reader.error or reader.text == said(reader.response)
    return reader.response | ({"failed": reader.error} if reader.error else {})


def parsed(body: bytes) -> dict[str, Any]:
    """Return a whole answer, which the SDK's types allow."""
    Response.model_validate_json(body)
    found: dict[str, Any] = json.loads(body)
    return found


def said(answer: dict[str, Any]) -> str:
    """Return the text of an answer, as clients join it."""
    parts = (part for item in answer["output"] for part in item.get("content") or () if item["type"] == "message")
    return "".join(part["text"] for part in parts if part["type"] == "output_text")
