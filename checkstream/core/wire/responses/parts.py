"""What is open of a stream as it leaves, and what was said of all that is over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.responses import events
from checkstream.core.wire.responses.objects import Members, entries, is_object, listed, members, written
from checkstream.errors import WireError

_TEXTS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
"""Type of a part -> the member that has its text."""
_FORM_OF = {
    "response.output_text": "output_text", "response.refusal": "refusal", "response.reasoning_text": "reasoning_text",
    "response.reasoning_summary_text": "summary_text",
}  # fmt: skip
_NAMES = {form: name for name, form in _FORM_OF.items()}
_PART_NAMES = {
    "output_text": "response.content_part", "refusal": "response.content_part",
    "reasoning_text": "response.content_part", "summary_text": "response.reasoning_summary_part",
}  # fmt: skip
_ENDS = dict.fromkeys(("image_generation_call", "web_search_call", "apply_patch_call_output"), b'"failed"')
"""Items that can't be incomplete."""
_INCOMPLETE = b'"incomplete"'
_MESSAGE = {"type": b'"message"', "role": b'"assistant"', "status": _INCOMPLETE, "content": b"[]"}
_THOUGHT = {"type": b'"reasoning"', "summary": b"[]"}


class Closed:
    """What has left: texts by their parts, and the JSON of parts and items that are over."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.texts: dict[Path, list[str]] = {}
        self.values: dict[Path, bytes] = {}

    def text(self, part: Path) -> str:
        """Return what was sent of a text."""
        pieces = self.texts.get(part, [])
        if len(pieces) > 1:
            pieces[:] = [_whole("".join(pieces))]
        return pieces[0] if pieces else ""

    def said_again(self, part: Path, there: bytes) -> bytes:
        """Return what was sent of a part; the value that stands there, where it is just that.

        Raises:
            WireError: nothing was sent of it.
        """
        value = self.values.get(part)
        if value is not None:
            return there if there == value else value
        if isinstance(part[-1], int):
            raise WireError("an event says again what has not been said; check the upstream")
        text = self.text(part)
        if there[:1] == b'"' and json.loads(there) == text:
            return there
        return quote(text).encode()


def _whole(text: str) -> str:
    """Return a text with characters in place of the halves of them that have come apart."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class OpenPart(msgspec.Struct):
    """A part of an item that is not over."""

    key: Path
    """Of its text."""
    form: str
    value: bytes
    """The part as it was told when it began."""
    over: bool = False
    """Its text has been told as a whole."""
    done: bool = False
    """So has the part."""
    annotations: list[bytes] = msgspec.field(default_factory=list)
    """As they were sent ..."""
    edited: dict[int, bytes] = msgspec.field(default_factory=dict)
    """... and those of them that were sent otherwise than they came, by their numbers: as they came."""

    @property
    def index(self) -> int:
        """Its number in the item."""
        return int(self.key[2])

    def written(self, closed: Closed) -> bytes:
        """Return the part as it was sent."""
        found = members(self.value)
        if self.annotations:
            found["annotations"] = listed(self.annotations)
        found[_TEXTS[self.form]] = quote(closed.text(self.key)).encode()
        return written(found)

    def cite(self, sent: bytes, came: bytes) -> None:
        """Take an annotation, as it was sent and as it came."""
        if sent != came:
            self.edited[len(self.annotations)] = came
        self.annotations.append(sent)

    def as_told(self, value: bytes, came: bytes) -> bytes:
        """Return the part, told once more as a whole, with the annotations that were edited as they were sent.

        Args:
            value: As it would be told now.
            came: As the upstream has told it; what it says there for the first time is left as it is.
        """
        if not self.edited or not is_object(came):
            return value
        told, there = (members(each).get("annotations", b"") for each in (value, came))
        if told[:1] != b"[" or there[:1] != b"[":
            return value
        own, given = entries(told), entries(there)
        if len(own) != len(given):
            return value
        for at, was in self.edited.items():
            if at < len(own) and json.loads(given[at]) == json.loads(was):
                own[at] = self.annotations[at]
        return written(members(value) | {"annotations": listed(own)})

    def ends(self, closed: Closed) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield type and members of the events that end it."""
        at = {events.INDEX[str(self.key[1])]: self.index}
        if not self.over:
            member = _TEXTS[self.form]
            said: dict[str, object] = {**at, member: quote(closed.text(self.key))}
            yield f"{_NAMES[self.form]}.done", said | ({"logprobs": "[]"} if self.form == "output_text" else {})
        if not self.done:
            value = closed.values[self.key[:3]] = self.written(closed)
            yield f"{_PART_NAMES[self.form]}.done", {**at, "part": value.decode()}
        self.over = self.done = True


class OpenItem:
    """An item that is not over."""

    def __init__(self, value: bytes) -> None:
        """Begin with the item as it was told when it began."""
        self._value = value
        self.id = members(value).get("id", b'""')
        self.parts: dict[Path, OpenPart] = {}

    def begin(self, key: Path, form: str, closed: Closed, value: bytes = b"") -> OpenPart:
        """Begin a part."""
        empty = f'{{"type":"{form}"}}'
        if form == "output_text":
            empty = '{"type":"output_text","annotations":[],"logprobs":[]}'
        part = self.parts[key[:3]] = OpenPart(key, form, value or empty.encode())
        closed.texts.setdefault(key, [])
        return part

    def take(self, kind: str, top: Members, came: Members, closed: Closed, number: int) -> None:
        """Take an event about it, and have it say of annotations what was sent.

        Args:
            kind: Its type.
            top: Its members, as it leaves.
            came: Its members, as it came.
            closed: What has left.
            number: Of the item.
        """
        name, _, step = kind.rpartition(".")
        list_ = events.PARTS.get(name)
        if list_ is not None and events.INDEX[list_] in top and is_object(top.get("part", b"")):
            key: Path = (number, list_, int(top[events.INDEX[list_]]))
            if step == "done":
                part = self.parts.get(key)
                if part is not None:
                    part.over = part.done = True
                    top["part"] = part.as_told(top["part"], came.get("part", b""))
                closed.values[key] = top["part"]
                return
            form = str(json.loads(members(top["part"]).get("type", b'""')))
            if form in _TEXTS:
                self.begin((*key, _TEXTS[form]), form, closed, top["part"])
        elif name in _FORM_OF:
            place = events.FORMS[name].place
            index = int(top[str(place[1])])
            part = self.parts.get((number, place[0], index))
            if part is None:
                part = self.begin((number, place[0], index, place[2]), _FORM_OF[name], closed)
            part.over = step == "done"
        elif kind == events.ANNOTATION and "content_index" in top and "annotation" in top:
            part = self.parts.get((number, "content", int(top["content_index"])))
            if part is not None:
                part.cite(top["annotation"], came.get("annotation", top["annotation"]))

    def closed(self, closed: Closed, number: int, status: str) -> bytes:
        """Return the item as it is told when it ends so."""
        found = members(self._value)
        if "type" not in found:  # that it began was never told
            speaks = any(part.form in ("output_text", "refusal") for part in self.parts.values())
            found |= _MESSAGE if speaks else _THOUGHT
        for name in ("content", "summary"):
            own = [closed.values[key] for key in self.parts if key[1] == name and key in closed.values]
            if own:
                found[name] = listed(own)
        for name in ("name", "arguments", "input", "code"):
            if (number, name) in closed.texts:
                found[name] = quote(closed.text((number, name))).encode()
        if "status" in found:
            form = str(json.loads(found.get("type", b'""')))
            found["status"] = _ENDS.get(form, quote(status).encode())
        return written(found)
