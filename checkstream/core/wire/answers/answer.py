"""Reads the answers of OpenAI's older surfaces: which text stands where, which choices end, what is not known.

INVARIANT: a string, number or member name of an answer is a delta, an extra, a word of the protocol, or within a
shadow; bytes spelled as text are named in `unscanned`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

import msgspec

from checkstream.core.steps import Steps, Walk, done, freeing
from checkstream.core.terms import COMMON, Channel, Delta, Unit
from checkstream.core.wire.answers.extras import PAD, PADDING, Extras, name_of
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.answers.logprobs import IDS, PROBABILITIES, SHADOWS, besides, ids, spells_any
from checkstream.core.wire.json_text.objects import read_object, reading_object
from checkstream.core.wire.json_text.size import (
    MOST_EXTRAS,
    MOST_EXTRAS_OF_WHOLE,
    MOST_TEXTS,
    MOST_TEXTS_OF_CHOICE,
    MOST_TEXTS_OF_WHOLE,
)
from checkstream.core.wire.json_text.spans import JsonText, Path
from checkstream.core.wire.json_text.splices import places, putting, ways
from checkstream.core.wire.json_text.strict import shown
from checkstream.core.wire.json_text.strings import clean, halves_of
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

CALLS = frozenset({"tool_calls", "function_call"})
"""Members that hold calls of tools in answers of OpenAI's shape."""
MAX_INDEX = 4096
"""Choices and tool calls are numbered below this: a bound on what an upstream can make the guard keep."""
LEGACY_CALL = MAX_INDEX
"""Number of the call in `function_call`, which is none of the list of calls."""

KNOWN_FIELDS = frozenset({
    "id", "object", "created", "model", "system_fingerprint", "service_tier", "usage", "error",
    "prompt_filter_results", "prompt_annotations", "timings", "provider", "kv_transfer_params", "stats", "x_groq",
})  # fmt: skip
"""Of an answer, besides its choices."""
KNOWN_CHOICE_FIELDS = frozenset({
    "index", "finish_reason", "native_finish_reason", "stop_reason", "matched_stop", "content_filter_results",
    "content_filter_result", "content_filter_offsets",
})  # fmt: skip
_SAME = frozenset({"id", "object", "model", "system_fingerprint", "service_tier", "provider"})
"""Of an event: all of one answer say the same here."""
_CHOICES = frozenset({"choices", *SHADOWS})
_ACTED_ON = frozenset({
    "choices", "index", "delta", "message", "text", "response", "done", "error", "role", "content", "refusal",
    "tool_calls", "function_call", "function", "custom", "id", "type", "name", "arguments", "input", "finish_reason",
    "done_reason", "summary", "reasoning_content", "reasoning", "thinking", "reasoning_text",
    "content_block", "partial_json", "stop_reason",
})  # fmt: skip
"""Members that clients act on. Some take them in any letter case, as the decoders of Go and .NET do."""
_PADDED = _CHOICES | {PADDING}
_ORDERLY = frozenset({
    "stop", "tool_calls", "function_call", "tool_call", "tool_use", "end_turn", "stop_sequence", "eos", "eos_token",
})  # fmt: skip
"""Finish reasons, of any letter case, that say that a choice is all there; any other breaks it off."""
_REASONS = {"max_tokens": "length", "max_output_tokens": "length", "model_length": "length"} | {
    reason: reason for reason in ("length", "content_filter")
}
_MEMBERS_A_STEP, _OBJECTS_A_STEP = 256, 64
_CHARS_A_MEMBER = 1024
"""Of a name: a long one counts for so many members more."""
_MOST_ENTRIES = 2048
"""Of the lists of one choice."""


