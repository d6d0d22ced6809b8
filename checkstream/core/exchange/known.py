"""What stands in the messages of a request, for the triggers that spare what the caller already has."""

from __future__ import annotations

from collections.abc import Callable

from checkstream.core.match.entities.canonical import keys
from checkstream.core.match.scan import Scan
from checkstream.core.policy.program import Program
from checkstream.core.policy.spares import KnownValues, digest_of
from checkstream.core.wire.surface import Request

MAX_KNOWN = 20_000
"""Keys of one request that are remembered; values beyond them are no longer spared."""
_SAID_IN = frozenset({"messages", "prompt", "documents", "checkstream"})
"""Fields whose texts are said by somebody; a setting is not."""


def values_of(program: Program, request: Request, degrade: Callable[[str], None]) -> KnownValues:
    """Return the values that the program's triggers may spare, as digests, by ingress channel.

    Each text is searched apart: what only two of them make together nobody has said.

    Args:
        program: The compiled policies.
        request: What was read.
        degrade: Notes that there were too many.
    """
    if not program.remembered:
        return {}
    found: dict[str, set[bytes]] = {}
    room = MAX_KNOWN
    for delta in request.unit.deltas:
        wanted = program.remembered.get(delta.channel.kind)
        if wanted is None or delta.path[0] not in _SAID_IN:
            continue
        patterns, names = wanted
        scan = Scan(patterns)
        known = found.setdefault(delta.channel.kind, set())
        for finding in (*scan.feed(delta.text), *scan.end()):
            name, before = names[finding.signal], len(known)
            said = keys(name, delta.text[finding.span.start : finding.span.end])
            known.update(digest_of(name, key) for key in said.known)
            room -= len(known) - before
            if room <= 0:
                degrade("values_not_remembered")
                return {kind: frozenset(digests) for kind, digests in found.items()}
    return {kind: frozenset(digests) for kind, digests in found.items()}
