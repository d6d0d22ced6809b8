"""What models may call in these tests, the forms that they are asked for, and what was run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

RAN: list[list[Any]] = []
"""Name and arguments of each tool that was run, in order."""


def pay(amount: int, card: str | None = None) -> str:
    """Pay an amount, from a card if one is given."""
    RAN.append(["pay", {"amount": amount, "card": card}])
    return f"paid {amount}"


def look_up(about: str) -> str:
    """Look something up."""
    RAN.append(["look_up", {"about": about}])
    return f"a page about {about}"


BY_NAME: dict[str, Callable[..., str]] = {"pay": pay, "look_up": look_up}

AS_JSON: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "pay",
            "description": "Pay an amount, from a card if one is given.",
            "parameters": {
                "type": "object",
                "properties": {"amount": {"type": "integer"}, "card": {"type": "string"}},
                "required": ["amount"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Look something up.",
            "parameters": {"type": "object", "properties": {"about": {"type": "string"}}, "required": ["about"]},
        },
    },
]


class Person(BaseModel):
    """A person of a directory."""

    name: str
    age: int
    city: str
