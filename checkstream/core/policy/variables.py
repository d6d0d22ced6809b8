"""The variables that conditions read, and how they are called in rewritten expressions.

Names of signals begin with `@`, which no one can write in CEL, and hold the signal itself, so that a name leads back:

    context  request.FIELD  stream.FIELD  @given:FIELD (`has(request.FIELD)`)
    @score:SIGNAL  @scored:SIGNAL (`has(scores.x)`)  @peak:SIGNAL  @count:SIGNAL  @found:SIGNAL (`has(findings.x)`)
    conversation.FIELD  @fired:RULE (`conversation.fired["RULE"]`)
    @risk:SIGNAL (`conversation.risk.x`)  @highest:SIGNAL (`conversation.peak.x`)  @recent:SIGNAL  @short:SIGNAL
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from checkstream.core.cel.types import BOOL, DOUBLE, DYN, INT, STRING, Type, list_of, map_of
from checkstream.core.policy.program import Signal, Variable

ROOTS: Final = ("context", "request", "scores", "findings", "stream", "conversation")
REQUEST_FIELDS: Mapping[str, Type] = MappingProxyType(
    {
        "route": STRING,
        "model": STRING,
        "surface": STRING,
        "stream": BOOL,
        "tools": list_of(STRING),
        "temperature": DOUBLE,
        "caller": STRING,
        "user": STRING,
        "metadata": map_of(STRING, STRING),
        "earlier_risk": DOUBLE,
        "conversation": STRING,
        "previous_response_id": STRING,
    }
)
STREAM_FIELDS: Mapping[str, Type] = MappingProxyType(
    {"tokens": INT, "risk": DOUBLE, "trend": DOUBLE, "language": STRING}
)
CONVERSATION_FIELDS: Mapping[str, Type] = MappingProxyType({"turns": INT, "refused": INT, "entities": list_of(STRING)})
UNKNOWN: Final = "@unknown"
"""Stands in for a name that has been reported."""
_SIGNAL_TYPES: Final = MappingProxyType(
    {
        "score": DOUBLE,
        "scored": BOOL,
        "peak": DOUBLE,
        "count": INT,
        "found": BOOL,
        "risk": DOUBLE,
        "highest": DOUBLE,
        "recent": DOUBLE,
        "short": DOUBLE,
    }
)
RECALLED: Final = frozenset({"risk", "highest", "recent", "short"})
"""Kinds of variables that say of a signal what it came to in the conversation, and nothing of the text at hand."""


def score_name(signal: Signal) -> str:
    """Return the name of a classifier's latest score."""
    return _signal_name("score", signal)


def scored_name(signal: Signal) -> str:
    """Return the name of what says whether a classifier's score is known."""
    return _signal_name("scored", signal)


def peak_name(signal: Signal) -> str:
    """Return the name of a classifier's highest score so far."""
    return _signal_name("peak", signal)


def count_name(signal: Signal) -> str:
    """Return the name of how often something has been found so far."""
    return _signal_name("count", signal)


def found_name(signal: Signal) -> str:
    """Return the name of what says whether something has been found."""
    return _signal_name("found", signal)


def risk_name(signal: Signal) -> str:
    """Return the name of the risk that a classifier's scores have added up to in the conversation."""
    return _signal_name("risk", signal)


def highest_name(signal: Signal) -> str:
    """Return the name of a classifier's highest score in the conversation."""
    return _signal_name("highest", signal)


def recent_name(signal: Signal) -> str:
    """Return the name of a classifier's score of what the user said last, read as one text."""
    return _signal_name("recent", signal)


def short_name(signal: Signal) -> str:
    """Return the name of a classifier's score of more texts, where they are short, read as one."""
    return _signal_name("short", signal)


def _signal_name(kind: str, signal: Signal) -> str:
    return f"@{kind}:{msgspec.json.encode(signal).decode()}"


def signal_of(name: str) -> Signal | None:
    """Return the signal that a name speaks of, None when it speaks of none."""
    kind, _, written = name.removeprefix("@").partition(":")
    return msgspec.json.decode(written, type=Signal) if name[:1] == "@" and kind in _SIGNAL_TYPES else None


def is_recalled(name: str) -> bool:
    """Tell whether a name says of a signal what it came to in the conversation."""
    return name.removeprefix("@").partition(":")[0] in RECALLED


def variable_of(name: str, number: Callable[[Signal], int]) -> Variable:
    """Return what a name in a rewritten expression stands for.

    Args:
        name: A name that this module made.
        number: Signal -> its number in the program.
    """
    signal = signal_of(name)
    kind, _, field = name.removeprefix("@").partition(":" if name[:1] == "@" else ".")
    made = {"kind": kind, "signal": number(signal)} if signal is not None else {"kind": kind, "name": field}
    return msgspec.convert(made, Variable)


def type_of(name: str) -> Type:
    """Return the type of a variable."""
    if name == "context":
        return map_of(STRING, DYN)
    if name == UNKNOWN:
        return DYN
    root, _, field = name.partition(".")
    if root == "request":
        return REQUEST_FIELDS[field]
    if root == "stream":
        return STREAM_FIELDS[field]
    if root == "conversation":
        return CONVERSATION_FIELDS[field]
    kind = name.removeprefix("@").partition(":")[0]
    return {"given": BOOL, "fired": INT}.get(kind) or _SIGNAL_TYPES[kind]
