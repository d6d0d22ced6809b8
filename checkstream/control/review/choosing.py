"""Which findings people look at. Pure; the draw is a digest of what is drawn, so it can be made again by anybody."""

from __future__ import annotations

import hashlib

_WHOLE = 1 << 64


def drawn(stream: str, rule: str, share: float) -> bool:
    """Tell whether a finding is looked at.

    A larger share keeps all that a smaller one has drawn.

    Args:
        stream: The exchange.
        rule: The rule that fired in it.
        share: Of the rule's findings, 0..1.
    """
    digest = hashlib.sha256(f"{len(stream)}:{stream}:{rule}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * _WHOLE


def share_of(expected: float, wanted: float) -> float:
    """Return the share of a rule's findings that is drawn.

    A rule that fires rarely is looked at whole, and one that fires a thousand times a day is not a thousand times the
    work: each rule gets its own share.

    Args:
        expected: How many findings the rule has a day, as it had of late; 0 where that is not known.
        wanted: How many of them people can look at.
    """
    return 1.0 if expected <= wanted else wanted / expected
