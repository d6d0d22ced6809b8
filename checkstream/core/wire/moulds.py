"""The events of one stream that differ in their text alone: read by comparing bytes, not by parsing them again.

Servers repeat an event with other text in it, thousands of times. Once one of them has been read in full, and all
that it says besides its text has been found to be nothing, an event with the same bytes around the text says nothing
else either.
"""

from __future__ import annotations

import msgspec

from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire.answers.extras import PAD, PADDING
from checkstream.core.wire.json_text.spans import JsonText, Path, string_at
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.moments import LONGEST_MOMENT, MOMENT, is_moment
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

_MOST = 16
"""Moulds of one stream: its choices, each with a few kinds of text."""
_END = 2
"""Of a frame, behind its data: a blank line."""


class _Mould(msgspec.Struct, frozen=True, gc=False):
    """An event, its text taken out."""

    event: str
    head: bytes
    """All before the text, or before the moment that stands before it."""
    head_chars: int
    middle: bytes
    """What stands between that moment and the text; empty: there is none."""
    tail: str
    ends: tuple[str, str] | None
    """`tail` before and behind OpenAI's padding, which is different in each event and not forwarded."""

    def text_at(self, data: bytes) -> int | None:
        """Return where the text begins, in characters, of an event that begins so; None: it differs."""
        if not data.startswith(self.head):
            return None
        if not self.middle:
            return self.head_chars
        start = len(self.head)
        end = data.find(b'"', start, start + LONGEST_MOMENT + 1)
        if end < 0 or not data.startswith(self.middle, end):
            return None
        if not is_moment(data[start:end].decode("ascii", "replace")):
            return None
        return self.head_chars + end - start

    def fits(self, tail: str) -> int | None:
        """Return how many characters of padding an event has that goes on so behind its text; None: it differs."""
        if self.ends is None:
            return 0 if tail == self.tail else None
        before, behind = self.ends
        padding = tail[len(before) : len(tail) - len(behind)]
        same = tail == before + padding + behind
        plain = not padding or (padding.isascii() and padding.isalnum())
        return len(padding) if same and plain else None

    channel: Channel
    path: Path
    choices: tuple[int, ...]


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
            start = mould.text_at(data)
            if start is not None and frame.event == mould.event:
                break
        else:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        found = string_at(text, start)
        if found is None or not found[0] or clean(found[0]) is not found[0]:
            return None
        said, end = found
        padded = mould.fits(text[end:])
        if padded is None:
            return None
        raw = frame.raw
        if padded and mould.ends is not None:
            close = len(raw) - len(mould.ends[1]) - _END
            raw = raw[: close - padded] + PAD.encode() * padded + raw[close:]
        return Unit(raw=raw, deltas=(Delta(mould.channel, said, mould.path),), choices=mould.choices)

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
            span, padding = document.span(delta.path), document.span((PADDING,))
        except (WireError, UnicodeDecodeError):
            return
        if span is None:
            return
        text, (start, end) = document.text, span
        moment = document.span((MOMENT,))
        if moment is not None and (moment[1] > start or text[moment[0]] != '"'):
            return
        ends = None
        if padding is not None:
            ends = text[end : padding[0] + 1], text[padding[1] - 1 :]
            if padding[0] < end or text[padding[0]] != '"' or not ends[1].isascii():
                return
        before, middle = (text[:start], "") if moment is None else (text[: moment[0] + 1], text[moment[1] - 1 : start])
        mould = _Mould(
            event=frame.event,
            head=before.encode(),
            head_chars=len(before) + len(middle),
            middle=middle.encode(),
            tail=text[end:],
            ends=ends,
            channel=delta.channel,
            path=delta.path,
            choices=unit.choices,
        )
        self._moulds = [
            mould,
            *(each for each in self._moulds if (each.head, each.middle) != (mould.head, mould.middle)),
        ][:_MOST]
