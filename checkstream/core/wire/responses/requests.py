"""Reads the requests of the Responses API: strict JSON, every text as a delta, nothing smuggled (G31)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial

import msgspec

from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import finish_request, reading_fields
from checkstream.core.wire.requests.tools import tool_names
from checkstream.core.wire.responses import fields
from checkstream.core.wire.responses.inputs import Reader
from checkstream.core.wire.surface import Request
from checkstream.errors import RequestInvalid

_NAMES_A_STEP = 100


def reading_request(body: bytes) -> Generator[None, None, Request]:
    """Read a caller's body, in steps.

    Raises:
        RequestInvalid: not JSON of the API's form, duplicate or case-variant keys, wrong types.
    """
    return reading_fields(body, fields.PLAIN_FIELDS, partial(_reading, body), fields.TEXT_FIELDS)


def _reading(body: bytes, found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
    for name in fields.ELSEWHERE:
        if found.get(name) is not None:
            prompt.unscanned[name] = None
    reader = Reader(prompt)
    position = yield from reader.reading(found.get("input"))
    request = yield from finish_request(prompt, body, found, position, apart={"input"}, texts=fields.TEXT_FIELDS)
    tools = yield from _offered(found)
    return msgspec.structs.replace(
        request,
        usage_wanted=True,
        choices=1,
        tools=tuple(dict.fromkeys((*request.tools, *tools))),
        user=request.user or _text(found, "safety_identifier"),
        previous=_text(found, "previous_response_id"),
        referred=reader.referred,
        conversation=_conversation(found.get("conversation")),
        structured=is_structured(found),
    )


def _text(found: Mapping[str, object], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise RequestInvalid(f"`{name}` must be a string")
    return value


def _conversation(value: object) -> str | None:
    """Return the id of the conversation that the provider keeps."""
    found = value.get("id") if isinstance(value, dict) else value
    if found is not None and not isinstance(found, str):
        raise RequestInvalid("`conversation` must be a string, or an object with an `id`")
    return found


def _offered(found: Mapping[str, object]) -> Generator[None, None, list[str]]:
    """Return, in steps, the names of the tools that items of the input offer."""
    names: list[str] = []
    given = found.get("input")
    for count, item in enumerate(given if isinstance(given, list) else (), 1):
        tools = item.get("tools") if isinstance(item, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            names += tool_names(tool)
        if count % _NAMES_A_STEP == 0:
            yield
    return names


def is_structured(found: Mapping[str, object]) -> bool:
    """Tell whether a request asks for an answer of a fixed form."""
    text = found.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if form is not None and not (isinstance(form, dict) and form.get("type") == "text"):
        return True
    return any(found.get(name) is not None for name in fields.FORMS)
