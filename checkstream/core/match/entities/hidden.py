"""HIDDEN_TEXT: characters that show nothing, where they are no part of how a script or an emoji is written.

A sequence of tag characters, two variation selectors or more in a row, four characters of no width or more, an
override of the direction of writing: whatever they spell, a model reads it and a person doesn't. In ordinary use are
flags (England, Scotland, Wales), a selector behind its sign, and single joiners.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.entities.entity import LEFT_CHARS, Entity, SpanPair, whole_if

_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OVERRIDES = "\u202d\u202e"
_NO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202c\u2060-\u206f\u3164\ufeff\uffa0"
)
_FLAG = "\U0001f3f4"
_FLAGS = frozenset(
    "".join(chr(0xE0000 + ord(char)) for char in f"{region}\x7f") for region in ("gbeng", "gbsct", "gbwls")
)
_MOST_PLAIN = 3
"""Characters of no width that scripts and emoji put in a row."""


def _flag_end(text: str, start: int) -> int:
    """Return where the flag ends in which `start` stands, or that begins there; `start` when there is none."""
    at = start
    while at and start - at < LEFT_CHARS and "\U000e0000" <= text[at - 1] <= "\U000e007f":
        at -= 1
    if not at or text[at - 1] != _FLAG:
        return start
    return next((at + len(flag) for flag in _FLAGS if text.startswith(flag, at)), start)


def skip_hidden(text: str, start: int, end: int) -> int:  # noqa: ARG001 - as every entity's
    """Return the end of the run: what is ordinary as a whole is not looked at in parts."""
    return end


def refine_hidden(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return a run of characters that show nothing, when it is more than ordinary writing has."""
    start = min(max(start, _flag_end(text, start)), end)
    run = text[start:end]
    tags = sum("\U000e0000" <= char <= "\U000e007f" for char in run)
    selectors = sum("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" for char in run)
    overrides = sum(char in _OVERRIDES for char in run)
    plain = len(run) - tags - selectors - overrides
    odd = bool(run) and run[0] not in "\ufe0e\ufe0f" and selectors and text[start - 1 : start].isascii()
    return whole_if(bool(tags or overrides or selectors > 1 or plain > _MOST_PLAIN or odd), start, end)


HIDDEN_TEXT = Entity(
    name="HIDDEN_TEXT",
    regex=f"[{_TAGS}{_SELECTORS}{_OVERRIDES}{_NO_WIDTH}]+",
    refine=refine_hidden,
    skip=skip_hidden,
    group=None,
    max_chars=4096,
    views=frozenset({"raw"}),
)

ENTITIES = (HIDDEN_TEXT,)