class Answer:
    """Collects what one event or one body says, then makes a `Unit` of it."""

    def __init__(self, data: bytes, *, whole: bool, steps: bool = False) -> None:
        """Start with nothing.

        Args:
            data: The JSON that is being read.
            whole: It is all of an answer.
            steps: It is read in steps, as all of an answer is (see `taking`).
        """
        steps = steps or whole
        self.deltas: list[Delta] = []
        self.extras = Extras(MOST_EXTRAS_OF_WHOLE if whole else MOST_EXTRAS, whole=whole, steps=steps)
        self.shadows: list[Path] = []
        self.stray: dict[Path, int] = {}
        self.served: list[int] = []
        self.over: list[int] = []
        self.torn: list[int] = []
        self.block: int | None = None
        self.choices: list[int] = []
        self.finished: list[int] = []
        self.broken: dict[int, str] = {}
        self._data = data
        self._document: JsonText | None = None
        self._said: dict[int, set[str]] = {}
        self._noted = 0
        self._whole = whole
        self._steps = steps
        self._begun = self._entries = 0
        self._sources: list[int] = []
        """Places of the texts that are the JSON which they stand for."""
        self._later: list[Walk] = []

    def text(
        self, kind: str, choice: int, index: int, value: object, path: Path, *, part: Path = (), free: bool = False
    ) -> None:
        """Take a string as text of a channel; `part` and `free` as in a `Delta`.

        Raises:
            WireError: `value` is not a string.
        """
        if not isinstance(value, str):
            raise WireError(f"`{path[-1]}` in an answer is not a string; check the upstream")
        if value:
            free = free or (kind == "tool_arguments" and path[-2:-1] == ("custom",))
            said = clean(value)
            if said is not value:
                self.extras.halves[path] = halves_of(value)
            self._put(Delta(Channel(kind, choice, index), said, path, free=free, part=part))

    def begin_call(self, choice: int, number: int, path: Path) -> None:
        """Take what belongs to a tool call and says nothing: it must not leave without the call."""
        self._put(Delta(Channel("tool_name", choice, number), "", path))

    def begin_text(self, choice: int, path: Path) -> None:
        """Take a text that says nothing."""
        self._put(Delta(Channel("content", choice), "", path))

    def _put(self, delta: Delta) -> None:
        most = MOST_TEXTS
        if self._whole:
            most = min(self._begun + MOST_TEXTS_OF_CHOICE, MOST_TEXTS_OF_WHOLE)
        if len(self.deltas) >= most:
            raise WireError(f"the event or a choice of the body has more than {most} texts; check the upstream")
        self.deltas.append(delta)

    def begin(self, choice: int) -> None:
        """Take what comes as a choice's."""
        if self._whole and len(self.choices) >= MOST_TEXTS_OF_WHOLE:
            raise WireError(f"the answer has more than {MOST_TEXTS_OF_WHOLE} choices; check the upstream")
        self.choices.append(choice)
        self._begun, self._entries = len(self.deltas), 0

    def look_at(self, entries: list[object]) -> None:
        """Take note of the entries of a list of a choice, such as parts or calls, which are read in one step.

        Raises:
            WireError: those of the choice are more than anybody sends.
        """
        self._entries += len(entries)
        if self._entries > _MOST_ENTRIES:
            raise WireError(f"a choice has more than {_MOST_ENTRIES} parts and calls; check the upstream")

    def finish(self, choice: int, reason: str | None) -> None:
        """Take the end of a choice; servers that give no reason have said all."""
        self.finished.append(choice)
        word = (reason or "stop").casefold()
        if word not in _ORDERLY:
            self.broken[choice] = _REASONS.get(word, "other")

    def leave_out_calls(self, number: int, choice: dict[str, object], name: str, path: Path) -> None:
        """Take the calls of tools out of an object that is not the one which tells them, and note where they stand.

        Args:
            number: Of the choice.
            choice: Its fields.
            name: Of its member that is the object.
            path: Where the choice stands.
        """
        found = choice.get(name)
        if isinstance(found, dict) and not CALLS.isdisjoint(found):
            self.stray |= {(*path, name, each): number for each in found if each in CALLS and found[each]}
            choice[name] = {each: value for each, value in found.items() if each not in CALLS}

    def source(
        self,
        kind: str,
        choice: int,
        index: int,
        path: Path,
        *,
        part: Path = (),
        free: bool = False,
        anew: bool = False,
    ) -> None:
        """Take a value that is no string as text of a channel: the JSON that it is; the rest as in a `Delta`."""
        text = ""
        if self._whole:
            self._sources.append(len(self.deltas))
        else:
            self._document = self._document or JsonText(self._data.decode())
            text = clean(self._document.text[slice(*_found(self._document, path))])
        self._put(Delta(Channel(kind, choice, index), text, path, verbatim=True, free=free, part=part, anew=anew))

    def filling(self) -> Steps:
        """Put the JSON of a whole answer into the texts that it is, in steps."""
        if not self._sources:
            return
        document = yield from places(self._data, ways(self.deltas[place].path for place in self._sources))
        for place in self._sources:
            delta = self.deltas[place]
            text = clean(self._data[slice(*_found(document, delta.path))].decode())
            self.deltas[place] = msgspec.structs.replace(delta, text=text)
            yield

    def rest(
        self,
        choice: int,
        fields: Mapping[str, object],
        known: frozenset[str],
        own: frozenset[str],
        at: Path,
        *,
        place: Path | None = None,
    ) -> None:
        """Take the fields of an object that are not `own`: `known` ones are the servers', all others are anybody's.

        Args:
            choice: Whose they are.
            fields: The object's members.
            known: Names of those that servers are known to send.
            own: Names of those that are read elsewhere.
            at: Where the object stands.
            place: Where callers put it, if not there (see `Extra`).

        Raises:
            WireError: as `unknown`.
        """
        if not fields:
            return
        self.put_off(self._resting(choice, fields, (known, own), at, place))

    def put_off(self, walk: Walk) -> None:
        """Read something later, in steps (see `taking`), or at once where all is read in one."""
        if self._steps:
            self._later.append(walk)
        else:
            done(walk)

    def taking(self) -> Steps:
        """Take what was put off, in steps."""
        for count, resting in enumerate(self._later, 1):
            if count % _OBJECTS_A_STEP == 0:
                yield
            yield from resting
            yield from self.extras.taking()
        self._later.clear()
        yield from self.extras.taking()

    def _resting(
        self,
        choice: int,
        fields: Mapping[str, object],
        names: tuple[frozenset[str], frozenset[str]],
        at: Path,
        place: Path | None,
    ) -> Walk:
        known, own = names
        looked = 0
        for name, value in fields.items():
            looked += 1 + len(name) // _CHARS_A_MEMBER
            if looked >= _MEMBERS_A_STEP:
                looked = 0
                yield
            if name in own:
                continue
            to = None if place is None else (*place, name)
            if name in known:
                self.extras.known(choice, value, (*at, name), to, "first" if not at and name in _SAME else "read")
            else:
                self.unknown(choice, value, (*at, name), to)

    def unknown(self, choice: int, value: object, path: Path, place: Path | None = None) -> None:
        """Take a member that nobody knows, of an object whose others clients act on.

        Raises:
            WireError: its name differs from one that clients act on in letter case only: some would take it for that.
        """
        name = path[-1]
        if isinstance(name, str) and name not in _ACTED_ON and name.casefold() in _ACTED_ON:
            raise WireError(f"`{shown(name)}` is not written `{name.casefold()}`; check the upstream")
        self.extras.unknown(choice, value, path, place)

    def looking_at_shadows(self, choice: int, fields: dict[str, object], at: Path) -> Steps:
        """Tell, in steps, which members of an object spell something that is not known to be its text in this unit."""
        whole = self._whole
        for name in SHADOWS:
            value = fields.get(name)
            if not spells_any(value):
                continue
            path, texts = (*at, name), self._texts(choice)
            others = None
            if name == PROBABILITIES:
                others = yield from besides(value, texts, choice, path, whole=whole)
            if name in IDS and whole and any(texts):
                others = yield from ids(value, choice, path)  # of a whole text; they leave if none of it was edited
            if others is None:
                self.shadows.append(path)
            else:
                self.extras.found += others

    def _texts(self, choice: int) -> set[str]:
        """Return the texts of a choice that have been read so far, or of all."""
        for delta in self.deltas[self._noted :]:
            for number in (delta.channel.choice, COMMON):
                self._said.setdefault(number, set()).add(delta.text)
        self._noted = len(self.deltas)
        return self._said.get(choice, set())

    def unit(self, raw: bytes, *, usage: bool = False, failure: str | None = None, opaque: bool = False) -> Unit:
        """Return what was collected, with the bytes that it stands in."""
        return Unit(
            raw=raw,
            deltas=tuple(self.deltas),
            extras=tuple(self.extras.found),
            shadows=tuple(self.shadows),
            halves=self.extras.halves,
            choices=tuple(dict.fromkeys(self.choices)),
            finished=tuple(dict.fromkeys(self.finished)),
            broken=self.broken,
            unscanned=tuple(dict.fromkeys(map(name_of, self.extras.binary))),
            sealed=tuple(self.extras.sealed),
            binary=tuple(self.extras.binary),
            stray=self.stray,
            served=tuple(self.served),
            over=tuple(self.over),
            torn=tuple(self.torn),
            block=self.block,
            usage=usage,
            failure=failure,
            opaque=opaque,
        )


