"""The events of one stream of the Responses API as they leave: a sequence that every client takes, true to itself.

An answer begins, its items are numbered without a gap, each is told when it begins and when it is over, then the answer
is told as a whole. What rules take out or add leaves that so. What says again what has been said leaves with what was
sent of it, whatever the upstream's copy says.

INVARIANT: while nothing was taken out, changed or added, each event leaves as the bytes it came in, if it says that it
is the next.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence

import msgspec

from checkstream.core.steps import Walk, done
from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strings import clean, quote
from checkstream.core.wire.responses import events
from checkstream.core.wire.responses.edits import editing_event
from checkstream.core.wire.responses.errors import error_event
from checkstream.core.wire.responses.objects import (
    Members,
    entries,
    is_object,
    listed,
    members,
    rewriting,
    tree_of,
    written,
)
from checkstream.core.wire.responses.parts import Closed, OpenItem, OpenPart
from checkstream.core.wire.responses.rest import Rest
from checkstream.core.wire.surface import Edit

_NUMBER = "sequence_number"
_FIELD = f'"{_NUMBER}":'.encode()
_OWN = 1_000_000
"""Items of our own are numbered from here; those of the upstream's are fewer."""
_NOTHING: Mapping[int, str] = {}
_VALUES_A_STEP = 32
_FILTERED = b'{"reason":"content_filter"}'
_ANSWER = {
    "id": "resp_checkstream", "object": "response", "created_at": 0, "status": "in_progress", "error": None,
    "incomplete_details": None, "instructions": None, "metadata": {}, "model": "", "output": [],
    "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto", "tools": [], "top_p": None, "usage": None,
}  # fmt: skip


