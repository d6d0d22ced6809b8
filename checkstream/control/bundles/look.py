"""What one look for a newer bundle came to, as `checkstream bundle follow --json` says it."""

from __future__ import annotations

import msgspec


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one look for a newer bundle came to."""

    outcome: str
    """`same`, `accepted`, `refused` or `unreachable`."""
    bundle: str
    version: str = ""
    digest: str = ""
    reason: str = ""
    """Why it is not accepted."""
