"""The events of one stream that differ in their text alone: read by comparing bytes, not by parsing them again.

Servers repeat an event with other text in it, thousands of times. Once one of them has been read in full, and all
that it says besides its text has been found to be nothing, an event with the same bytes around the text says nothing
else either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec

from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire.answers.extras import PAD, PADDING
from checkstream.core.wire.json_text.spans import JsonText, Path, string_at
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.moments import LONGEST_MOMENT, MOMENT, is_moment
from checkstream.core.wire.sse import plain
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

_NUMBER = "number"
_MOST_FIGURES = 9
"""Of the number of an event."""
_MOST = 16
"""Moulds of one stream: its choices, each with a few kinds of text."""
_MOST_AT_ONCE = 256
"""Events that are cut at once."""
_END = 2
"""Of a frame, behind its data: a blank line."""


class _Fit(msgspec.Struct, frozen=True, gc=False):
    """What an event has in the places of its mould."""

    number: int | None
    """Which of its stream it is; None: it doesn't say."""
    start: int = 0
    """Where the padding begins, in characters ..."""
    padded: int = 0
    """... and how long it is."""


class _Mould(msgspec.Struct, frozen=True, gc=False):
    """An event, its text taken out."""

    event: str
    head: bytes
    """All before the text, or before what stands before it and is different in each event."""
    head_chars: int
    hole: str
    """What that is: a moment, or the event's number; empty: nothing."""
    middle: bytes
    """What stands between that and the text."""
    tail: tuple[str, ...]
    """What stands behind the text, around ..."""
    holes: tuple[str, ...]
    """... what is different in each event there: its number, and OpenAI's padding, which is not forwarded."""
    channel: Channel
    path: Path
    part: Path
    choices: tuple[int, ...]
    block: int | None
    left_out: Mapping[str, int]
    opening: bytes = b""
    """All of an event before its text, where nothing but that is different in each; else empty."""
    closing: bytes = b""
    """All behind it then."""

    def unit(self, raw: bytes, text: str, number: int | None) -> Unit:
        """Return the unit of an event that is like this."""
        delta = Delta(self.channel, text, self.path, part=self.part)
        return Unit(
            raw=raw, deltas=(delta,), choices=self.choices, number=number, block=self.block, left_out=self.left_out
        )

    def made(self, unit: Unit) -> bool:
        """Tell whether a unit could be made by this: all but its text and number is the same."""
        delta = unit.deltas[0]
        same = delta.channel == self.channel and delta.path == self.path and delta.part == self.part
        return same and (unit.choices, unit.block, unit.left_out) == (self.choices, self.block, self.left_out)

    def text_at(self, data: bytes) -> tuple[int, int | None] | None:
        """Return where the text begins, in characters, of an event that begins so, and its number; None: it differs."""
        if not data.startswith(self.head):
            return None
        start, number = len(self.head), None
        if self.hole == _NUMBER:
            end = _end_of_number(data, start)
            number = int(data[start:end]) if end > start else None
        elif self.hole:
            end = data.find(b'"', start, start + LONGEST_MOMENT + 1)
        else:
            return self.head_chars, None
        if end <= start or not data.startswith(self.middle, end):
            return None
        if self.hole == MOMENT and not is_moment(data[start:end].decode("ascii", "replace")):
            return None
        return self.head_chars + end - start, number

    def fits(self, text: str, at: int, number: int | None) -> _Fit | None:
        """Return what an event has that goes on so behind its text, at a place of it; None: it differs."""
        found = _Fit(number)
        for piece, hole in zip(self.tail, (*self.holes, ""), strict=True):
            if not text.startswith(piece, at):
                return None
            at += len(piece)
            if hole == _NUMBER:
                end = _end_of_number(text, at)
                if end == at:
                    return None
                found, at = _Fit(int(text[at:end]), found.start, found.padded), end
            elif hole:
                end = text.find('"', at)
                padding = text[at:end]
                if end < 0 or (padding and not (padding.isascii() and padding.isalnum())):
                    return None
                found, at = _Fit(found.number, at, end - at), end
        return found if at == len(text) else None