class ResponseSending:
    """What leaves of one stream, and what has left."""

    alters = True
    tells_rest = True
    gave_up = False
    holding = withheld = 0

    def __init__(self) -> None:
        """Begin before the first event."""
        self._next: int | None = None
        """Number of the next event; None: none has had one."""
        self._moved = False
        """Items were taken out or added: those behind them have other numbers than the upstream's."""
        self._items: dict[int, OpenItem] = {}
        """The upstream's number of an item, or our own -> the item, while it is not over."""
        self._out: dict[int, int] = {}
        """The same -> the number under which it leaves."""
        self._closed = Closed()
        self._gone: set[int] = set()
        """Items that were taken out."""
        self._answer: bytes = b""
        """The answer as it was told when it began."""
        self._usage: bytes = b"null"
        self._results: Members = {}
        self._ends = False
        """A rule has ended the answer; that is still to be said."""
        self._over = False
        """The last word was said."""
        self._rest: Rest | None = None
        """What comes is the rest of an answer that was cut off."""

    @property
    def memory(self) -> Sequence[object]:
        """What is known of items and texts: there may be thousands."""
        return self._items, self._out, self._gone, self._closed.texts, self._closed.values

    def go_on(self) -> None:
        """Take what comes from here on as the rest of the same answer, which is told as one of its own."""
        self._rest = Rest()
        self._moved = True

    def as_it_came(self, unit: Unit) -> bytes:
        """Return an event that nobody has edited."""
        deltas = unit.deltas
        if len(deltas) == 1 and not unit.again and not unit.halves and deltas[0].path == ("delta",):
            said = self._closed.texts.get(deltas[0].part)
            raw = _numbered(unit, self._next) if said is not None and not self._moved and not self._over else None
            if said is not None and raw is not None:
                said.append(deltas[0].text)
                if self._next is not None:
                    self._next += 1
                return raw
        return done(self._leaving(unit, unit.raw))

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return an event with the edit applied, `b""` when nothing of it remains.

        Raises:
            WireError: the event's JSON has two members of one name where it is edited.
        """
        return done(self.writing_event(unit, edit))

    def writing_event(self, unit: Unit, edit: Edit | None) -> Generator[None, None, bytes]:
        """Return, in steps, an event as it leaves: the last word says all of an answer once more.

        Raises:
            WireError: as `write_event`.
        """
        if edit is None:
            return (yield from self._leaving(unit, unit.raw))
        stopped = 0 in edit.drop_choices and 0 in unit.choices
        if unit.terminator and stopped:
            return self._stopped(unit)
        if stopped or (edit.drop_calls and not unit.terminator and not _is_life(unit)):
            if not stopped:
                self._leave_out(unit, edit)
                self._moved = True
            return b""
        self._leave_out(unit, edit)
        return (yield from self._leaving(unit, (yield from editing_event(unit, edit)), edit.texts))

    def _leave_out(self, unit: Unit, edit: Edit) -> None:
        numbers = (unit.deltas[i].channel.call for i in edit.drop_calls)
        self._gone.update(numbers if self._rest is None else map(self._rest.number, numbers))

    # --- events of the upstream's

    def _leaving(self, unit: Unit, raw: bytes, texts: Mapping[int, str] = _NOTHING) -> Generator[None, None, bytes]:
        """Return, in steps, an event as it may leave: `raw` is as it was edited, `texts` what was put into it."""
        frame = sse.parse(raw)
        data = frame.data
        if self._over:
            return b""
        if data is None or not data.strip() or (not unit.choices and unit.failure is None):
            return raw  # nothing, or what could not be read and passes by the fail mode
        top = members(data)
        kind = str(json.loads(top["type"])) if "type" in top else frame.event
        was, before = dict(top), b""
        top |= {name: str(number).encode() for name, number in unit.left_out.items()}
        if self._rest is not None:
            told = self._rest.said(unit, texts)
            more = self.text_event(unit, 0, told) if told else b""
            if kind in events.LAST and self._answer:
                return more + self._last_of_both(kind, unit, top, raw)
            if (kind in events.LIFE and self._answer) or self._rest.is_of_message(kind, top):
                return more
            unit = self._rest.apart(unit, top)
            before = more + (self._close(status="completed") if self._begins(top) else b"")
        yield from self._say_again(unit, top)
        yield from self._record(unit, top)
        self._take(kind, top, was if raw is unit.raw else members(sse.parse(unit.raw).data or b"{}"))
        before += self._close(own=True, status="completed") if kind in events.LAST else b""
        if kind in events.LIFE or kind in events.LAST:
            self._tell_answer(kind, unit, top)
        self._renumber(unit, top)
        for name in unit.left_out:
            del top[name]
        changed = any(top[name] is not was.get(name) for name in top)
        return before + (sse.reframe(raw, written(top)) if changed else raw)

    def _say_again(self, unit: Unit, top: Members) -> Walk:
        """Put what was sent in the place of what says it again; items that were taken out are told no more."""
        again = {path: part for path, part in unit.again.items() if part[0] not in self._gone or path[0] != "response"}
        if not again:
            return
        for name, tree in tree_of(again).items():
            if name not in top:
                continue
            if isinstance(tree, dict):
                top[str(name)] = yield from rewriting(top[str(name)], tree, self._closed.said_again)
                yield
            else:
                was = top[str(name)]
                top[str(name)] = self._closed.said_again(tree, was)
                if top[str(name)] is not was and "logprobs" in top:
                    top["logprobs"] = b"[]"

    def _record(self, unit: Unit, top: Members) -> Walk:
        """Keep what the event says first, as it leaves."""
        told = tree_of({delta.path: None for delta in unit.deltas if delta.part})
        values: dict[Path, bytes] = {}
        for name, tree in told.items():
            for path, value in _told(top, str(name), tree):
                values[path] = value
                if len(values) % _VALUES_A_STEP == 0:
                    yield
        for delta in unit.deltas:
            if not delta.part:
                continue
            value = values.get(delta.path, b'""')
            if delta.verbatim:
                self._closed.values[delta.part] = value
            else:
                self._closed.texts.setdefault(delta.part, []).append(_text(value))

    def _take(self, kind: str, top: Members, came: Members) -> None:
        """Keep in mind what an event begins or ends."""
        if not top.get("output_index", b"").isdigit():
            return
        number = int(top["output_index"])
        name, _, step = kind.rpartition(".")
        if number not in self._out:
            self._out[number] = len(self._out)
        if name == events.ITEM and "item" in top and is_object(top["item"]):
            if step == "added":
                self._items[number] = OpenItem(top["item"])
            else:
                self._items.pop(number, None)
                self._closed.values[number,] = top["item"]
            return
        item = self._items.get(number)
        if item is None:
            item = self._items[number] = OpenItem(written({"id": top.get("item_id", b'""')}))
        item.take(kind, top, came, self._closed, number)

    def _renumber(self, unit: Unit, top: Members) -> None:
        """Give an event and the item that it is of their numbers: each is one more than the last, whatever it says."""
        if _NUMBER in top or self._next is not None:
            number = (unit.number or 0) if self._next is None else self._next
            if unit.number != number:
                top[_NUMBER] = str(number).encode()
            self._next = number + 1
        if self._moved and top.get("output_index", b"").isdigit():
            _put(top, "output_index", self._out[int(top["output_index"])])

    def _tell_answer(self, kind: str, unit: Unit, top: Members) -> None:
        """Tell the answer as a whole with just the items that were sent."""
        response = members(top["response"])
        was = dict(response)
        numbers = self._numbers(unit)
        given = response.get("output", b"null")
        if given[:1] == b"[":
            there = entries(given)
            kept = [each for at, each in enumerate(there) if numbers.get(at) not in self._gone]
            more = [self._closed.values[n,] for n in self._out if n >= _OWN] if kind in events.LAST else []
            if len(kept) < len(there) or more:
                response["output"] = listed([*kept, *more])
        if kind in events.LAST:
            response |= self._results
            self._over = True
        if any(response[name] is not was.get(name) for name in response):
            top["response"] = written(response)
        self._answer = top["response"]

    def _begins(self, top: Members) -> bool:
        """Tell whether an event is the first about its item."""
        return top.get("output_index", b"").isdigit() and int(top["output_index"]) not in self._out

    def _last_of_both(self, kind: str, unit: Unit, top: Members, raw: bytes) -> bytes:
        """Return the last word of the rest as that of the whole answer: under its id, with the items of both."""
        rest = self._rest or Rest()
        before = self._close(status="completed" if kind == "response.completed" else "incomplete")
        began, response = members(self._answer), members(top["response"])
        values = self._closed.values
        told = [values[n,] for n in self._out if (n,) in values and n not in self._gone]
        numbers = {at: rest.number(number) for at, number in self._numbers(unit).items()}
        known = {at for at, number in numbers.items() if (number,) in values or number in self._gone}
        told += rest.untold(response.get("output", b"null"), known)
        response |= {name: began[name] for name in ("id", "created_at") if name in began}
        top["response"] = written(response | {"output": listed(told)} | self._results)
        self._renumber(unit, top)
        self._over = True
        return before + sse.reframe(raw, written(top))

    @staticmethod
    def _numbers(unit: Unit) -> dict[int, int]:
        """Return the number of each item that an event lists: position -> number."""
        found: dict[int, int] = {}
        for path, part in (*unit.again.items(), *((delta.path, delta.part) for delta in unit.deltas)):
            match path, part:
                case ("response", "output", int(at), *_), (int(number), *_):
                    found[at] = number
        return found

    # --- events of our own

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return what adds `text` to the answer: in the text that is open, or in a message of its own."""
        del choice
        if self._over:
            return b""
        data = self._begin(like)
        number, part = self._open_text()
        if part is None:
            more, number, part = self._new_text()
            data += more
        self._closed.texts[part.key].append(clean(text))
        said = {"content_index": part.index, "delta": quote(text), "logprobs": "[]"}
        return data + self._of_item("response.output_text.delta", number, said)

    def _open_text(self) -> tuple[int, OpenPart | None]:
        """Return the latest item with a text of a message that is open, and that text."""
        for number, item in reversed(self._items.items()):
            for part in reversed(item.parts.values()):
                if part.form == "output_text" and not part.over:
                    return number, part
        return 0, None

    def _new_text(self) -> tuple[bytes, int, OpenPart]:
        """Return what ends all texts that are open and begins a message of our own."""
        data = self._close()
        number = _OWN + len(self._out)
        name = f"msg_checkstream_{number - _OWN}"
        self._out[number] = len(self._out)
        empty = f'{{"id":"{name}","type":"message","status":"in_progress","role":"assistant","content":[]}}'.encode()
        item = self._items[number] = OpenItem(empty)
        data += self._event("response.output_item.added", output_index=self._out[number], item=msgspec.Raw(empty))
        part = item.begin((number, "content", 0, "text"), "output_text", self._closed)
        said = {"content_index": 0, "part": '{"type":"output_text","annotations":[],"logprobs":[],"text":""}'}
        return data + self._of_item("response.content_part.added", number, said), number, part

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return what ends all items as stopped by policy; that the answer has ended is said as the last word."""
        del choice
        if self._over:
            return b""
        self._ends = True
        return self._begin(like) + self._close()

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Keep an estimate of the answer's tokens, marked as one (G16), for the last word."""
        usage = {
            "input_tokens": prompt_tokens, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt_tokens + completion_tokens, "checkstream_estimated": True,
        }  # fmt: skip
        self._usage = msgspec.json.encode(usage)
        return b"" if self._over else self._begin(like)

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Keep these members for the answer as it is told at the end, where those of a whole answer stand."""
        del like
        self._results |= {name: bytes(value) for name, value in members.items()}
        return b""

    def terminator(self) -> bytes:
        """Return the last word of an answer that a rule has ended."""
        return b"" if self._over else self._last_word()

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the error event for a stream that can't go on."""
        return error_event(kind, message, rule_id, number=self._next or 0)

    def _stopped(self, unit: Unit) -> bytes:
        """Return the last word of an answer that a rule has ended, with the upstream's own figures."""
        if self._over:
            return b""
        data = self._begin(unit)
        response = members(members(sse.parse(unit.raw).data or b"{}").get("response", b"{}"))
        usage = json.loads(response.get("usage", b"null"))
        self._usage = msgspec.json.encode(_figures(usage))
        return data + self._last_word()

    def _last_word(self) -> bytes:
        data = self._close()
        response = members(self._answer) | {
            "status": b'"incomplete"', "incomplete_details": _FILTERED, "usage": self._usage,
            "output": listed(self._closed.values[n,] for n in self._out if (n,) in self._closed.values),
        }  # fmt: skip
        data += self._event("response.incomplete", response=msgspec.Raw(written(response | self._results)))
        self._over = True
        return data

    def _begin(self, like: Unit) -> bytes:
        """Return the beginning of an answer that has not begun."""
        if self._answer:
            return b""
        data = sse.parse(like.raw).data
        top = members(data) if data is not None and data.strip() else {}
        said = members(top["response"]) if is_object(top.get("response", b"")) else {}
        empty = {name: msgspec.json.encode(value) for name, value in _ANSWER.items()}
        kept = {name: said[name] for name in ("id", "object", "created_at", "model") if name in said}
        self._answer = written(empty | kept)
        return self._event("response.created", response=msgspec.Raw(self._answer))

    def _close(self, *, own: bool = False, status: str = "incomplete") -> bytes:
        """Return the ends of all items that are open, or of our own ones."""
        data = b""
        for number, item in list(self._items.items()):
            if own and number < _OWN:
                continue
            del self._items[number]
            for part in list(item.parts.values()):
                for kind, said in part.ends(self._closed):
                    data += self._of_item(kind, number, said, item)
            value = self._closed.values[number,] = item.closed(self._closed, number, status)
            data += self._event("response.output_item.done", output_index=self._out[number], item=msgspec.Raw(value))
        return data

    def _of_item(self, kind: str, number: int, said: Mapping[str, object], item: OpenItem | None = None) -> bytes:
        item = item or self._items[number]
        values = {name: msgspec.Raw(v.encode()) if isinstance(v, str) else v for name, v in said.items()}
        return self._event(kind, item_id=msgspec.Raw(item.id), output_index=self._out[number], **values)

    def _event(self, kind: str, **said: object) -> bytes:
        number = self._next or 0
        self._next = number + 1
        return sse.encode(msgspec.json.encode({"type": kind, "sequence_number": number, **said}), kind)


