"""Reads the requests of the Messages API: strict JSON, every text as a delta, nothing smuggled (G31)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial

import msgspec

from checkstream.core.wire.anthropic import fields
from checkstream.core.wire.anthropic.messages import Reader
from checkstream.core.wire.anthropic.tools import name_of
from checkstream.core.wire.requests.extension import read_extension
from checkstream.core.wire.requests.fields import EXTENSION, OWN_FIELDS, VERIFICATION
from checkstream.core.wire.requests.prompt import Prompt, is_model
from checkstream.core.wire.requests.reading import reading_fields, temperature_of
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
    reader = Reader(prompt)
    yield from reader.reading(found.get("messages"), found.get("system"))
    position = yield from _read_fields(prompt, found, reader.position)
    extension = None
    if EXTENSION in found:
        extension = yield from read_extension(prompt, position, found.get(EXTENSION))
    streaming = _flag("stream", found.get("stream"))
    verification = _flag(VERIFICATION, found.get(VERIFICATION))
    model = found.get("model")
    if model is not None and not isinstance(model, str):
        raise RequestInvalid("`model` must be a string")
    metadata = found.get("metadata")
    noted = metadata if isinstance(metadata, dict) else {}
    user = noted.get("user_id")
    tools = yield from _offered(found)
    yield from prompt.settling()
    return msgspec.structs.replace(
        prompt.request(body, found, model=model or "", streaming=bool(streaming), counts=True),
        extension=extension,
        verification=verification,
        tools=tools,
        temperature=temperature_of(found),
        user=user if isinstance(user, str) else None,
        metadata={name: value for name, value in noted.items() if isinstance(value, str)},
        structured=_is_structured(found),
    )


def _read_fields(prompt: Prompt, found: Mapping[str, object], position: int) -> Generator[None, None, int]:
    """Read every field but those that are read apart; return the next position that is free."""
    for name, kind in fields.TEXT_FIELDS.items():
        if found.get(name) is not None:
            yield from prompt.all(kind, position, found[name], (name,))
            position += 1
    for name, value in found.items():
        if prompt.spends():
            yield
        if name in fields.TEXT_FIELDS or name in OWN_FIELDS or name in ("messages", "system"):
            continue
        if name == "model" and isinstance(value, str) and is_model(value):
            continue  # by which the route was chosen
        if name in fields.ELSEWHERE and value is not None:
            prompt.unscanned[name] = None
        strange = name in prompt.strange
        kind = "system" if name in fields.MODE_FIELDS else "user"
        if strange:
            prompt.name(kind, position, (name,))
        words = strange or name == "metadata"
        yield from prompt.settings(kind, position, value, (name,), words=words, numbers=words)
    return position + 1


def _offered(found: Mapping[str, object]) -> Generator[None, None, tuple[str, ...]]:
    """Return, in steps, the names of the tools that the model is offered."""
    tools = found.get("tools")
    names: dict[str, None] = {}
    for count, tool in enumerate(tools if isinstance(tools, list) else (), 1):
        name = name_of(tool)
        if name is not None:
            names[name] = None
        if count % _NAMES_A_STEP == 0:
            yield
    return tuple(names)


def _flag(name: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise RequestInvalid(f"`{name}` must be true or false")
    return value


def _is_structured(found: Mapping[str, object]) -> bool:
    """Tell whether a request asks for an answer of a fixed form."""
    config = found.get("output_config")
    form = config.get("format") if isinstance(config, dict) else None
    return found.get("output_format") is not None or form is not None