def _end_of_number(text: str | bytes, start: int) -> int:
    """Return where a number of an event ends that starts at `start`; `start` itself: there is none."""
    end = start
    while text[end : end + 1].isdigit() and end - start <= _MOST_FIGURES:
        end += 1
    if end - start > _MOST_FIGURES or not text[start:end].isascii():
        return start
    return end if text[start : start + 1] not in ("0", b"0") or end - start == 1 else start


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Events that stand one behind the other."""

    raws: Sequence[bytes]
    """They, as they came."""
    texts: Sequence[str]
    """What each of them says."""
    ends: Sequence[int]
    """Where each of them ends, in bytes."""
    numbers: Sequence[int | None] = ()
    """Which of its stream each is; empty: none says so."""


NextOf = Callable[[bytes, int], tuple[bytes, int] | None]
_NOTHING_CUT = Cut((), (), ())


def _said(said: bytes) -> str | None:
    """Return the text of an event's string, which has no quotes; None: that is another, or is told otherwise."""
    try:
        text = said.decode()
    except UnicodeDecodeError:
        return None
    # What can be printed no client takes for the end of a line.
    return text if text and "\\" not in text and text.isprintable() else None


def _cut_some(data: bytes, at: int, opening: bytes, closing: bytes) -> Cut:
    """Return the events that begin and end so, from a place of some bytes on: two or more begin there."""
    *pieces, last = data[at + len(opening) :].split(closing + opening, _MOST_AT_ONCE)
    if (quote := last.find(b'"')) >= 0 and last.startswith(closing, quote):
        pieces.append(last[:quote])
    joined = b"".join(pieces)
    if joined.isascii() and all(pieces) and b'"' not in joined and (text := _said(joined)) is not None:
        texts = [text[low:high] for low, high in pairwise(accumulate(map(len, pieces), initial=0))]
    else:
        texts = []
        for piece in pieces:
            said = None if b'"' in piece else _said(piece)
            if said is None:
                break
            texts.append(said)
    frame = len(opening) + len(closing)
    edges = list(accumulate([frame + len(piece) for piece in pieces[: len(texts)]], initial=at))
    return Cut([data[low:high] for low, high in pairwise(edges)], texts, edges[1:])


class Moulds:
    """What has been learnt of one stream."""

    __slots__ = ("_moulds",)

    def __init__(self) -> None:
        """Know nothing yet."""
        self._moulds: list[_Mould] = []

    def read(self, frame: Frame) -> Unit | None:
        """Return the unit of an event that fits a mould, None for any other."""
        data = frame.data
        if data is None:
            return None
        for mould in self._moulds:
            begins = mould.text_at(data)
            if begins is not None and frame.event == mould.event:
                break
        else:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        start, number = begins
        found = string_at(text, start)
        if found is None or not found[0] or clean(found[0]) is not found[0]:
            return None
        said, end = found
        fit = mould.fits(text, end, number)
        if fit is None:
            return None
        raw = frame.raw
        if fit.padded:  # behind it stands nothing but ASCII
            close = len(raw) - _END - (len(text) - fit.start - fit.padded)
            raw = raw[: close - fit.padded] + PAD.encode() * fit.padded + raw[close:]
        return mould.unit(raw, said, fit.number)

    @property
    def latest(self) -> tuple[Channel, Path] | None:
        """Of the event that was learnt last: whose text it has, and where that stands, or what it is a part of."""
        return (self._moulds[0].channel, self._moulds[0].part or self._moulds[0].path) if self._moulds else None

    @property
    def latest_block(self) -> int | None:
        """Of which block that event is."""
        return self._moulds[0].block if self._moulds else None

    def cut(self, data: bytes, at: int, next_of: NextOf) -> Cut:
        """Return the events like the one that was learnt last that begin at a place of some bytes.

        None is returned of one that is not like it, or not in the form that events leave in, or not all there, nor of
        what stands behind that.

        Args:
            data: What has come.
            at: Where the first begins.
            next_of: Tells where events end (see `framing.Decoder`).
        """
        mould = self._moulds[0]
        opening, closing = mould.opening, mould.closing
        if not opening or not data.startswith(opening, at):
            return self._cut_long(mould, data, at, _MOST_AT_ONCE, next_of)
        start = at + len(opening)
        quote = data.find(b'"', start)
        if data.startswith(closing, quote) and (text := _said(data[start:quote])) is not None:
            end = quote + len(closing)
            if end == len(data) or not data.startswith(opening, end):
                return Cut((data[at:end],), (text,), (end,))
            return _cut_some(data, at, opening, closing)
        return self._cut_long(mould, data, at, 1, next_of)

    def _cut_long(self, mould: _Mould, data: bytes, at: int, most: int, next_of: NextOf) -> Cut:
        raws, texts, ends, numbers = list[bytes](), list[str](), list[int](), list[int | None]()
        while len(raws) < most:
            found = next_of(data, at)
            frame = None if found is None else plain(found[0], mould.event)
            unit = None if frame is None else self.read(frame)
            if found is None or unit is None or not mould.made(unit):
                break
            raws.append(unit.raw)
            texts.append(unit.deltas[0].text)
            numbers.append(unit.number)
            at = found[1]
            ends.append(at)
        return Cut(raws, texts, ends, numbers)

    @property
    def varies(self) -> bool:
        """More than the text is different in each of the events that are cut."""
        return bool(self._moulds) and not self._moulds[0].opening

    def unit(self, raw: bytes, text: str, number: int | None) -> Unit:
        """Return the unit of an event that was cut."""
        return self._moulds[0].unit(raw, text, number)

    def forget_others(self, unit: Unit) -> None:
        """Forget the texts that another one has followed: whether they may still go on is not told by bytes."""
        for delta in unit.deltas:
            if delta.part and any(_is_followed(mould, delta) for mould in self._moulds):
                self._moulds = [mould for mould in self._moulds if not _is_followed(mould, delta)]

    def learn(self, frame: Frame, unit: Unit) -> None:
        """Make a mould of an event, all of which but its one text has been found to say nothing."""
        data = frame.data
        if data is None or len(unit.deltas) != 1 or len(unit.choices) != 1:
            return
        delta = unit.deltas[0]
        if not delta.text:
            return
        if unit.finished or unit.usage or unit.failure or unit.opaque or unit.unscanned or delta.verbatim or delta.free:
            return
        try:
            document = JsonText(data.decode())
            span = document.span(delta.path)
            holes = {name: document.span((member,)) for name, member in _MEMBERS.items()}
        except (WireError, UnicodeDecodeError):
            return
        if unit.number is None:
            holes[_NUMBER] = None
        mould = _moulded(document.text, span, {name: hole for name, hole in holes.items() if hole is not None})
        if mould is None:
            return
        mould = msgspec.structs.replace(
            mould,
            event=frame.event,
            channel=delta.channel,
            path=delta.path,
            part=delta.part,
            choices=unit.choices,
            block=unit.block,
            left_out=unit.left_out,
        )
        if not mould.hole and not mould.holes and (around := _around(frame, mould)) is not None:
            mould = msgspec.structs.replace(mould, opening=around[0], closing=around[1])
        others = (each for each in self._moulds if (each.head, each.middle) != (mould.head, mould.middle))
        self._moulds = [mould, *others][:_MOST]


