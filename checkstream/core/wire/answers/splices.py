"""Puts edited texts of an answer into their places in its JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire.answers.logprobs import SHADOWS
from checkstream.core.wire.json_text.spans import NAME, JsonText, Path, Splice
from checkstream.core.wire.json_text.splices import Names, null, replace

_EMPTY = {"[": "[]", "{": "{}"}
"""First character of a container -> one with nothing in it."""


def replacements(
    document: JsonText,
    unit: Unit,
    texts: Mapping[int, str],
    dropped: frozenset[int],
    beside: dict[Path, Names] | None = None,
) -> list[Splice]:
    """Return the splices that put texts in their places, but for those of dropped choices.

    `beside`: names that stand in objects of the document, where texts of one are put there some at a time.
    """
    splices: list[Splice] = []
    beside = {} if beside is None else beside
    for i, text in texts.items():
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
            splices.append(msgspec.structs.replace(splice, text=text) if _is_json(text) else splice)
        elif delta.channel.kind == "extra":
            splices.append(_replace_extra(document, delta.path, text))
        else:
            splices.append(replace(document, delta.path, text))
    return splices


def _is_json(text: str) -> bool:
    """Tell whether JSON has stayed JSON: what was cut off goes out as a string, as cut JSON in strings does."""
    try:
        msgspec.json.decode(str(text))  # msgspec takes no text of a class of its own, as long ones are (`Quoted`)
    except (ValueError, RecursionError):
        return False
    return True


def _replace_extra(document: JsonText, path: Path, text: str) -> Splice:
    """Replace what nobody knows by a value of its own type: clients that know it expect that."""
    splice = replace(document, path, text)
    opener = document.text[splice.start]
    if opener == '"' or path[-1] == NAME:
        return splice
    return msgspec.structs.replace(splice, text=_EMPTY.get(opener, "0"))