def _found(document: JsonText, path: Path) -> tuple[int, int]:
    """Return where a value stands that was read."""
    span = document.span(path)
    if span is None:
        raise WireError(f"`{path[-1]}` in an answer is not where it was read; check the upstream")
    return span


ReadChoice = Callable[[Answer, int, dict[str, object], Path], None]
"""Read the texts of one choice: collector, number of the choice, its fields, its path."""


def read_bare(frame: Frame) -> Unit | None:
    """Return the unit of an event that carries no object (a comment, `[DONE]`), None for any other."""
    data = frame.data
    if data is None or not data.strip():
        return Unit(raw=frame.raw, opaque=frame.strange)
    return Unit(raw=frame.raw, terminator=True) if data.strip() == b"[DONE]" else None


def reading_object_event(
    frame: Frame, read: ReadChoice, own: frozenset[str], *, steps: bool
) -> Generator[None, None, Unit]:
    """Read an event that carries an object: a piece of the answer, or an error in one of its forms.

    Args:
        frame: The event.
        read: Reads a choice.
        own: Members of a choice that are read so.
        steps: It is long, and read in steps.

    Raises:
        WireError: not an object, or a value has the wrong type.
    """
    data = frame.data or b""
    answer = Answer(data, whole=False, steps=steps)
    unit = yield from _reading(answer, frame.raw, read_object(data), read, own)
    if frame.event != "error" or unit.failure is not None:
        return unit
    said = (extra.text for extra in unit.extras if extra.path == ("message",))
    failure = next(said, "the upstream reported an error")
    return msgspec.structs.replace(unit, failure=failure, opaque=False)