_MEMBERS = {MOMENT: MOMENT, _NUMBER: "sequence_number", PADDING: PADDING}
"""What is different in each event -> the member that has it."""


def _moulded(text: str, span: tuple[int, int] | None, holes: Mapping[str, tuple[int, int]]) -> _Mould | None:
    """Return the mould of an event by where its text stands, and what else is different in each; None: there is none.

    Strings are different within their quotes. Padding stands behind the text, a moment before it, and no two before.
    """
    if span is None:
        return None
    quoted = {name for name, (start, _) in holes.items() if text[start] == '"'}
    inner = sorted((low + (name in quoted), high - (name in quoted), name) for name, (low, high) in holes.items())
    before = [hole for hole in inner if hole[1] <= span[0]]
    behind = [hole for hole in inner if hole[0] >= span[1]]
    if len(before) + len(behind) < len(inner) or len(before) > 1:
        return None
    if any((name in quoted) is (name == _NUMBER) for name in holes):
        return None
    if any(name == PADDING for _, _, name in before) or any(name == MOMENT for _, _, name in behind):
        return None
    if any(name == PADDING for _, _, name in behind) and not text[behind[0][0] :].isascii():
        return None
    start, end, hole = before[0] if before else (span[0], span[0], "")
    edges = [span[1], *(edge for low, high, _ in behind for edge in (low, high)), len(text)]
    tail = tuple(text[low:high] for low, high in zip(edges[::2], edges[1::2], strict=True))
    return _Mould(
        event="",
        head=text[:start].encode(),
        head_chars=start + span[0] - end,
        hole=hole,
        middle=text[end : span[0]].encode(),
        tail=tail,
        holes=tuple(name for _, _, name in behind),
        channel=Channel("", 0),
        path=(),
        part=(),
        choices=(),
        block=None,
        left_out={},
    )


def _around(frame: Frame, mould: _Mould) -> tuple[bytes, bytes] | None:
    """Return what stands before and behind the text of an event in the one form; None: it leaves otherwise."""
    before = frame.raw.find(mould.head)
    if before < 0 or not frame.raw.endswith(mould.tail[0].encode() + b"\n\n"):
        return None
    if plain(frame.raw, frame.event) is None:
        return None
    return frame.raw[:before] + mould.head + b'"', b'"' + mould.tail[0].encode() + b"\n\n"


def _is_followed(mould: _Mould, delta: Delta) -> bool:
    return bool(mould.part) and mould.channel == delta.channel and mould.part != delta.part
