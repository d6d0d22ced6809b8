"""One change of the tables."""

from __future__ import annotations

import msgspec


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One change; it is made whole or not at all."""

    number: int
    """From 1 on, without a gap."""
    name: str
    """For people."""
    statements: tuple[str, ...]
    """`{id}`: the number of a row, given by the database; `{int}`, `{real}`, `{bytes}`: types."""
