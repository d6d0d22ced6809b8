"""Figures of tokens in the events of an answer: where they stand, and how more is counted in."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.spans import JsonText, Path, Splice

Counts = Mapping[Path, tuple[bool, bool]]
"""Where a surface tells how many tokens were spent -> whether those of the prompt count there, and the answer's."""
_MOST_DIGITS = 16
"""A longer number is no count."""


def adding(unit: Unit, counts: Counts, prompt_tokens: int, completion_tokens: int) -> Unit:
    """Return an event with more tokens in the counts that it tells, marked as an estimate; others stay as they are.

    Raises:
        WireError: its JSON has two members of one name there.
    """
    data = sse.parse(unit.raw).data
    if data is None:
        return unit
    document = JsonText.of_bytes(data)
    splices: list[Splice] = []
    marked: dict[Path, Splice] = {}
    for path, (prompt, answer) in counts.items():
        span, holder = document.span(path), document.span(path[:-1])
        told = "" if span is None else document.text[slice(*span)]
        if span is None or holder is None or not told.isdecimal() or len(told) > _MOST_DIGITS:
            continue
        splices.append(Splice(*span, str(int(told) + prompt * prompt_tokens + answer * completion_tokens)))
        marked[path[:-1]] = Splice(holder[0] + 1, holder[0] + 1, '"checkstream_estimated":true,')
    if not splices:
        return unit
    written = document.apply([*splices, *marked.values()]).encode()
    return msgspec.structs.replace(unit, raw=sse.reframe(unit.raw, written))
