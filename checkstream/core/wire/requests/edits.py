"""Puts edited texts of a request into their places in its JSON: all else stays byte for byte."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.wire.json_text.spans import NAME, JsonText, Path, Splice
from checkstream.core.wire.json_text.splices import EDITS_A_STEP, Names, changed, places, replace
from checkstream.core.wire.surface import Request


def editing_request(
    request: Request, texts: Mapping[int, str], removed: frozenset[str]
) -> Generator[None, None, bytes]:
    """Return, in steps, the body with texts replaced and without the top-level members `removed`.

    Raises:
        WireError: the body is not the JSON that the request was read from.
    """
    if removed.isdisjoint(request.members) and not changed(request.unit, texts):
        return request.unit.raw
    document = yield from request_places(request)
    splices = yield from request_splices(document, request, texts, removed)
    splices += document.cut((), frozenset[str | int](removed))
    return (yield from document.applying(splices)) if splices else request.unit.raw


def request_places(request: Request) -> Generator[None, None, JsonText]:
    """Return the body's JSON; of a long one all places are known.

    Raises:
        WireError: the body is not the JSON that the request was read from.
    """
    return (yield from places(request.unit.raw, None))


def request_splices(
    document: JsonText, request: Request, texts: Mapping[int, str], removed: frozenset[str]
) -> Generator[None, None, list[Splice]]:
    """Return, in steps, the splices that replace texts of a body, but for those in the top-level members `removed`.

    Names of members stay different from those beside them: of two that are equal a reader takes one.

    Raises:
        WireError: the body is not the JSON that the request was read from.
    """
    unit = request.unit
    splices: list[Splice] = []
    names: dict[Path, Names] = {}
    for count, (i, text) in enumerate(changed(unit, texts).items(), 1):
        path = unit.deltas[i].path
        if count % EDITS_A_STEP == 0:
            yield
        if path[0] in removed:
            continue
        if path[-1] == NAME:
            beside = names.setdefault(path[:-2], Names(document.entries(path[:-2])))
            splices.append(replace(document, path, beside.new(text)))
        else:
            form = request.files.get(i)
            splice = replace(document, path, text if form is None else form.written(text))
            is_list = document.text[splice.start] == "["
            splices.append(msgspec.structs.replace(splice, text="[]") if is_list else splice)
    return splices