def reading_whole(data: bytes, read: ReadChoice, own: frozenset[str]) -> Generator[None, None, Unit]:
    """Read a whole answer; its JSON, which may be long, in steps.

    Raises:
        WireError: a value has the wrong type; it has neither choices nor an error.
    """
    body = yield from reading_object(data)
    answer = Answer(data, whole=True)
    reading = _reading(answer, data, body, read, own, whole=True)
    return (yield from freeing([body, answer.extras.found], reading, len(data)))


def _reading(
    answer: Answer, raw: bytes, body: dict[str, object], read: ReadChoice, own: frozenset[str], *, whole: bool = False
) -> Generator[None, None, Unit]:
    failure = failure_of(body)
    choices = body.get("choices")
    if choices is None:
        if whole and failure is None:
            raise WireError("the answer has neither `choices` nor `error`; check the upstream")
        choices = []
        opaque = "choices" not in body and failure is None and body.get("usage") is None
    else:
        opaque = False
    if not isinstance(choices, list):
        raise WireError("`choices` is not an array; check the upstream")
    own = own.union(SHADOWS)
    for position, choice in enumerate(choices):
        if not isinstance(choice, dict):
            raise WireError("a choice is not an object; check the upstream")
        number = index_of(choice, position)
        answer.begin(number)
        reason = choice.get("finish_reason")
        if reason is not None and not isinstance(reason, str):
            raise WireError("`finish_reason` is not a string; check the upstream")
        if whole or reason:
            answer.finish(number, reason)
        path = ("choices", position)
        read(answer, number, choice, path)
        yield from answer.looking_at_shadows(number, choice, path)
        answer.rest(number, choice, KNOWN_CHOICE_FIELDS, own, path)
        if whole:
            yield from answer.taking()
            yield
    yield from answer.looking_at_shadows(COMMON, body, ())
    padding = body.get(PADDING)
    pads = not whole and isinstance(padding, str)
    answer.rest(COMMON, body, KNOWN_FIELDS, _PADDED if pads else _CHOICES, ())
    yield from answer.taking()
    yield from answer.filling()
    unit = answer.unit(raw, usage=body.get("usage") is not None, failure=failure, opaque=opaque)
    if pads and isinstance(padding, str):
        return (yield from putting(unit, {(PADDING,): PAD * len(padding)}))
    return unit


def index_of(fields: dict[str, object], position: int) -> int:
    """Return the `index` of a choice or tool call; servers that leave it out mean its position.

    Raises:
        WireError: not a number from 0 to `MAX_INDEX`.
    """
    index = fields.get("index")
    if index is None:
        return position
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_INDEX:
        raise WireError(f"`index` is not a number from 0 to {MAX_INDEX - 1}; check the upstream")
    return index
