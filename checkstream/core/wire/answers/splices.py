"""Puts edited texts of an answer into their places in its JSON."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire.answers.logprobs import SHADOWS
from checkstream.core.wire.json_text.objects import looking_whether_json
from checkstream.core.wire.json_text.spans import NAME, JsonText, Path, Splice
from checkstream.core.wire.json_text.splices import EDITS_A_STEP, Names, null, replace

_EMPTY = {"[": "[]", "{": "{}"}
"""First character of a container -> one with nothing in it."""


def replacing(
    document: JsonText,
    unit: Unit,
    texts: Mapping[int, str],
    dropped: frozenset[int],
    beside: dict[Path, Names] | None = None,
) -> Generator[None, None, list[Splice]]:
    """Return, in steps, the splices that put texts in their places, but for those of dropped choices.

    `beside`: names that stand in objects of the document, where texts of one are put there some at a time.
    """
    splices: list[Splice] = []
    beside = {} if beside is None else beside
    for count, (i, text) in enumerate(texts.items(), 1):
        if count % EDITS_A_STEP == 0:
            yield
        delta = unit.deltas[i]
        if delta.channel.choice in dropped:
            continue
        if delta.path[-1] in SHADOWS and delta.channel.kind == "extra":
            splices += null(document, [delta.path])
        elif delta.path[-1] == NAME:
            names = beside.setdefault(delta.path[:-2], Names(document.entries(delta.path[:-2])))
            splices.append(replace(document, delta.path, names.new(text)))
        elif delta.verbatim:
            splice = replace(document, delta.path, text)
            # What was cut off goes out as a string, as cut JSON in strings does.
            is_json = yield from looking_whether_json(text)
            splices.append(msgspec.structs.replace(splice, text=text) if is_json else splice)
        elif delta.channel.kind == "extra":
            splices.append(_replace_extra(document, delta.path, text))
        else:
            splices.append(replace(document, delta.path, text))
    return splices


def _replace_extra(document: JsonText, path: Path, text: str) -> Splice:
    """Replace what nobody knows by a value of its own type: clients that know it expect that."""
    splice = replace(document, path, text)
    opener = document.text[splice.start]
    if opener == '"' or path[-1] == NAME:
        return splice
    return msgspec.structs.replace(splice, text=_EMPTY.get(opener, "0"))
