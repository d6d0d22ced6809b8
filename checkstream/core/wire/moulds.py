"""The events of one stream that differ in their text alone: read by comparing bytes, not by parsing them again.

Servers repeat an event with other text in it, thousands of times. Once one of them has been read in full, and all
that it says besides its text has been found to be nothing, an event with the same bytes around the text says nothing
else either.
"""

from __future__ import annotations

import msgspec

from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire.json_spans import JsonText, Path, string_at
from checkstream.core.wire.openai_json import clean
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

_MOST = 16
"""Moulds of one stream: its choices, each with a few kinds of text."""
_PADDING = "obfuscation"
_FEW_PADDING_CHARS = 6
_MOST_PADDING_CHARS = 32
_MOST_PADDING_DIGITS = 6


class _Mould(msgspec.Struct, frozen=True, gc=False):
    """An event, its text taken out."""

    event: str
    head: bytes
    head_chars: int
    tail: str
    ends: tuple[str, str] | None
    """`tail` before and behind OpenAI's padding, which is different in each event."""
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
            if data.startswith(mould.head) and frame.event == mould.event:
                break
        else:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        found = string_at(text, mould.head_chars)
        if found is None or not found[0]:
            return None
        said, end = found
        tail = text[end:]
        if tail != mould.tail and (mould.ends is None or not _is_padded(tail, mould.ends)):
            return None
        return Unit(raw=frame.raw, deltas=(Delta(mould.channel, clean(said), mould.path),), choices=mould.choices)

    def learn(self, frame: Frame, unit: Unit) -> None:
        """Make a mould of an event, all of which but its one text has been found to say nothing."""
        data = frame.data
        if data is None or len(unit.deltas) != 1 or len(unit.choices) != 1:
            return
        delta = unit.deltas[0]
        if unit.finished or unit.usage or unit.failure or unit.opaque or unit.unscanned or delta.verbatim or delta.free:
            return
        try:
            document = JsonText(data.decode())
            span, padding = document.span(delta.path), document.span((_PADDING,))
        except (WireError, UnicodeDecodeError):
            return
        if span is None:
            return
        text, (start, end) = document.text, span
        ends = None
        if padding is not None and padding[0] > end and text[padding[0]] == '"':
            ends = text[end : padding[0] + 1], text[padding[1] - 1 :]
            if not _is_padded(text[end:], ends):
                ends = None
        mould = _Mould(
            event=frame.event,
            head=text[:start].encode(),
            head_chars=start,
            tail=text[end:],
            ends=ends,
            channel=delta.channel,
            path=delta.path,
            choices=unit.choices,
        )
        self._moulds = [mould, *(each for each in self._moulds if each.head != mould.head)][:_MOST]


def _is_padded(tail: str, ends: tuple[str, str]) -> bool:
    """Tell whether a tail is one with other padding: letters and digits by chance, too few to be anything else."""
    before, behind = ends
    if not tail.startswith(before) or not tail.endswith(behind) or len(tail) < len(before) + len(behind):
        return False
    padding = tail[len(before) : len(tail) - len(behind)]
    if not padding:
        return True
    if len(padding) > _MOST_PADDING_CHARS or not padding.isascii() or not padding.isalnum():
        return False
    digits = sum(map(str.isdigit, padding)) if len(padding) > _FEW_PADDING_CHARS else 0
    return len(padding) <= _FEW_PADDING_CHARS or (digits <= _MOST_PADDING_DIGITS and not padding.isupper())
