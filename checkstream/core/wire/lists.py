"""Lists of JSON as readers put them together: entries joined to one text, numbers that are bytes."""

from __future__ import annotations

ANYWHERE = "*"
"""In a place: an entry of a list. Readers may join what its entries say."""
_LEAST_BYTES = 4
_MOST_BYTE = 255


def spelled_by(value: object) -> str | None:
    """Return the text that a list of numbers spells byte by byte, as log probabilities do; None for any other."""
    if not isinstance(value, list) or len(value) < _LEAST_BYTES:
        return None
    entries: list[object] = value
    spelled = bytearray()
    for byte in entries:
        if not isinstance(byte, int) or not 0 <= byte <= _MOST_BYTE:
            return None
        spelled.append(byte)
    return spelled.decode(errors="replace")
