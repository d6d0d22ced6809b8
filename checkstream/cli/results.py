"""Results on standard output, for people and for programs."""

from __future__ import annotations

import json
import sys

import msgspec


def write_json(value: object) -> None:
    """Print a value as one line of JSON."""
    try:
        line = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # the name of a file need not be UTF-8
        line = json.dumps(msgspec.to_builtins(value), separators=(",", ":"))
    sys.stdout.write(line + "\n")


def counted(count: int, what: str) -> str:
    """Return a number of things in words: `1 fault`, `2 faults`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def safe(text: str) -> str:
    """Return text in which nothing can steer a terminal: what is shown has come from outside."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
