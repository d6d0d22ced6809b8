"""Reads the requests of OpenAI's older surfaces: strict JSON, every text as a delta, nothing smuggled (G31)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from checkstream.core.steps import freeing_if_failed
from checkstream.core.wire.json_text.strict import Reading, StrictJson
from checkstream.core.wire.requests import fields
from checkstream.core.wire.requests.extension import read_extension
from checkstream.core.wire.requests.prompt import Prompt, is_model
from checkstream.core.wire.requests.tools import offered
from checkstream.core.wire.surface import Request
from checkstream.errors import RequestInvalid

MAX_CHOICES = 128
_BODY = StrictJson("the body")


def reading_body(body: bytes) -> Reading:
    """Read a caller's body strictly, in steps.

    Raises:
        RequestInvalid: as `StrictJson.reading`.
    """
    return _BODY.reading(body)


def reading_fields(
    body: bytes,
    known: frozenset[str],
    read: Callable[[dict[str, object], Prompt], Generator[None, None, Request]],
    texts: Mapping[str, str] = fields.TEXT_FIELDS,
) -> Generator[None, None, Request]:
    """Read a body strictly, sort its fields, and read them; let go of those of a body that is refused in steps.

    Args:
        body: As it came.
        known: The surface's plain fields.
        read: Reads the fields.
        texts: Those that are texts.

    Raises:
        RequestInvalid: as `reading_body`, a field that differs from a known one in case only, or as `read`.
    """
    found = yield from reading_body(body)
    prompt = Prompt()

    def reading() -> Generator[None, None, Request]:
        prompt.strange = yield from prompt.names("", found, known | texts.keys() | fields.OWN_FIELDS)
        return (yield from read(found, prompt))

    return (yield from unless_refused(found, prompt, reading()))


def unless_refused(
    found: dict[str, object], prompt: Prompt, reading: Generator[None, None, Request]
) -> Generator[None, None, Request]:
    """Do the steps of reading a request; if it is refused, let go of what was found in it in steps."""
    return (yield from freeing_if_failed([found, *prompt.memory], reading))


def finish_request(
    prompt: Prompt,
    body: bytes,
    found: dict[str, object],
    position: int,
    *,
    apart: AbstractSet[str],
    prompts: int = 1,
    texts: Mapping[str, str] = fields.TEXT_FIELDS,
) -> Generator[None, None, Request]:
    """Read what chat and completion requests have in common.

    Args:
        prompt: What has been read.
        body: The request.
        found: The same, as an object.
        position: The first that is free.
        apart: The fields that have been read.
        prompts: How many prompts it had; each gets `n` choices.
        texts: Field -> ingress channel, of those whose every string is scanned.

    Raises:
        RequestInvalid: a field has the wrong type or is out of range.
    """
    position = yield from _read_fields(prompt, found, position, apart, texts)
    extension = None
    if fields.EXTENSION in found:
        extension = yield from read_extension(prompt, position, found.get(fields.EXTENSION))
    for name in ("n", "best_of"):
        _check_count(name, found.get(name))
    streaming = found.get("stream")
    if streaming is not None and not isinstance(streaming, bool):
        raise RequestInvalid("`stream` must be true or false")
    verification = found.get(fields.VERIFICATION)
    if verification is not None and not isinstance(verification, bool):
        raise RequestInvalid(f"`{fields.VERIFICATION}` must be true or false")
    model, user = _name("model", found.get("model")), _name("user", found.get("user"))
    options = found.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise RequestInvalid("`stream_options` must be an object")
    tools = yield from offered(found)
    metadata = yield from _metadata(prompt, found.get("metadata"))
    yield from prompt.settling()
    counts = bool(options and options.get("include_usage") is True)
    return msgspec.structs.replace(
        prompt.request(body, found, model=model or "", streaming=bool(streaming), counts=counts),
        choices=prompts * (n if isinstance(n := found.get("n"), int) else 1),
        extension=extension,
        verification=verification,
        tools=tools,
        temperature=temperature_of(found),
        user=user,
        metadata=metadata,
        structured=is_structured(found),
    )


def _read_fields(
    prompt: Prompt, found: dict[str, object], position: int, apart: AbstractSet[str], texts: Mapping[str, str]
) -> Generator[None, None, int]:
    """Read every field but those that are read apart; return the next position that is free.

    Each document has a position of its own, so that it can be judged and taken out alone.
    """
    for name, kind in texts.items():
        value = found.get(name)
        if value is None:
            continue
        if isinstance(value, list) and kind == "document":
            for i, each in enumerate(value):
                yield from prompt.all(kind, position + i, each, (name, i))
            position += len(value)
        else:
            yield from prompt.all(kind, position, value, (name,))
            position += 1
    for name, value in found.items():
        if prompt.spends(chars=len(name)):
            yield
        if name in texts or name in fields.OWN_FIELDS or name in apart:
            continue
        if name == "model" and isinstance(value, str) and is_model(value):
            continue  # by which the route was chosen
        strange = name in prompt.strange
        if strange:
            prompt.name("user", position, (name,))
        kind = "system" if name in fields.MODE_FIELDS else "user"
        words = strange or name in fields.TOLD_BY_CALLER
        numbers = words or not (name in fields.TOKEN_IDS or isinstance(value, int | float))
        yield from prompt.settings(kind, position, value, (name,), words=words, numbers=numbers)
    return position + 1


def _check_count(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CHOICES):
        raise RequestInvalid(f"`{name}` must be a number from 1 to {MAX_CHOICES}")


def _name(field: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise RequestInvalid(f"`{field}` must be a string")
    return value


def temperature_of(found: Mapping[str, object], where: str = "") -> float | None:
    """Return the temperature that is asked for; None: none is.

    Raises:
        RequestInvalid: it is no number, which some servers would read as one; `where` is what stands before its name.
    """
    value = found.get("temperature")
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RequestInvalid(f"`{where}temperature` must be a number")
    return float(value)


def _metadata(prompt: Prompt, value: object) -> Generator[None, None, dict[str, str]]:
    """Return, in steps, the members of `metadata` that are strings, as OpenAI wants all to be."""
    found: dict[str, str] = {}
    for name, inner in value.items() if isinstance(value, dict) else ():
        if prompt.spends():
            yield
        if isinstance(inner, str):
            found[name] = inner
    return found


def is_structured(found: Mapping[str, object]) -> bool:
    """Tell whether a request asks for an answer of a fixed form: JSON, a grammar or the like."""
    form = found.get("response_format")
    if form is not None and not (isinstance(form, dict) and form.get("type") == "text"):
        return True
    return any(found.get(name) is not None for name in fields.FORM_FIELDS)
