"""JSON of OpenAI's shape, for both of its older surfaces: strict reading, texts, envelopes and errors.

Knows the forms that chat and legacy completions share; what a choice looks like is the surfaces' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NoReturn

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_size import MOST_HALVES, MOST_VALUES_OF_WHOLE
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.strict_json import Dialect, Reading, StrictJson
from checkstream.errors import RequestInvalid, WireError

_LONG = 4096
_SHORT_BYTES = 65_536
_FEW = 4096
"""A body of so many bytes, with so many commas and brackets, is read at once: the dearest take about a millisecond."""
_WHOLE = StrictJson("the body", Dialect(values=MOST_VALUES_OF_WHOLE, halves=MOST_HALVES, variants=True, wide=True))
DONE = b"data: [DONE]\n\n"
PADDING, PAD = "obfuscation", "x"
"""The field of padding, and what ours is made of: what looks like chance could spell something."""


def _refuse_constant(constant: str) -> NoReturn:
    raise WireError(f"`{constant}` is not JSON; send a number or null")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object; of two members of one name readers differ in which they take, and only one is scanned."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise WireError("a JSON object has two members of one name; check the upstream")
    return found


_LENIENT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object)


def read_object(data: bytes) -> dict[str, object]:
    """Read an upstream's JSON object.

    Lone surrogates in escapes (an emoji cut in two by the server) are let through as they are;
    `clean` makes scannable text of them.

    Raises:
        WireError: not UTF-8, not JSON, nested too deeply, not an object, or an object with two members of one name.
    """
    try:
        value: object = _LENIENT.decode(data.decode())  # msgspec refuses lone surrogates and sees no duplicates
    except UnicodeDecodeError as error:
        raise WireError("the event or body is not valid UTF-8; the upstream must send UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise WireError("the event or body is not valid JSON; check the upstream") from error
    if not isinstance(value, dict):
        raise WireError("the event or body is not a JSON object; check the upstream")
    return value


def reading_object(data: bytes) -> Reading:
    """Read a whole answer's JSON object as `read_object` does, but a long one in steps, and within bounds.

    Raises:
        WireError: as `read_object`, or it is nested more deeply, or made of more values, than is read.
    """
    if len(data) <= _SHORT_BYTES and data.count(b",") + data.count(b"[") + data.count(b"{") <= _FEW:
        return read_object(data)
    try:
        return (yield from _WHOLE.reading(data))
    except RequestInvalid as error:
        raise WireError(f"{str(error).rpartition(';')[0] or error}; check the upstream") from error


def clean(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD; the number of code points stays."""
    try:
        text.encode()
    except UnicodeEncodeError:
        if len(text) > _LONG:
            return _mended(text)
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def halves_of(text: str) -> tuple[str, str]:
    """Return the second half of a character that a text begins with, and the first that it ends with; "": none."""
    return text[:1] if _is_second(text[:1]) else "", text[-1:] if _is_first(text[-1:]) else ""


