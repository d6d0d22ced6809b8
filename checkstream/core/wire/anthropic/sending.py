"""The events of one stream of the Messages API as they leave: a sequence that every client takes.

A message begins, its blocks are numbered without a gap, each is opened and closed, one after the other; then the
message says why it ends, once, and stops. What rules take out or add leaves that so: blocks behind it get other
numbers, and text that is added goes into the text block that is open, or into one of its own. A thinking block is
signed, and the API takes it back only as the model wrote it: where rules may edit it, it leaves when it is over, or,
with anything in it edited or missing, not at all.

INVARIANT: while nothing was taken out or added, each event leaves as the bytes it came in.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import msgspec

from checkstream.core.steps import done
from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.anthropic.answers import number_of
from checkstream.core.wire.anthropic.edits import REFUSAL, editing_event, renumbered
from checkstream.core.wire.anthropic.errors import error_event
from checkstream.core.wire.json_text.objects import read_object
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.surface import Edit

_TEXTS = frozenset({"content", "reasoning", "tool_arguments"})
_OWN_ID = "msg_checkstream"
_LONG_BYTES = 16_384
"""Of an event that is edited in one step, and leaves in another."""


class _Block(msgspec.Struct):
    """The block that is open."""

    number: int
    """As it leaves."""
    form: str
    upstream: int | None = None
    """Its number as it came; None: it is ours."""
    kept: list[bytes] | None = None
    """Its events, which leave when it is over; None: each leaves at once."""
    edited: bool = False
    """An event that is kept is not as the model wrote it."""


class MessageSending:
    """What leaves of one stream, and as far as it must be known what has left."""

    alters = True
    tells_rest = False

    def __init__(self, most_held: int = 0) -> None:
        """Begin before the first event.

        Args:
            most_held: Bytes of a thinking block that may be kept until it is over: one that has more doesn't leave.
                0: no rule edits thinking, and none is kept.
        """
        self.gave_up = False
        """A thinking block had more than may be kept."""
        self.withheld = 0
        """Thinking blocks that have not left."""
        self._kept = 0
        """Thinking blocks that have been kept."""
        self._held = 0
        """Bytes of the thinking block that is kept."""
        self._most_held = most_held
        self._begun = False
        self._next = 0
        """Number of the next block."""
        self._numbers: dict[int, int] = {}
        """Number of the upstream's latest blocks -> that under which it leaves."""
        self._open: _Block | None = None
        self._moved = False
        """Blocks have other numbers than the upstream's."""
        self._left_out: set[str] = set()
        """Ids of calls that were taken out."""
        self._usage: object = None
        """What the upstream says of tokens at an end that is not told."""
        self._ends = False
        """A rule has ended the message; why is still to be said."""
        self._ended = False
        """It was said why the message ends."""
        self._over = False
        """The last word was said."""

    @property
    def holding(self) -> int:
        """Which thinking block is kept, or goes, counted from 1; 0: none."""
        return self._kept if self._open is not None and self._open.kept is not None else 0

    @property
    def memory(self) -> Sequence[object]:
        """What is known of blocks."""
        return self._numbers, self._left_out

    def go_on(self) -> None:
        """Do nothing: a message that has begun does not begin again, and a text goes on in the block that is open."""

    def as_it_came(self, unit: Unit) -> bytes:
        """Return an event that nobody has edited."""
        deltas = unit.deltas
        if deltas and not self._moved and deltas[0].path[0] == "delta" and deltas[0].channel.kind in _TEXTS:
            return unit.raw if self._open is None else self._left(self._open, unit.raw, edited=False)
        return self._sent(unit, unit.raw)

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return an event with the edit applied, `b""` when nothing of it remains.

        Raises:
            WireError: the event's JSON has two members of one name where it is edited.
        """
        return done(self.writing_event(unit, edit))

    def writing_event(self, unit: Unit, edit: Edit | None) -> Generator[None, None, bytes]:
        """Return, in steps, a long event as it leaves.

        Raises:
            WireError: as `write_event`.
        """
        if edit is None:
            return self.as_it_came(unit)
        if edit.drop_calls:
            self._leave_out(unit)
            return b""
        if 0 in edit.drop_choices and 0 in unit.choices:
            self._usage = _figures(_body(unit.raw).get("usage")) if unit.usage else self._usage
            return self._told(self._usage) if unit.usage and self._ends else b""
        edited = yield from editing_event(unit, edit)
        if len(edited) > _LONG_BYTES:
            yield
        return self._sent(unit, edited)

    def _leave_out(self, unit: Unit) -> None:
        """Take out an event of a call, and with its first one the call's number."""
        self._moved = True
        block = _body(unit.raw).get("content_block")
        if isinstance(block, dict) and isinstance(block.get("id"), str):
            self._left_out.add(block["id"])

    def _sent(self, unit: Unit, raw: bytes) -> bytes:
        """Return the event with all that must leave before it.

        Args:
            unit: As it was read.
            raw: As it was edited.
        """
        body = _body(raw)
        if self._over:
            return b""
        match body.get("type"):
            case "message_start":
                first, self._begun = not self._begun, True
                return raw if first else b""
            case "content_block_start":
                return self._opened(unit, body, raw)
            case "content_block_delta" | "content_block_stop":
                return self._within(unit, body, raw)
            case "message_delta":
                if self._ended:
                    return b""
                self._ended = bool(unit.finished)
                return self._close(over=True) + raw
            case "message_stop":
                data, self._over = self._end() + raw, True
                return data
            case _:
                return raw

    def _opened(self, unit: Unit, body: Mapping[str, object], raw: bytes) -> bytes:
        """Return the first event of a block, under the number that is next."""
        before, block = self._close(over=True), body.get("content_block")
        said = block if isinstance(block, dict) else {}
        told = said.get("tool_use_id")
        if isinstance(told, str) and told in self._left_out:
            self._moved = True
            return before  # nobody has asked for what it tells
        number = number_of(body)
        self._numbers[number] = self._next
        self._open = _Block(self._next, str(said.get("type")), number)
        self._next += 1
        self._moved = self._moved or self._open.number != number
        if self._open.form == "thinking" and self._most_held:
            self._open.kept = []
            self._kept += 1
        return before + self._left(self._open, renumbered(raw, self._open.number), edited=raw != unit.raw)

    def _within(self, unit: Unit, body: Mapping[str, object], raw: bytes) -> bytes:
        """Return an event of the block that is open; of any other nothing leaves."""
        block = self._open
        if block is None or block.number != self._numbers.get(number_of(body)):
            return b""
        data = self._left(block, renumbered(raw, block.number), edited=raw != unit.raw)
        if body.get("type") != "content_block_stop":
            return data
        self._open = None
        return data + self._whole(block)

    def _left(self, block: _Block, raw: bytes, *, edited: bool) -> bytes:
        """Return what is sent of an event of a block: nothing, where it is kept until the block is over."""
        if block.kept is None:
            return raw
        self._held += len(raw)
        too_long = self._held > self._most_held
        self.gave_up = self.gave_up or too_long
        block.edited = block.edited or edited or too_long
        if block.edited:
            block.kept.clear()
            self._held = 0
        else:
            block.kept.append(raw)
        return b""

    def _whole(self, block: _Block, *, over: bool = True) -> bytes:
        """Return what is sent of a block at its end: the events of one that was kept, and is as the model wrote it."""
        kept = b"".join(block.kept or ())
        self._held = 0
        if block.kept is None or (over and not block.edited):
            return kept
        self.withheld += 1
        self._next, self._moved = block.number, True  # the next one gets its number
        if block.upstream is not None:
            self._numbers.pop(block.upstream, None)  # what comes of it later is of no other
        return b""

    # --- events of our own

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return what adds `text` to the message: in the text block that is open, or in one of its own."""
        del choice
        if self._over:
            return b""
        data = self._begin(like)
        if self._open is None or self._open.form != "text":
            data += self._close()
            self._open = _Block(self._next, "text")
            self._next += 1
            self._moved = True
            data += _event("content_block_start", index=self._open.number, content_block={"type": "text", "text": ""})
        said = {"type": "text_delta", "text": clean(text)}
        return data + _event("content_block_delta", index=self._open.number, delta=said)

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return what ends the message as stopped by policy; why is told with the usage, which may be to come."""
        del choice
        if self._over:
            return b""
        self._ends = True
        data = self._begin(like) + self._close()
        return data + (self._told(self._usage) if self._usage is not None else b"")

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return why the message ends, with an estimate of its tokens, marked as one (G16)."""
        del prompt_tokens  # the message's first event has told
        usage = {"output_tokens": completion_tokens, "checkstream_estimated": True}
        return self._begin(like) + self._close() + (self._told(usage) if self._ends else b"")

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return a ping with these members: SDKs pass over it, so that it can't disturb what they put together."""
        del like
        return _event("ping", **members)

    def terminator(self) -> bytes:
        """Return what ends the stream."""
        if self._over:
            return b""
        data, self._over = self._end() + _event("message_stop"), True
        return data

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error event for a stream that can't go on."""
        return error_event(kind, message, rule_id)

    def _begin(self, like: Unit) -> bytes:
        """Return the beginning of a message that has not begun."""
        if self._begun:
            return b""
        self._begun = True
        first = _body(like.raw)
        if first.get("type") == "message_start":
            return sse.encode(sse.parse(like.raw).data or b"", "message_start")
        message: dict[str, object] = {
            "id": _OWN_ID, "type": "message", "role": "assistant", "content": [], "model": "",
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        return _event("message_start", message=message)

    def _close(self, *, over: bool = False) -> bytes:
        """Return the end of the block that is open, if one is; of thinking that was kept, and breaks off, nothing.

        Args:
            over: Something has begun behind it: some servers end all blocks at the end of the message.
        """
        block, self._open = self._open, None
        if block is None:
            return b""
        self._moved = True
        data = self._whole(block, over=over)
        return b"" if block.kept is not None and not data else data + _event("content_block_stop", index=block.number)

    def _told(self, usage: object) -> bytes:
        self._ends, self._ended = False, True
        return _event("message_delta", delta={"stop_reason": REFUSAL, "stop_sequence": None}, usage=usage)

    def _end(self) -> bytes:
        """Return what is missing before the last word."""
        data = self._close()
        return data + (self._told({"output_tokens": 0, "checkstream_estimated": True}) if self._ends else b"")


def _event(name: str, **members: object) -> bytes:
    return sse.encode(msgspec.json.encode({"type": name, **members}), name)


def _figures(value: object) -> object:
    """Return of what the upstream says of tokens the figures alone."""
    if isinstance(value, dict):
        return {name: _figures(inner) for name, inner in value.items() if isinstance(inner, dict | int | float)}
    return value if isinstance(value, int | float) else None


def _body(raw: bytes) -> dict[str, object]:
    data = sse.parse(raw).data
    return read_object(data) if data is not None and data.strip() else {}
