"""Reads the answers of the Responses API: which text stands where, what says it again, where the answer ends.

The one choice is 0. All texts of messages are its content, all reasoning and its summaries are its reasoning; of a call
of a tool the item's number is the number. A text is read where it is said first. What says it again, be it a part, an
item or the answer as a whole, is not read: it leaves with what was sent (`sending`). What it says besides is.

INVARIANT: a string, number or member name of an answer is a delta, an extra, a word of the protocol, or said again;
bytes spelled as text are named in `unscanned`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import msgspec

from checkstream.core.steps import Steps, done, freeing
from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire.answers.answer import MAX_INDEX, Answer
from checkstream.core.wire.answers.extras import PAD, PADDING
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_text.objects import read_object, reading_object
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.splices import putting
from checkstream.core.wire.responses import events
from checkstream.core.wire.responses.echo import Echo, Sent
from checkstream.core.wire.responses.items import ITEMS_A_STEP, Items
from checkstream.core.wire.responses.shaping import instructed
from checkstream.core.wire.surface import Request
from checkstream.errors import WireError

_RESPONSE = frozenset({
    "id", "object", "created_at", "completed_at", "model", "status", "error", "incomplete_details", "usage",
    "service_tier", "background", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "temperature", "top_p",
    "top_logprobs", "truncation", "store", "billing", "frequency_penalty", "presence_penalty", "moderation",
    "tool_usage", "prompt_cache_retention", "prompt_cache_options", "prompt_cache_diagnostics", "image",
    "input_transformations", "access_programs", "kv_transfer_params",
})  # fmt: skip
"""Members of an answer, besides its output and what it repeats of the request."""
_SAME = frozenset({"id", "object", "model", "service_tier"})
_EVENT = frozenset({"error", "code", "message", "param", "response_id"})
_NUMBERS = frozenset({
    "type", "sequence_number", "output_index", "content_index", "summary_index", "annotation_index", "command_index",
    "partial_image_index",
})  # fmt: skip
_NUMBER = "sequence_number"
"""It leaves as it goes on from the number before, whatever stands there (see `sending`)."""
_OF_ERRORS = frozenset({"type", _NUMBER})
_NOTHING: frozenset[str] = frozenset()


class ResponseReceiving:
    """What has come of one answer, as far as what comes later repeats it."""

    def __init__(self, request: Request | None, *, stored: bool = False) -> None:
        """Begin before the first event of the answer to a request.

        Args:
            request: What was asked; None: nobody knows.
            stored: What comes whole may be something else that the provider keeps: a list, or a word of an end.
        """
        self._stored = stored
        self._items = Items("rest" if request is not None and request.goes_on else "items")
        if request is not None and request.goes_on:
            self._items.refusal = "content"  # of a stream that goes on it leaves in the text that is open
        self._echo = Echo({} if request is None else request.members)
        self._repeated = Sent(*((b"", frozenset[bytes]()) if request is None else request.sent))
        self._own = None if request is None else request.members.get("instructions")
        changed = request is not None and (request.forwarded or request.instructed)
        self._sent = instructed(request) if request is not None and changed else None
        """Instructions that the upstream was given in place of the caller's own."""

    @property
    def memory(self) -> Sequence[object]:
        """What has been said of items and their parts: there may be thousands."""
        return *self._items.memory, self._echo.memory

    # --- streams

    def read_event(self, frame: Frame) -> Unit:
        """Read one event of a stream.

        Raises:
            WireError: it is not what the API allows.
        """
        return done(self._reading(frame, steps=False))

    def reading_event(self, frame: Frame) -> Generator[None, None, Unit]:
        """Read a long event of a stream, in steps.

        Raises:
            WireError: as `read_event`.
        """
        return self._reading(frame, steps=True)

    def _reading(self, frame: Frame, *, steps: bool) -> Generator[None, None, Unit]:
        data = frame.data
        if data is None or not data.strip():
            return Unit(raw=frame.raw, opaque=frame.strange)
        if data.strip() == b"[DONE]":
            return Unit(raw=b"")  # the last word of OpenAI's older APIs, which some servers send besides their own
        body = read_object(data)
        kind = body.get("type", frame.event)
        if not isinstance(kind, str) or (frame.event and frame.event != kind):
            raise WireError("the event's name is not its `type`; check the upstream")
        yield
        unit = yield from self._read(frame, Answer(data, whole=False, steps=steps), body, kind)
        padding = body.get(PADDING)
        if isinstance(padding, str) and padding:
            return (yield from putting(unit, {(PADDING,): PAD * len(padding)}))
        return unit

    def _read(self, frame: Frame, answer: Answer, body: dict[str, object], kind: str) -> Generator[None, None, Unit]:
        self._items.begin(answer)
        if kind == "error" or (not kind.startswith("response.") and failure_of(body) is not None):
            said = body.get("message")
            _rest(answer, body, _EVENT, _OF_ERRORS, (), choice=COMMON)
            yield from answer.taking()
            unit = answer.unit(frame.raw, failure=failure_of(body) or (said if isinstance(said, str) else "error"))
            return msgspec.structs.replace(unit, number=_number_of(body))
        if not kind:
            _rest(answer, body, _NOTHING, _NOTHING, (), choice=COMMON)
            yield from answer.taking()
            return answer.unit(frame.raw, opaque=True)
        left_out = self._items.left_out(body, kind)
        if left_out:
            body |= left_out
        _look_at_numbers(body)
        answer.choices.append(0)
        name, _, step = kind.rpartition(".")
        form = events.FORMS.get(name)
        failure = None
        if form is not None and step in form.steps:
            self._items.read_text(form, body, begins=step == "added", over=step == "done")
        elif name in events.PARTS and step in ("added", "done"):
            self._items.read_part_event(events.PARTS[name], body, over=step == "done")
        elif name == events.ITEM and step in ("added", "done"):
            yield from self._items.reading_item_event(body, over=step == "done")
        elif kind in events.LIFE or kind in events.LAST:
            failure = yield from self._read_response(answer, body, kind)
        else:
            self._items.read_other(body, kind)
        yield from answer.taking()
        if self._stored:
            yield from self._repeated.leaving_out(answer.extras.found, listed=False)
        if kind in events.SNAPSHOTS:
            self._items.whole(kind)
        yield
        last = kind in events.LAST
        response = body.get("response")
        own = self._given_back(response, "response")
        usage = last and isinstance(response, dict) and response.get("usage") is not None
        unit = answer.unit(frame.raw, usage=usage, failure=failure)
        ids, at = _ids_of(response, body.get("item")), _number_of(body)
        unit = done(putting(unit, own)) if own else unit
        return msgspec.structs.replace(
            unit, terminator=last, again=self._items.again, kept_as=ids, number=at, left_out=left_out
        )

    def _read_response(self, answer: Answer, body: dict[str, object], kind: str) -> Generator[None, None, str | None]:
        """Read an event that has all of the answer as far as it goes; return why it has failed."""
        response = body.get("response")
        if not isinstance(response, dict):
            raise WireError("`response` is not an object; check the upstream")
        output = response.get("output")
        if output is not None and not isinstance(output, list):
            raise WireError("`output` is not an array; check the upstream")
        last = kind.rpartition(".")[2] if kind in events.LAST else ""
        yield from self._items.reading_output(output or [], ("response", "output"), last=last)
        yield from self._rest_of_response(answer, response, ("response",))
        _rest(answer, body, _NOTHING, _NUMBERS | {"response"}, ())
        if kind not in events.LAST:
            return None
        _finish(answer, response, kind)
        return failure_of(response)

    def _rest_of_response(
        self, answer: Answer, response: Mapping[str, object], at: Path, *, long: bool = False
    ) -> Steps:
        for count, (name, value) in enumerate(response.items(), 1):
            if count % _MEMBERS_A_STEP == 0:
                yield
            path = (*at, name)
            if name == "output" or (name == "instructions" and value == self._sent):
                continue
            if (yield from self._echo.looking(name, value, long=long)):
                continue
            if name in _SAME:
                answer.extras.known(0, value, path, ("response", name), "first")
            elif name not in _RESPONSE:
                answer.unknown(0, value, path, ("response", name))
            elif not (name == "status" and isinstance(value, str) and value in events.STATUSES):
                answer.extras.known(0, value, path, ("response", name))

    def _given_back(self, response: object, *at: str) -> dict[Path, str | None]:
        """Return what is put into an answer in place of what rules have made of the caller's instructions."""
        told = response.get("instructions") if isinstance(response, dict) else None
        if told is None or told != self._sent:
            return {}
        return {(*at, "instructions"): self._own if isinstance(self._own, str) else None}

    # --- whole answers

    def reading_whole(self, data: bytes) -> Generator[None, None, Unit]:
        """Read a whole answer, in steps; its last delta is a place for what a stop or a disclaimer has to say.

        Raises:
            WireError: a value has the wrong type; it has neither output nor an error.
        """
        body = yield from reading_object(data)
        answer = Answer(data, whole=True)
        return (yield from freeing([body, answer.extras.found], self._whole(answer, data, body), len(data)))

    def _whole(self, answer: Answer, data: bytes, body: dict[str, object]) -> Generator[None, None, Unit]:
        self._items.begin(answer)
        self._items.refusal = "refusal"
        failure = failure_of(body)
        output = body.get("output")
        if not isinstance(output, list):
            if failure is None and not self._stored:
                raise WireError("the answer has neither `output` nor `error`; check the upstream")
            _rest(answer, body, _EVENT | _RESPONSE, _NOTHING, (), choice=COMMON)
            yield from answer.taking()
            yield from self._repeated.leaving_out(answer.extras.found, listed=True)
            return answer.unit(data, failure=failure)
        answer.begin(0)
        status = body.get("status")
        ends = status if isinstance(status, str) else "completed"
        _finish(answer, body, f"response.{ends}")
        for position, item in enumerate(output):
            yield from self._items.reading_item(position, item, ("output", position), ends=ends)
            if position % ITEMS_A_STEP == ITEMS_A_STEP - 1:
                yield from answer.taking()
                yield
        yield from self._rest_of_response(answer, body, (), long=len(data) > _LONG_BYTES)
        if all(delta.channel.kind != "content" for delta in answer.deltas):
            answer.begin_text(0, ("output", len(output), "content", 0, "text"))
        yield from answer.taking()
        if self._stored:
            yield from self._repeated.leaving_out(answer.extras.found, listed=False)
        yield from answer.filling()
        unit = answer.unit(data, usage=body.get("usage") is not None, failure=failure)
        own = self._given_back(body)
        if own:
            unit = yield from putting(unit, own)
        self._items.begin(Answer(b"", whole=False))  # what was read is freed where it was read to
        return msgspec.structs.replace(unit, kept_as=_ids_of(body, *output))


