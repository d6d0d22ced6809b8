"""Reads the items of an answer: each text where it is said first, and what says it again as just that."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from checkstream.core.steps import Steps, Walk
from checkstream.core.terms import CALL_TEXTS, Channel, Delta, Extra
from checkstream.core.wire.answers.answer import MAX_INDEX, Answer
from checkstream.core.wire.answers.logprobs import besides, spells_any
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.responses import events
from checkstream.errors import WireError

_KNOWN = frozenset({
    "id", "status", "role", "phase", "call_id", "created_by", "container_id", "server_label", "namespace", "execution",
    "approval_request_id", "type", "caller", "async", "fingerprint", "background", "output_format", "quality", "size",
})  # fmt: skip
_IDS = frozenset({"id", "call_id"})
_WORDS: Mapping[str, frozenset[str]] = MappingProxyType({
    "type": events.ITEMS, "status": events.STATUSES, "role": frozenset({"assistant"}),
})  # fmt: skip
"""Members of an item -> what they say that needs no more reading."""
_EVENT = frozenset({
    "type", "sequence_number", "output_index", "content_index", "summary_index", "annotation_index", "command_index",
    "partial_image_index", "item_id", "obfuscation",
})  # fmt: skip
"""Members of an event that say what it is about."""
_PROBABILITIES = "logprobs"
_COMPLETED = "completed"
CALL = frozenset({"tool_name", "tool_arguments"})
_NOTHING: frozenset[str] = frozenset()
ITEMS_A_STEP = 16
_PARTS_A_STEP = 64


class Items:
    """The items of one answer, as far as they have come."""

    def __init__(self, root: str = "items") -> None:
        """Begin with none.

        Args:
            root: Tells what is said of these items from what is said of others of the answer, which have their numbers.
        """
        self._root = root
        self.refusal = "refusal"
        """Channel of refusals."""
        self._answer = Answer(b"", whole=False)
        self.again: dict[Path, Path] = {}
        """Of the event that is read: where it says again what has been said -> where that belongs."""
        self._said: set[Path] = set()
        """Parts that have said something."""
        self._values: dict[Path, object] = {}
        """Parts and items that are over -> what was said of them then; and what calls are given that is no string."""
        self._ids: dict[str, int] = {}
        """Id of an item -> its number."""
        self._forms: dict[int, str] = {}
        """Number of an item -> its type."""
        self._latest: dict[str, Path] = {}
        """Channel -> the part that has spoken in it last."""
        self._ahead: dict[Path, int] = {}
        """What tells ahead what a tool is given, in events that nobody knows -> its number."""
        self._free = 0
        """Number of an item that no item has."""
        self._parts: dict[tuple[int, str], int] = {}
        """Number of an item, and one of its lists of parts -> the part of it that has been spoken of last."""

    @property
    def memory(self) -> Sequence[object]:
        """Lists, sets and dictionaries in which something is kept in mind."""
        return self.again, self._said, self._values, self._ids, self._forms, self._latest, self._ahead

    def begin(self, answer: Answer) -> None:
        """Begin with another event, which `answer` collects."""
        self._answer = answer
        self.again = {}

    def whole(self, step: str) -> None:
        """Take all that the event says besides texts as complete: clients join it with nothing that other events say.

        Entries of one list say different things there.

        Args:
            step: What it tells, such as that an item is over; each is told once.
        """
        extras = self._answer.extras.found
        extras[:] = [
            msgspec.structs.replace(extra, again="first", place=(step, *_just_there(extra)))
            if extra.joins and extra.again == "read"
            else extra
            for extra in extras
        ]

    # --- events of a stream

    def left_out(self, body: Mapping[str, object], kind: str) -> dict[str, int]:
        """Return the numbers that an event leaves out of what it is about: some servers tell items apart by ids alone.

        Items are numbered in the order in which they begin, and parts in theirs. What has no id either has no place.
        """
        found: dict[str, int] = {}
        number = body.get("output_index")
        if number is None:
            number = self._known_as(body)
            if number is None:
                return found
            found["output_index"] = number
        if isinstance(number, int):
            self._free = max(self._free, number + 1)
        name, _, step = kind.rpartition(".")
        list_ = _list_of(name, kind)
        if list_ and isinstance(number, int) and body.get(events.LISTS[list_]) is None:
            latest = self._parts.get((number, list_), -1)
            begins = step == "added" and kind != events.ANNOTATION
            found[events.LISTS[list_]] = latest + 1 if begins else max(latest, 0)
        return found

    def _known_as(self, body: Mapping[str, object]) -> int | None:
        """Return the number of the item that an event names by its id, which may be the first to do so; None: none."""
        item, given = body.get("item"), body.get("item_id")
        names = [f"id {given}", f"call_id {given}"] if isinstance(given, str) and given else []
        names += [_id_of(item)] if _id_of(item) else []
        known = next((self._ids[name] for name in names if name in self._ids), None)
        if known is None and names:
            known = self._ids[names[0]] = self._free
            self._free += 1
        return known

    def read_text(self, form: events.Form, body: Mapping[str, object], *, begins: bool, over: bool) -> None:
        """Read a piece of a text, how it `begins`, or all of it, now that it is `over`.

        Raises:
            WireError: it goes on with a text that another has followed: clients would join what was read apart.
        """
        number = _number(body, "output_index")
        part: Path = (number, *(_number(body, str(name)) if name in _INDICES else name for name in form.place))
        at = int(part[2]) if form.place[0] in events.LISTS else 0
        if form.place[0] in events.LISTS:
            self._parts[number, str(part[1])] = at
        channel = self.refusal if form.channel == "refusal" else form.channel
        index = (number if channel == "tool_arguments" else 0) + (CALL_TEXTS * (at + 1) if form.ahead else 0)
        member = form.member if over or begins else "delta"
        text = body.get(member)
        if over or begins:
            self._say(channel, text, (member,), part, free=form.free, index=index)
            name = body.get("name")
            if name is not None:
                self._say("tool_name", name, ("name",), (number, "name"))
        else:
            if text:  # what says nothing is not followed by anything
                self._go_on(f"{channel}:{index}" if channel == "tool_arguments" else channel, part)
                self._said.add(part)
            self._answer.text(channel, 0, index, text, ("delta",), part=part, free=form.free)
        if channel == "tool_arguments" and not self._answer.deltas:
            self._call(number, (member,), free=form.free)
        self._probabilities(body, str(text), ())
        own = _EVENT | {member, _PROBABILITIES} | ({"name"} if over else _NOTHING)
        self._rest(body, own, (), (self._root, number, form.member))
        self._item_id(number, body)

    def _go_on(self, channel: str, part: Path) -> None:
        latest = self._latest.get(channel)
        if latest == part:
            return
        if part in self._said and latest is not None:
            raise WireError("a text goes on after another one has begun; check the upstream")
        self._latest[channel] = part

    def read_part_event(self, name: str, body: Mapping[str, object], *, over: bool) -> None:
        """Read that a part of an item begins or is over."""
        number, index = _number(body, "output_index"), _number(body, events.INDEX[name])
        part = body.get("part")
        self._parts[number, name] = index
        self._part((number, name, index), part, ("part",))
        if over:
            self._values[number, name, index] = part
        self._rest(body, _EVENT | {"part"}, (), (self._root, number, name))
        self._item_id(number, body)

    def reading_item_event(self, body: Mapping[str, object], *, over: bool) -> Steps:
        """Read, in steps, that an item begins or is over."""
        number, item = _number(body, "output_index"), body.get("item")
        if item is None and not over:
            self._rest(body, _EVENT, (), (self._root, number))
            return
        yield from self.reading_item(number, item, ("item",), over=over and (number,) not in self._values)
        if over:
            self._values[number,] = item
            if self._forms.get(number) in events.CALLS:
                self._answer.over += () if number in self._answer.torn else (number,)
        self._rest(body, _EVENT | {"item"}, (), (self._root, number))

    def read_other(self, body: Mapping[str, object], kind: str) -> None:
        """Read any other event: all that it says may go on with what others of its kind have said of its item."""
        given = body.get("output_index")
        number = given if isinstance(given, int) else -1
        own = _EVENT if kind in events.EVENTS else _EVENT - {"type"}
        if self._forms.get(number) in events.CALLS:
            self._call(number, ("type",))
            own |= self._read_ahead(number, body, kind)
        indices = (body.get(name) for name in _INDICES_OF_ALL)
        place: Path = ("events", kind, *(index for index in indices if isinstance(index, int)))
        self._rest(body, own, (), place)
        self._item_id(number, body)

    def _read_ahead(self, number: int, body: Mapping[str, object], kind: str) -> frozenset[str]:
        """Read what an event that nobody knows tells of a call: what it is given, unless it says what came of that."""
        if kind in events.EVENTS or any(word in kind for word in events.CAME_OF_IT):
            return _NOTHING
        at = tuple(index for name in _INDICES_OF_ALL if isinstance(index := body.get(name), int))
        found = {name: value for name, value in body.items() if name not in _EVENT and isinstance(value, str) and value}
        for name, value in found.items():
            place: Path = (kind.rpartition(".")[0], *at, name)
            count = self._ahead.setdefault((number, *place), len(self._ahead))
            index = number + CALL_TEXTS * (MAX_INDEX + 1 + count)
            self._answer.text("tool_arguments", 0, index, value, (name,), free=True)
        return frozenset(found)

    def _item_id(self, number: int, body: Mapping[str, object]) -> None:
        given = body.get("item_id")
        if isinstance(given, str) and given and f"call_id {given}" not in self._ids:
            self._ids.setdefault(f"id {given}", number)
        self._answer.extras.known(0, given, ("item_id",), (self._root, number, "id"), "first")

    # --- items, wherever they stand

    def reading_output(self, output: Sequence[object], at: Path, *, last: str = "") -> Steps:
        """Read a list of items, most of which have been said before, in steps.

        Args:
            output: The items.
            at: Where they stand.
            last: It is the last list of the answer, which ends with this status: what is not over never will be.
        """
        told = set[int]()
        for position, number in enumerate(self._numbers(output)):
            if position % ITEMS_A_STEP == ITEMS_A_STEP - 1:
                yield
            item, path = output[position], (*at, position)
            if (number,) in self._values and _same(self._values[number,], item):
                self.again[path] = (number,)
                continue
            over = (bool(last) and (number,) not in self._values) or None
            yield from self.reading_item(number, item, path, over=over, ends=last)
            told.add(number)
        if last:
            begun = (number for number, form in self._forms.items() if form in events.CALLS)
            self._answer.torn += [number for number in begun if (number,) not in self._values and number not in told]

    def _numbers(self, output: Sequence[object]) -> list[int]:
        """Return the number of each item of a list: of those that have an id that which it came under."""
        known = [self._ids.get(_id_of(item), -1) for item in output]
        given, taken = {*known}, {*known, *self._forms}
        numbers: list[int] = []
        free = 0
        for position, (number, item) in enumerate(zip(known, output, strict=True)):
            found = number
            if found < 0 and position not in given and self._forms.get(position) in (None, _form_of(item)):
                found = position
            if found < 0:
                while free in taken:
                    free += 1
                found = free
            taken.add(found)
            numbers.append(found)
        return numbers

    def reading_item(
        self, number: int, item: object, path: Path, *, over: bool | None = None, ends: str = _COMPLETED
    ) -> Steps:
        """Read an item, in steps: as it begins, as it is over, or in the whole answer.

        Args:
            number: Of the item.
            item: The item.
            path: Where it stands.
            over: It is over just now; what a call is given may have been told in part. False: it begins.
            ends: The status of the answer, if it has ended.

        Raises:
            WireError: it is no object, or a text in it is no string.
        """
        if not isinstance(item, dict):
            raise WireError("an item of the output is not an object; check the upstream")
        form, place = _form_of(item), (self._root, number)
        self._forms.setdefault(number, form)
        if _id_of(item):
            self._ids.setdefault(_id_of(item), number)
        own = {name for name, words in _WORDS.items() if isinstance(word := item.get(name), str) and word in words}
        if form in events.CALLS:
            torn = over is not False and (number,) not in self._values and _is_torn(item, ends)
            self._answer.torn += (number,) if torn else ()
            own |= self._read_call(number, item, path, over=over, torn=torn)
        if form in ("message", "reasoning"):
            own |= yield from self._reading_parts(number, item, path)
        for name in _IDS.intersection(item):
            self._answer.extras.known(0, item[name], (*path, name), (*place, name), "first")
        self._rest(item, frozenset(own | _IDS), path, place)

    def _reading_parts(self, number: int, item: Mapping[str, object], path: Path) -> Generator[None, None, set[str]]:
        """Read the parts of an item, in steps."""
        found = {name for name in events.INDEX if isinstance(item.get(name), list)}
        for name in events.INDEX:
            parts = item.get(name)
            for index, part in enumerate(parts if isinstance(parts, list) else ()):
                if index % _PARTS_A_STEP == _PARTS_A_STEP - 1:
                    yield
                self._part((number, name, index), part, (*path, name, index))
        return found

    def _read_call(
        self, number: int, item: Mapping[str, object], path: Path, *, over: bool | None, torn: bool
    ) -> set[str]:
        """Read how a tool is called; one that has no name is called by its kind."""
        form = _form_of(item)
        members = events.CALLS[form]
        values = {name for name, _, _ in members if not isinstance(item.get(name), str)}
        # What begins, or was broken off, may be JSON, and yet not all that the tool is to be given.
        in_part = (over is False or torn) and len(values) == len(members)
        free = any(each for _, _, each in members) or in_part
        self._call(number, (*path, "type"), free=free)
        if form in events.SERVED:
            self._answer.served.append(number)
        if form in events.TOOLS and (number, "type") not in self._said:
            self._said.add((number, "type"))
            self._answer.text("tool_name", 0, number, events.TOOLS[form], (*path, "type"), part=(number, "type"))
        for name, channel, given_free in members:
            value, part = item.get(name), (number, name)
            if value is None:
                continue
            if isinstance(value, str):
                self._say(channel, value, (*path, name), part, free=given_free)
            elif part in self._said and (not over or _same(self._values.get(part), value)):
                self.again[*path, name] = part
            elif value != {}:
                more = part in self._said
                self._answer.source(channel, 0, number, (*path, name), part=part, free=free, anew=more)
                self._said.add(part)
                self._values[part] = value
        return {name for name, _, _ in members}

    def _call(self, number: int, path: Path, *, free: bool = True) -> None:
        """Take what belongs to a call and says nothing: it must not leave without it."""
        self._answer.deltas.append(Delta(Channel("tool_arguments", 0, number), "", path, free=free))

    def _part(self, key: Path, part: object, path: Path) -> None:
        """Read a part of an item: `key` is the item's number, the list that it is in, and its own number."""
        if not isinstance(part, dict):
            raise WireError("a part of an item is not an object; check the upstream")
        if key in self._values and _same(self._values[key], part):
            self.again[path] = key
            return
        form = part.get("type")
        channel, member = events.PART_CHANNELS.get(form if isinstance(form, str) else "", ("", ""))
        own = {"type", member} if channel else _NOTHING
        channel = self.refusal if channel == "refusal" else channel
        if channel:
            text = part.get(member)
            self._say(channel, "" if text is None else text, (*path, member), (*key, member))
            self._probabilities(part, str(text), path)
            own = own | {_PROBABILITIES}
        self._rest(part, frozenset(own), path, (self._root, *key))

    def _say(
        self, channel: str, value: object, path: Path, part: Path, *, free: bool = False, index: int | None = None
    ) -> None:
        """Read a text that may have been said already; `index` of its channel, if it has one of its own."""
        if index is None:
            index = int(part[0]) if channel in CALL else 0
        if part in self._said:
            self.again[path] = part
        elif value:
            if channel != "tool_arguments":
                self._go_on(channel, part)
            self._answer.text(channel, 0, index, value, path, part=part, free=free)
            self._said.add(part)
        elif isinstance(value, str) and channel not in CALL:  # a new part of the text begins
            self._answer.deltas.append(Delta(Channel(channel, 0, index), "", path, part=part))

    def _probabilities(self, found: Mapping[str, object], text: str, at: Path) -> None:
        """Read log probabilities, which may spell nothing but the text beside them."""
        value, path = found.get(_PROBABILITIES), (*at, _PROBABILITIES)
        if spells_any(value):
            self._answer.put_off(_looking_at_probabilities(self._answer, value, text, path))

    def _rest(self, found: Mapping[str, object], own: frozenset[str], at: Path, place: Path) -> None:
        if len(found) > len(own) or not own.issuperset(found):
            self._answer.rest(0, found, _KNOWN, own, at, place=place)


