"""Constants of stored programs: each a type and a text, so that a value has one spelling and comes back as it was."""

from __future__ import annotations

import base64
import binascii
import math

import msgspec

from checkstream.core.cel.arithmetic import mapped
from checkstream.core.cel.values import (
    Duration,
    EvalError,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    duration_value,
    key_value,
    timestamp_value,
)
from checkstream.core.match.regex import TextRegex
from checkstream.errors import PatternError, ProgramInvalid

_INT_BITS = 64
_ITEMS = msgspec.json.Decoder(tuple[tuple[str, str], ...])
_PAIRS = msgspec.json.Decoder(tuple[tuple[tuple[str, str], tuple[str, str]], ...])


def written_constant(value: Value) -> tuple[str, str]:  # noqa: C901, PLR0912 - one arm for each type
    """Return the type of a constant and its text."""
    match value:
        case bool():
            return "bool", "true" if value else "false"
        case Uint():
            return "uint", str(int(value))
        case int():
            return "int", str(value)
        case float():
            return "double", value.hex()
        case str():
            return "string", value
        case bytes():
            return "bytes", base64.b64encode(value).decode()
        case None:
            return "null", ""
        case Timestamp():
            return "timestamp", str(value.nanos)
        case Duration():
            return "duration", str(value.nanos)
        case TypeValue():
            return "type", value.name
        case TextRegex():
            return "regex", value.source
        case EvalError():
            return "error", value.reason
        case tuple():
            return "list", msgspec.json.encode([written_constant(item) for item in value]).decode()
        case dict():
            pairs = [(written_constant(key_value(key)), written_constant(item)) for key, item in value.items()]
            return "map", msgspec.json.encode(pairs).decode()


def read_constant(kind: str, text: str) -> Value:
    """Return the constant that a type and a text stand for.

    Raises:
        ProgramInvalid: they stand for none, or are not spelled as `written_constant` does.
    """
    try:
        value = _read(kind, text)
    except (ValueError, OverflowError, RecursionError, binascii.Error, msgspec.DecodeError, PatternError) as error:
        raise ProgramInvalid(f"the constant `{text[:40]}` is no `{kind[:20]}`; compile the policy again") from error
    if written_constant(value) != (kind, text):
        raise ProgramInvalid(
            f"the constant `{text[:40]}` is not spelled as a `{kind[:20]}` is; compile the policy again"
        )
    return value


def _read(kind: str, text: str) -> Value:  # noqa: C901, PLR0912 - one arm for each type
    match kind:
        case "bool":
            return text == "true"
        case "int" | "uint" | "timestamp" | "duration":
            return _number(kind, text)
        case "double":
            value = float.fromhex(text)
            if math.isnan(value) and text != "nan":
                raise ValueError(text)
            return value
        case "string":
            return text
        case "bytes":
            return base64.b64decode(text, validate=True)
        case "null":
            return None
        case "type":
            return TypeValue(text)
        case "regex":
            return TextRegex(text)
        case "error":
            return EvalError(text)
        case "list":
            return tuple(read_constant(*item) for item in _ITEMS.decode(text))
        case "map":
            pairs = _PAIRS.decode(text)
            made = mapped([read_constant(*part) for pair in pairs for part in pair])
            if not isinstance(made, dict):
                raise ValueError(text)  # noqa: TRY004 - the text is what is wrong
            return made
        case _:
            raise ValueError(kind)


def _number(kind: str, text: str) -> Value:
    if len(text) > 24 or not text.lstrip("-").isdigit():
        raise ValueError(text)
    number = int(text)
    value: Value
    if kind == "uint":
        if not 0 <= number < 2**_INT_BITS:
            raise ValueError(text)
        return Uint(number)
    if kind == "timestamp":
        value = timestamp_value(number)
    elif not -(2 ** (_INT_BITS - 1)) <= number < 2 ** (_INT_BITS - 1):
        raise ValueError(text)
    else:
        value = number if kind == "int" else duration_value(number)
    if isinstance(value, EvalError):
        raise ValueError(text)  # noqa: TRY004 - the text is what is wrong
    return value