def _number_of(body: Mapping[str, object]) -> int | None:
    """Return which event of its stream one says that it is."""
    number = body.get(_NUMBER)
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < _MOST_EVENTS else None


def _ids_of(*found: object) -> tuple[str, ...]:
    """Return by what a later request goes on from an answer, or refers to items of it."""
    given = (each.get("id") for each in found if isinstance(each, dict))
    return tuple(each for each in given if isinstance(each, str) and each)


def _finish(answer: Answer, response: Mapping[str, object], kind: str) -> None:
    """Take the end of the answer, and why something is missing of it."""
    answer.finish(0, None)
    why = events.LAST.get(kind, "other")
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if why is not None:
        answer.broken[0] = _MISSING.get(reason, why) if isinstance(reason, str) else why


_MISSING = {"max_output_tokens": "length", "content_filter": "content_filter", "max_tokens": "length"}


def _look_at_numbers(body: Mapping[str, object]) -> None:
    for name in _NUMBERS:
        value = body.get(name)
        if name in _OF_ERRORS or value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MAX_INDEX:
            raise WireError(f"`{name}` is not a number from 0 to {MAX_INDEX - 1}; check the upstream")


_MOST_EVENTS = 10**9
_MEMBERS_A_STEP = 128
_LONG_BYTES = 65_536
"""Of an answer that has so much in one field that to hold it against the request takes long."""


def _rest(
    answer: Answer, body: Mapping[str, object], known: frozenset[str], own: frozenset[str], at: Path, *, choice: int = 0
) -> None:
    """Take the members of an object that are not `own`; the arguments are those of `Answer.rest`."""
    if len(body) > len(own) or not own.issuperset(body):
        answer.rest(choice, body, known, own, at)
