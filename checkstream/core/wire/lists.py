"""Lists of JSON as readers put them together: entries joined to one text, numbers that are bytes."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.steps import done

ANYWHERE = "*"
"""In a place: an entry of a list. Readers may join what its entries say."""
_LEAST_BYTES = 4
_BYTES_A_STEP = 32_768


def spelled_by(value: object) -> str | None:
    """Return the text that a list of numbers spells byte by byte, as log probabilities do; None for any other."""
    return done(spelling(value))


def spelling(value: object) -> Generator[None, None, str | None]:
    """Return what `spelled_by` returns, in steps."""
    if not isinstance(value, list) or len(value) < _LEAST_BYTES:
        return None
    spelled = bytearray()
    for at in range(0, len(value), _BYTES_A_STEP):
        try:
            spelled += bytes(value[at : at + _BYTES_A_STEP])
        except (TypeError, ValueError):
            return None
        if len(value) > at + _BYTES_A_STEP:
            yield
    return spelled.decode(errors="replace")
