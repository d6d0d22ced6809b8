"""What was said in an exchange, as it is handed on to be held against evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from checkstream.core.events import RequestReceived
from checkstream.core.terms import Circumstances, Dialogue, Message
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests.extension import DOCUMENTS, reworded
from checkstream.core.wire.surface import Extension, Request


def dialogue_of(
    request: Request, changed: Mapping[int, str], removed: Mapping[int, tuple[Path, str]], answers: Mapping[int, str]
) -> Dialogue:
    """Return a request as it was forwarded, with what was answered.

    Args:
        request: As it came.
        changed: Place of a text that was changed -> what was forwarded in its place.
        removed: Place of a text that was taken out -> the path of what it went with, and the note in place of that.
        answers: Choice -> what was said.
    """
    extension = request.extension or Extension()
    messages: dict[tuple[str, int], list[str]] = {}
    documents: dict[str | int, dict[Path, str]] = {}
    noted = set[Path]()
    reworded_at = {request.unit.deltas[place].path[: len(DOCUMENTS) + 1] for place in changed}
    gone = {unit for unit, _ in removed.values()}
    for place, delta in enumerate(request.unit.deltas):
        if place in request.quiet:
            continue
        text = changed.get(place, delta.text)
        if place in removed:
            unit, text = removed[place]
            if unit in noted:
                continue
            noted.add(unit)
        if delta.path[: len(DOCUMENTS)] == DOCUMENTS:
            documents.setdefault(delta.path[len(DOCUMENTS)], {})[delta.path[len(DOCUMENTS) + 1 :]] = text
        else:
            messages.setdefault((delta.channel.kind, delta.channel.choice), []).append(text)
    return Dialogue(
        model=request.model,
        messages=tuple(Message(role, "\n".join(texts)) for (role, _), texts in messages.items()),
        answers=answers,
        documents=tuple(
            reworded(document, documents[at]) if (*DOCUMENTS, at) in reworded_at else document
            for at, document in enumerate(extension.documents)
            if (*DOCUMENTS, at) not in gone
        ),
        conversation=extension.conversation or "",
    )


def circumstances_of(
    event: RequestReceived, request: Request, said: Mapping[str, Any], *, edited: bool
) -> Circumstances:
    """Return what rules knew of a request besides its texts.

    Args:
        event: With which it came.
        request: As it was read.
        said: Field of `request` -> its value, as conditions read it.
        edited: Not all of its texts were forwarded as they came.
    """
    facts = request.extension.context if request.extension is not None else {}
    context = event.context if event.context is not None else msgspec.json.encode(facts).decode() if facts else ""
    # what a caller calls its conversations is kept as a digest alone, and rules that ask for one are left out
    fields = {name: value for name, value in said.items() if name != "conversation"}
    return Circumstances(context=context, known=event.known, request=fields, confirmed=event.confirmed, edited=edited)
