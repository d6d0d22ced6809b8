"""When a failed job is tried again. Pure."""

from __future__ import annotations

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Delays that double from one attempt to the next, with a random part so that jobs that failed together part."""

    first_s: float = 5.0
    longest_s: float = 600.0
    attempts: int = 5
    """A job that has failed so often is a dead letter."""


def retry_after(backoff: Backoff, attempt: int, draw: float) -> float | None:
    """Return the seconds until a job that has failed is tried again; None: never.

    Between half and the whole of the doubled delay, so that a delay is never next to nothing.

    Args:
        backoff: The delays.
        attempt: How often it has been tried, from 1.
        draw: Random, 0..1.
    """
    if attempt >= backoff.attempts:
        return None
    whole = min(backoff.longest_s, backoff.first_s * 2.0 ** min(attempt - 1, 64))
    return whole * (0.5 + 0.5 * draw)