def _looking_at_probabilities(answer: Answer, value: object, text: str, path: Path) -> Walk:
    others: list[Extra] | None = yield from besides({"content": value}, {text}, 0, path, whole=False)
    if others is None:
        answer.shadows.append(path)
    else:
        answer.extras.found += others


_INDICES = frozenset(events.LISTS.values())
_INDICES_OF_ALL = (
    "output_index", "content_index", "summary_index", "command_index", "annotation_index", "partial_image_index",
)  # fmt: skip


def _just_there(extra: Extra) -> Path:
    """Return the place of what is said once, which is told apart from what other entries of its lists say."""
    if extra.place is None:
        return extra.path
    return (*extra.place, *(at for at in extra.path if isinstance(at, int)))


def _list_of(name: str, kind: str) -> str:
    """Return the list of parts that an event speaks of a part of; empty: it speaks of none."""
    if kind == events.ANNOTATION:
        return "content"
    form = events.FORMS.get(name)
    return str(form.place[0]) if form is not None and form.place[0] in events.LISTS else events.PARTS.get(name, "")


def _number(body: Mapping[str, object], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int):
        raise WireError(f"`{name}` is not there; check the upstream")
    return value


def _form_of(item: object) -> str:
    form = item.get("type") if isinstance(item, dict) else None
    return form if isinstance(form, str) else ""


def _is_torn(item: Mapping[str, object], ends: str) -> bool:
    """Tell whether an item was broken off, in an answer that `ends` with this status.

    A call that is in progress in an answer that is complete is one that waits for its caller.
    """
    status = item.get("status")
    return status == "incomplete" or (status == "in_progress" and ends not in ("", _COMPLETED))


def _id_of(item: object) -> str:
    for name in ("id", "call_id"):
        found = item.get(name) if isinstance(item, dict) else None
        if isinstance(found, str) and found:
            return f"{name} {found}"
    return ""


def _same(one: object, other: object) -> bool:
    """Tell whether two JSON values are one; what is equal to Python leaves as it was sent first."""
    return one == other
