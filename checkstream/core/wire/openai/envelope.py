"""What chat and legacy completions of OpenAI share around a choice: envelopes of events, usage, failures and errors."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.refusing import named

DONE = b"data: [DONE]\n\n"


def error_body(kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
    """Return OpenAI's error object; `rule_id` stands inside `error` and beside it, `param` is the place.

    Most SDKs show people the message alone, so it names the rule and the place as well.
    """
    error: dict[str, str | None] = {
        "type": kind,
        "code": kind,
        "message": clean(named(message, rule_id, param)),
        "param": param,
    }
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
