"""The Responses API: whatever items a stream has, wherever it is cut, what leaves is legal and holds no secret."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.moulds import Moulds
from checkstream.core.wire.responses.receiving import ResponseReceiving
from checkstream.core.wire.responses.surface import OpenAIResponses
from checkstream.core.wire.surface import Receiving, Request
from checkstream.errors import WireError
from tests import responses
from tests.chance import examples
from tests.drawn import CALM, RISK, Draw, split
from tests.guarded import MAIL as REDACT
from tests.guarded import STOP, plan
from tests.playbook import play
from tests.property.test_every_string_is_text import (
    NAMES,
    PLAN,
    SECRETS,
    assert_unheard,
    holds,
    nests,
    spelled,
    strings,
)
from tests.responses import MAIL, RESPONSES, Stream, call, message, parsed, read, reasoning, request, said, search

AT: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
NEXT = {**AT, "content_index": 1}


MADE: dict[str, Callable[[int, str, str], dict[str, Any]]] = {
    "message": lambda number, said, _: message(said, id=f"msg_{number}"),
    "two": lambda number, said, more: message(said, more, id=f"msg_{number}"),
    "refusal": lambda number, said, _: message(said, id=f"msg_{number}", form="refusal"),
    "reasoning": lambda number, said, more: reasoning(said, more, id=f"rs_{number}"),
    "thoughts": lambda number, said, _: reasoning(texts=[said], id=f"rs_{number}"),
    "call": lambda number, said, _: call("f", json.dumps({"q": said}), number=number),
    "custom": lambda number, said, _: call("c", said, number=number, form="custom_tool_call"),
    "search": lambda number, said, _: search(said, number=number),
    "found": lambda number, said, more: responses.found(said, more, said, number=number),
    "cited": lambda number, said, more: responses.cited("See there.", said, more, said, id=f"msg_{number}"),
}


@st.composite
def items(draw: Draw, texts: st.SearchStrategy[str] = CALM) -> list[dict[str, Any]]:
    """Return the items of an answer."""
    kinds = draw(st.lists(st.sampled_from(sorted(MADE)), min_size=1, max_size=5))
    return [MADE[kind](number, draw(texts), draw(texts)) for number, kind in enumerate(kinds)]


def streamed(draw: Draw, found: Sequence[dict[str, Any]]) -> bytes:
    """Return the stream in which a model says these items."""
    made = Stream(draw(st.integers(1, 4)))
    for index, item in enumerate(found):
        made.item(index, item)
    made.end(*found)
    return made.joined


@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_g05_a_calm_answer_leaves_as_it_came(data: st.DataObject) -> None:
    found = data.draw(items())
    raw = streamed(data.draw, found)
    out = play(RESPONSES, plan(REDACT), request(), split(data.draw, raw))
    assert out.joined == raw
    assert read(raw)["output"] == found
    body = responses.whole(*found)
    assert responses.reply(REDACT, body).reply.body == body  # type: ignore[union-attr]


_BESIDE = st.text(st.sampled_from(' ,\n\U0001f600"\\{}'), max_size=6)  # no letters: within a word there is no phrase
SAYS = st.tuples(_BESIDE, st.sampled_from(["", MAIL, RISK, "john.doe", "@example.com", "zero ", "risk"]), _BESIDE).map(
    "".join
)


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.sampled_from([REDACT, STOP, REDACT + STOP]))
def test_g35_an_edited_answer_is_a_legal_sequence_without_what_was_condemned(data: st.DataObject, rules: str) -> None:
    found = data.draw(items(SAYS))
    raw = streamed(data.draw, found)
    played = play(RESPONSES, plan(rules), request(), split(data.draw, raw))
    answer = read(played.joined)
    assert_clean(rules, answer)
    for body in responses.events(played.joined):
        assert_clean(rules, body)
    reply = responses.reply(rules, responses.whole(*found)).reply
    assert reply is not None
    whole = parsed(reply.body)
    assert_clean(rules, whole)
    assert answer["status"] == whole["status"]
    if answer["status"] == "incomplete":
        assert answer["incomplete_details"] == {"reason": "content_filter"}
    elif rules == REDACT and sum(map(is_loud, found)) < 2:
        # What stands over the border of two texts goes from one of them: from which, their order says, and a stream's
        # is another than that of a whole answer's channels.
        assert said(answer) == said(whole)
        assert [item["type"] for item in answer["output"]] == [item["type"] for item in whole["output"]]
    for item in answer["output"]:
        if item["type"] == "function_call":
            json.loads(item["arguments"])


def is_loud(item: dict[str, Any]) -> bool:
    """Tell whether an item says some of what is condemned."""
    return any(word in json.dumps(item) for word in ("john", "example.com"))


def test_g35_an_answer_of_calls_that_are_all_withheld_has_its_end() -> None:
    calls = [call("f", json.dumps({"q": text}), number=at) for at, text in enumerate(("zero risk", "@example.com"))]
    made = Stream(1)
    for index, item in enumerate(calls):
        made.item(index, item)
    made.end(*calls)
    answer = read(play(RESPONSES, plan(REDACT), request(), [made.joined]).joined)
    assert (answer["status"], [item["type"] for item in answer["output"]]) == ("completed", ["message"])
    whole = responses.reply(REDACT, responses.whole(*calls)).reply
    assert whole is not None
    assert said(parsed(whole.body)) == said(answer)


def assert_clean(rules: str, said: object) -> None:
    wanted = [*([MAIL] if "EMAIL" in rules else []), *([RISK] if RISK in rules else [])]
    spelled = json.dumps(said)
    texts = "".join(text for _, text in strings(said))
    for secret in wanted:
        assert secret not in spelled
        assert secret not in texts


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from([REDACT, REDACT + STOP]))
def test_g03_what_leaves_does_not_depend_on_the_cut(data: st.DataObject, rules: str) -> None:
    raw = streamed(data.draw, data.draw(items(SAYS)))
    one = play(RESPONSES, plan(rules), request(), [raw])
    other = play(RESPONSES, plan(rules), request(), split(data.draw, raw))
    assert read(one.joined)["output"] == read(other.joined)["output"]


class Counting(OpenAIResponses):
    """The surface, counting the events that are read in full."""

    read = 0

    def receiving(self, request: Request | None) -> Receiving:
        counting = self

        class Reading(ResponseReceiving):
            def read_event(self, frame: Frame) -> Unit:
                counting.read += 1
                return super().read_event(frame)

        return Reading(request)


def test_g34_of_events_that_differ_in_text_and_number_few_are_read_in_full() -> None:
    made, surface = Stream(200), Counting()
    found = [reasoning("It is so. " * 100), message("It is so. " * 100)]
    for index, item in enumerate(found):
        made.item(index, item)
    made.end(*found)
    out = play(surface, plan(REDACT + STOP), request(), made.events)
    assert out.joined == made.joined
    assert len(made.events) > 400
    assert surface.read < 30


def test_g34_a_text_that_goes_on_behind_another_is_told_though_it_is_like_those_before() -> None:
    made = Open(3)
    made.add("response.content_part.added", **NEXT, part={"type": "output_text", "annotations": [], "text": ""})
    made.add("response.output_text.delta", **NEXT, delta="between", logprobs=[])
    made.say()
    out = play(RESPONSES, plan(REDACT), request(), made.events)
    assert out.record is not None
    assert out.record.outcome == "failed"
    assert b"check the upstream" in out.joined


NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-3, 12), st.sampled_from([10**9, 10**30, -1, 2.0, True, None, "5", "", [1], {"a": 1}]),
    st.sampled_from([MAIL, f"is {RISK}.", {MAIL: RISK}]),
)  # fmt: skip


@settings(max_examples=examples(80), deadline=None)
@given(st.data(), st.sampled_from([REDACT, REDACT + STOP]))
def test_g34_whatever_events_say_of_their_numbers_they_leave_without_a_gap(data: st.DataObject, rules: str) -> None:
    raw = streamed(data.draw, data.draw(items(SAYS)))
    faulty: list[bytes] = []
    for number, body in enumerate(responses.events(raw)):
        del body["sequence_number"]
        fault = data.draw(st.sampled_from(["none", "missing" if number else "none", "another"]))
        if fault != "missing":
            body["sequence_number"] = number if fault == "none" else data.draw(NUMBERS)
        faulty.append(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode())
    came = play(RESPONSES, plan(rules), request(), split(data.draw, b"".join(faulty)))
    plain = play(RESPONSES, plan(rules), request(), [raw])
    answer = read(came.joined)  # which fails where there is a gap
    assert answer["output"] == read(plain.joined)["output"]
    for body in responses.events(came.joined):
        assert_clean(rules, body)


@pytest.mark.parametrize("rules", [REDACT, REDACT + STOP])
def test_a_stream_without_numbers_gets_none_until_something_is_added(rules: str) -> None:
    made = Stream()
    made.item(0, message("fine"))
    made.item(1, call("f", json.dumps({"q": RISK}), number=1))
    made.end(message("fine"), call("f", json.dumps({"q": RISK}), number=1))
    bodies = [{k: v for k, v in body.items() if k != "sequence_number"} for body in responses.events(made.joined)]
    raw = b"".join(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode() for body in bodies)
    out = play(RESPONSES, plan(rules), request(), [raw])
    numbers = [body.get("sequence_number") for body in responses.events(out.joined)]
    if RISK not in rules:
        assert out.joined == raw
    given_ = [number for number in numbers if number is not None]
    assert numbers == [None] * (len(numbers) - len(given_)) + list(range(len(given_)))


@pytest.mark.parametrize("text", ["zero risk", "so zero risk it", "a@b.example.com"])
@pytest.mark.parametrize("whole", [False, True], ids=["stream", "whole"])
def test_g35_what_stands_around_a_word_that_goes_stays(text: str, whole: bool) -> None:
    rules = REDACT + "  - {name: p, id: P-1, stage: [midstream], phrases: [zero risk], actions: [{type: redact}]}\n"
    found = [search(text), responses.cited("See there.", text, "x", text)]
    if whole:
        reply = responses.reply(rules, responses.whole(*found)).reply
        assert reply is not None
        answer = parsed(reply.body)
    else:
        answer = read(play(RESPONSES, plan(rules), request(), [responses.answer(*found)]).joined)
    action = answer["output"][0]["action"]
    assert action["type"] == "search"
    assert text not in action["query"]
    assert "[" in action["query"]
    assert len(answer["output"][1]["content"][0]["annotations"]) == 3


@pytest.mark.parametrize("place", ["sequence_number", "output_index", "content_index", "code", "param", "more"])
def test_g34_an_error_of_the_upstreams_has_no_secret_anywhere(place: str) -> None:
    made = Stream()
    error = {"type": "error", "sequence_number": 2, "code": "x", "message": "no", "param": None} | {place: MAIL}
    raw = made.joined + f"event: error\ndata: {json.dumps(error)}\n\n".encode()
    out = play(RESPONSES, plan(REDACT), request(), [raw])
    assert MAIL not in out.joined.decode()
    assert b"event: error" in out.joined


class Open(Stream):
    """A stream with a text that is open."""

    def __init__(self, deltas: int = 0) -> None:
        super().__init__()
        item = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        self.add("response.output_item.added", output_index=0, item=item)
        part = {"type": "output_text", "annotations": [], "text": ""}
        self.add("response.content_part.added", **AT, part=part)
        for _ in range(deltas):
            self.say()

    def say(self, **more: Any) -> None:
        self.add("response.output_text.delta", **{**AT, "delta": " fine, ", "logprobs": [], **more})

    def put(self, kind: str, **members: Any) -> Open:
        self.add(kind, **members)
        return self

    def tell(self, *items: dict[str, Any], **members: Any) -> Open:
        return self.put("response.in_progress", response=responses.response(*items, **members))

    def begun(self, **item: Any) -> Open:
        return self.put("response.output_item.added", output_index=1, item={"id": "i_1", **item})

    def done(self, **item: Any) -> Open:
        return self.put("response.output_item.done", output_index=1, item={"id": "i_1", **item})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _part(**members: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "annotations": [], **members}]}


TEXT, DONE = "response.output_text.delta", "response.output_text.done"
PUTS: dict[str, Callable[[Open, str, Any], object]] = {
    "event": lambda s, name, value: s.say(**{f"x_{name}": value}),
    "delta": lambda s, _, value: s.say(delta=_text(value)),
    "item id": lambda s, _, value: s.say(item_id=value),
    "logprobs": lambda s, _, value: s.say(logprobs=[{"token": _text(value), "logprob": 0.0}]),
    "top logprobs": lambda s, _, value: s.say(
        logprobs=[{"token": " fine, ", "logprob": 0.0, "top_logprobs": [{"token": _text(value), "logprob": -1.0}]}]
    ),
    "padding": lambda s, _, value: s.say(obfuscation=_text(value)),
    "text": lambda s, _, value: s.put(DONE, **AT, text=_text(value), logprobs=[]),
    "text of another": lambda s, _, value: s.put(DONE, **NEXT, text=_text(value), logprobs=[]),
    "refusal": lambda s, _, value: s.put("response.refusal.delta", **NEXT, delta=_text(value)),
    "reasoning": lambda s, _, value: s.put("response.reasoning_text.delta", **AT, delta=_text(value)),
    "summary": lambda s, _, value: s.put(
        "response.reasoning_summary_text.delta", item_id="r", output_index=1, summary_index=0, delta=_text(value)
    ),
    "part": lambda s, name, value: s.put(
        "response.content_part.done", **AT, part={"type": "output_text", "text": "fine", name: value}
    ),
    "part text": lambda s, _, value: s.put(
        "response.content_part.done", **AT, part={"type": "output_text", "text": _text(value), "annotations": []}
    ),
    "part type": lambda s, _, value: s.put("response.content_part.added", **NEXT, part={"type": value}),
    "annotation": lambda s, name, value: s.put(
        "response.output_text.annotation.added", **AT, annotation_index=0, annotation={"type": "file_path", name: value}
    ),
    "item": lambda s, name, value: s.begun(**{"type": "message", "content": [], name: value}),
    "item text": lambda s, _, value: s.begun(**_part(text=_text(value))),
    "item part": lambda s, name, value: s.done(**_part(text="x", **{f"x_{name}": value})),
    "item done": lambda s, _, value: s.begun(**_part(text="")).done(**_part(text=_text(value))),
    "item type": lambda s, _, value: s.begun(type=value),
    "item_id": lambda s, _, value: s.begun(id=value, type="message"),
    "call name": lambda s, _, value: s.begun(type="function_call", name=_text(value), call_id="c", arguments=""),
    "call id": lambda s, _, value: s.begun(type="function_call", name="f", call_id=value, arguments="{}"),
    "arguments": lambda s, _, value: s.done(type="function_call", name="f", call_id="c", arguments=json.dumps([value])),
    "input": lambda s, _, value: s.done(type="custom_tool_call", name="f", call_id="c", input=_text(value)),
    "call field": lambda s, name, value: s.begun(type="function_call", name="f", call_id="c", **{f"x_{name}": value}),
    "action": lambda s, name, value: s.done(type="computer_call", call_id="c", action={name: value}),
    "query": lambda s, _, value: s.done(type="web_search_call", action={"type": "search", "query": value}),
    "queries": lambda s, _, value: s.done(type="file_search_call", queries=[value], results=[{"text": value}]),
    "code": lambda s, _, value: s.done(type="code_interpreter_call", code=_text(value), outputs=[]),
    "outputs": lambda s, _, value: s.done(
        type="code_interpreter_call", code="1", outputs=[{"type": "logs", "logs": value}]
    ),
    "mcp": lambda s, _, value: s.done(type="mcp_call", name="f", server_label="l", arguments="{}", output=_text(value)),
    "tools": lambda s, name, value: s.done(type="mcp_list_tools", server_label="l", tools=[{"name": "t", name: value}]),
    "image": lambda s, _, value: s.put(
        "response.image_generation_call.partial_image", item_id="i", output_index=1, partial_image_b64=_text(value)
    ),
    "thought": lambda s, _, value: s.done(type="reasoning", summary=[{"type": "summary_text", "text": _text(value)}]),
    "encrypted": lambda s, _, value: s.done(type="reasoning", summary=[], encrypted_content=value),
    "new event": lambda s, name, value: s.put("response.something.delta", output_index=0, **{f"x_{name}": value}),
    "name of event": lambda s, _, value: s.put(f"response.{_text(value)[:40]}", output_index=0),
    "answer": lambda s, name, value: s.tell(**{f"x_{name}": value}),
    "instructions": lambda s, _, value: s.tell(instructions=value),
    "metadata": lambda s, name, value: s.tell(metadata={name: value}),
    "model": lambda s, _, value: s.tell(model=value),
    "output": lambda s, _, value: s.tell(message(_text(value))),
    "all again": lambda s, _, value: s.end(message(" fine, "), message(_text(value), id="msg_2")),
    "joined": lambda s, _, value: s.end(message(" fine, "), output_text=_text(value)),
    "incomplete": lambda s, name, value: s.end(status="incomplete", incomplete_details={"reason": value, name: value}),
    "failed": lambda s, _, value: s.end(status="failed", error={"code": "server_error", "message": _text(value)}),
    "usage": lambda s, name, value: s.end(message(" fine, "), usage={"input_tokens": 1, name: value}),
    "error": lambda s, name, value: s.put("error", code="x", message=_text(value), param=None, **{f"x_{name}": value}),
}  # fmt: skip


def respelled(raw: bytes, draw: Draw) -> bytes:
    """Return events whose JSON is spelled in another way that says the same."""
    lines = []
    for line in raw.split(b"\n"):
        body = spelled(json.loads(line[6:]), draw).encode() if line.startswith(b"data: ") else b""
        lines.append(b"data: " + body if body else line)
    return b"\n".join(lines)


@settings(max_examples=examples(250), deadline=None)
@given(st.data())
def test_g34_a_secret_anywhere_in_an_event_of_an_answer_never_leaves(data: st.DataObject) -> None:
    secret, place = data.draw(st.sampled_from(SECRETS)), data.draw(st.sampled_from(sorted(PUTS)))
    value = data.draw(nests(secret))
    # What a tool is given is text: no view reads numbers in it as the codes of characters.
    assume(place not in ("arguments", "action") or any(holds(text, secret) for _, text in strings(value)))
    made = Open(data.draw(st.integers(0, 3)))
    begun = len(made.events)
    PUTS[place](made, data.draw(NAMES), value)
    made.events[begun:] = [respelled(raw, data.draw) for raw in made.events[begun:]]
    for _ in range(data.draw(st.integers(0, 2))):
        made.say()
    made.end(message(" fine, "))
    out = play(RESPONSES, PLAN, request(), split(data.draw, made.joined))
    assert out.closed
    assert_unheard(secret, out)


@pytest.mark.parametrize("place", sorted(PUTS))
def test_g34_every_place_of_an_answer_is_read(place: str) -> None:
    made = Open()
    PUTS[place](made, "field", SECRETS[0])
    made.end()
    out = play(RESPONSES, PLAN, request(), [made.joined])
    assert_unheard(SECRETS[0], out)


@settings(max_examples=examples(120), deadline=None)
@given(st.data())
def test_g34_a_secret_anywhere_in_a_whole_answer_never_leaves(data: st.DataObject) -> None:
    secret, name = data.draw(st.sampled_from(SECRETS)), data.draw(NAMES)
    value = data.draw(nests(secret))
    item: dict[str, Any] = data.draw(
        st.sampled_from([
            message(_text(value)),
            {**message("fine"), f"x_{name}": value},
            _part(text="fine", **{f"x_{name}": value}),
            _part(text="fine", logprobs=[{"token": _text(value), "logprob": 0.0}]),
            message(_text(value), form="refusal"),
            reasoning(_text(value)),
            {**reasoning("hm"), "encrypted_content": value},
            {**call("f", "{}"), "call_id": value},
            call(_text(value), "{}"),
            {"type": "web_search_call", "action": value},
            {"type": value, name: value},
        ])
    )  # fmt: skip
    more = data.draw(st.sampled_from([{}, {name: value}, {"usage": {name: value}}, {"output_text": _text(value)}]))
    body = spelled(json.loads(responses.whole(item, **more)), data.draw).encode()
    status = data.draw(st.sampled_from([200, 200, 400, 529]))
    out = play(RESPONSES, PLAN, request(stream=False), [body], streaming=False, status=status)
    assert out.reply is not None
    assert_unheard(secret, out)


CUTS: dict[str, Callable[[Open, str, int], object]] = {
    "text": lambda s, piece, _: s.say(delta=piece),
    "refusal": lambda s, piece, _: s.put("response.refusal.delta", **NEXT, delta=piece),
    "summary": lambda s, piece, _: s.put(
        "response.reasoning_summary_text.delta", item_id="r", output_index=1, summary_index=0, delta=piece
    ),
    "arguments": lambda s, piece, _: s.put(
        "response.function_call_arguments.delta", item_id="r", output_index=1, delta=piece
    ),
    "field": lambda s, piece, _: s.say(x=piece),
    "new": lambda s, piece, _: s.put("response.something.delta", output_index=0, delta=piece),
    "two parts": lambda s, piece, count: s.say(delta=piece, content_index=count),
    "mixed": lambda s, piece, count: s.say(delta=piece, content_index=count % 2),
}


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_g34_a_secret_cut_over_the_events_of_an_answer_never_leaves(data: st.DataObject) -> None:
    secret = data.draw(st.sampled_from([*SECRETS, "4242424242424242"]))
    put = CUTS[data.draw(st.sampled_from(sorted(CUTS)))]
    text = data.draw(st.sampled_from([f"so {secret} it is", secret]))
    edges = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=4))})
    made = Open()
    for count, (low, high) in enumerate(itertools.pairwise(edges)):
        put(made, text[low:high], count)
    made.end()
    out = play(RESPONSES, PLAN, request(), split(data.draw, made.joined))
    assert_unheard(secret, out)
    texts: dict[object, str] = {}
    for body in responses.events(out.joined):
        if body["type"] == TEXT:
            texts[body["content_index"]] = texts.get(body["content_index"], "") + body["delta"]
    assert not any(holds(found, secret) for found in texts.values())


PIECES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "bc", "4111"])), min_size=1, max_size=9)


def _taken(pieces: list[tuple[int, str]], *, quickly: bool) -> list[str]:
    """Return what is read of deltas of several texts, and in the end why one was refused."""
    receiving, moulds, texts = ResponseReceiving(None), Moulds(), list[str]()
    for number, (index, delta) in enumerate(pieces):
        at = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
        raw = responses.event("response.output_text.delta", number, **at, delta=delta, logprobs=[])
        frame = sse.parse(raw)
        unit = moulds.read(frame) if quickly else None
        if unit is None:
            try:
                unit = receiving.read_event(frame)
            except WireError as error:
                return [*texts, str(error)]
            moulds.forget_others(unit)
            moulds.learn(frame, unit)
        texts.append("".join(each.text for each in unit.deltas if each.channel.kind == "content"))
    return texts


@given(PIECES)
@example([(0, "a"), (1, ""), (0, "bc")])
@example([(0, "a"), (1, "a"), (0, "bc")])
def test_g34_what_is_read_by_comparison_is_what_is_read_in_full(pieces: list[tuple[int, str]]) -> None:
    assert _taken(pieces, quickly=True) == _taken(pieces, quickly=False)


@pytest.mark.parametrize(
    ("pieces", "taken"), [([(0, "a"), (1, ""), (0, "b")], True), ([(0, "a"), (1, "x"), (0, "b")], False)]
)
def test_a_text_may_go_on_behind_what_says_nothing(pieces: list[tuple[int, str]], taken: bool) -> None:
    assert (_taken(pieces, quickly=True)[-1] == "b") is taken