def _is_first(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"


def _is_second(char: str) -> bool:
    return "\udc00" <= char <= "\udfff"


def whole_of(first: str, second: str) -> str:
    """Return the character that two halves make."""
    return (first + second).encode("utf-16", "surrogatepass").decode("utf-16")


def _mended(text: str) -> str:
    """Replace lone surrogates of a long text without looking at each character: each is three bytes that are no UTF-8.

    What is there of U+FFFD already stands aside meanwhile as a character that the text does not have.
    """
    spare = next(char for char in map(chr, range(0xE000, 0x110000)) if char not in text) if "\ufffd" in text else ""
    parted = text.replace("\ufffd", spare) if spare else text
    mended = parted.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace("\ufffd" * 3, "\ufffd")
    return mended.replace(spare, "\ufffd") if spare else mended


def quote(text: str) -> str:
    """Return `text` as a JSON string."""
    return msgspec.json.encode(clean(text)).decode()


def quote_like(text: str, original: str) -> str:
    """Return `text` as a JSON string that begins and ends with the halves of characters that `original` does.

    Args:
        text: In place of half a character that it begins with stands the whole, for that at its end U+FFFD.
        original: What stands there, as JSON.
    """
    quoted = quote(text)
    if not text or "\\" not in original or not original.startswith('"'):
        return quoted
    second, first = halves_of(json.loads(original))
    if second and text[0] > "\uffff" and text[0].encode("utf-16-be")[2:] == second.encode("utf-16-be", "surrogatepass"):
        quoted = f'"\\u{ord(second):04x}{quoted[2:]}'
    if first and text.endswith("\ufffd"):
        quoted = f'{quoted[:-2]}\\u{ord(first):04x}"'
    return quoted


def leaves(value: object, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield every string in a JSON value with its path, in document order."""
    pending: list[tuple[object, Path]] = [(value, path)]
    while pending:
        found, at = pending.pop()
        if isinstance(found, str):
            yield found, at
        elif isinstance(found, list):
            pending += [(found[i], (*at, i)) for i in range(len(found) - 1, -1, -1)]
        elif isinstance(found, dict):
            pending += [(found[name], (*at, name)) for name in reversed(found)]


def failure_of(body: dict[str, object]) -> str | None:
    """Return the message of the error object that stands in place of an answer, None if there is none.

    Read are OpenAI's `{"error": {"message": ...}}`, `{"error": "..."}` (Ollama) and
    `{"object": "error", "message": ...}` (older vLLM).
    """
    error = body.get("error")
    if error is None or error is False:
        if body.get("object") != "error":
            return None
        error = body
    message = error.get("message") if isinstance(error, dict) else error
    return clean(message) if isinstance(message, str) and message else "the upstream reported an error"


def error_body(kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
    """Return OpenAI's error object; `rule_id` stands inside `error` and beside it, `param` is the place.

    Most SDKs show people the message alone, so it names the rule and the place as well.
    """
    named = [f"rule {rule_id}"] if rule_id is not None and rule_id not in message else []
    named += [param] if named and param is not None and param not in message else []
    if named:
        message = f"{message} ({', '.join(named)})"
    error: dict[str, str | None] = {"type": kind, "code": kind, "message": clean(message), "param": param}
    if rule_id is None:
        return msgspec.json.encode({"error": error})
    return msgspec.json.encode({"error": error | {"rule_id": rule_id}, "rule_id": rule_id})


def error_event(kind: str, message: str, rule_id: str | None = None) -> bytes:
    """Return the error object as an event; OpenAI's SDKs raise on any event whose data has `error`."""
    return sse.encode(error_body(kind, message, rule_id))


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What every event of one answer repeats."""

    id: str | None = None
    created: int = 0
    model: str = ""
    system_fingerprint: str | msgspec.UnsetType | None = msgspec.UNSET


_ENVELOPE = msgspec.json.Decoder(Envelope)


def envelope_of(like: Unit) -> Envelope:
    """Return the envelope of an event or a whole body; an empty one when `like` has none."""
    data = like.raw if like.raw.lstrip().startswith(b"{") else sse.parse(like.raw).data
    try:
        return _ENVELOPE.decode(data or b"{}")
    except (ValueError, RecursionError):
        return Envelope()


def event(
    envelope: Envelope,
    form: str,
    default_id: str,
    choices: list[dict[str, object]],
    more: Mapping[str, object],
) -> bytes:
    """Return an event of one answer: its envelope, `object: form`, these choices and more members."""
    body: dict[str, object] = {
        "id": envelope.id or default_id,
        "object": form,
        "created": envelope.created,
        "model": envelope.model,
    }
    if envelope.system_fingerprint is not msgspec.UNSET:
        body["system_fingerprint"] = envelope.system_fingerprint
    body["choices"] = choices
    return sse.encode(msgspec.json.encode({**body, **more}))


def estimated_usage(prompt_tokens: int, completion_tokens: int) -> dict[str, object]:
    """Return a usage object that says of itself that it is an estimate (G16)."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "checkstream_estimated": True,
    }