def _numbered(unit: Unit, number: int | None) -> bytes | None:
    """Return an event with another number; None: it has to be read for that."""
    if unit.number == number:
        return unit.raw
    raw, start = unit.raw, unit.raw.find(_FIELD) + len(_FIELD)
    if unit.number is None or number is None or start < len(_FIELD) or raw.find(_FIELD, start) >= 0:
        return None
    start += raw[start : start + 1] == b" "
    was = str(unit.number).encode()
    if not raw.startswith(was, start) or raw[start + len(was) : start + len(was) + 1] not in b",}":
        return None
    return raw[:start] + str(number).encode() + raw[start + len(was) :]


def _is_life(unit: Unit) -> bool:
    return any(delta.path[:1] == ("response",) for delta in unit.deltas)


def _put(top: Members, name: str, number: int) -> None:
    if int(top[name]) != number:
        top[name] = str(number).encode()


def _told(top: Members, name: str, tree: object) -> Iterator[tuple[Path, bytes]]:
    """Yield the values in a member of an event that stand at the leaves of a tree, each with its path."""
    open_: list[tuple[Path, bytes, object]] = [((name,), top.get(name, b'""'), tree)]
    while open_:
        path, value, inner = open_.pop()
        if not isinstance(inner, dict):
            yield path, value
            continue
        found = members(value) if is_object(value) else dict(enumerate(entries(value)))
        open_ += (((*path, each), found.get(each, b'""'), further) for each, further in inner.items())


def _text(value: bytes) -> str:
    said = json.loads(value)
    return said if isinstance(said, str) else ""


def _figures(value: object) -> object:
    """Return of what the upstream says of tokens the figures alone."""
    if isinstance(value, dict):
        return {name: _figures(inner) for name, inner in value.items() if isinstance(inner, dict | int | float)}
    return value if isinstance(value, int | float) else None
