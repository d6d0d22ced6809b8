"""What stands in the messages of a request, for the triggers that spare what the caller already has."""

from __future__ import annotations

from collections.abc import Callable, Generator

from checkstream.core.exchange.meter import Meter
from checkstream.core.match.entities.canonical import keys
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.policy.program import Program
from checkstream.core.policy.spares import KnownValues, digest_of
from checkstream.core.terms import Finding
from checkstream.core.wire.surface import Request

MAX_KNOWN = 20_000
"""Keys of one request that are remembered; values beyond them are no longer spared."""
_KEYS_A_STEP = 16
_KEY_WORK = 30
"""Of what was found once, in the forms by which it is known."""
_SAID_IN = frozenset({"messages", "prompt", "documents", "checkstream"})
"""Fields whose texts are said by somebody; a setting is not."""


class _Search:
    """Reads one text for values."""

    def __init__(self, patterns: PatternSet) -> None:
        self._scan = Scan(patterns)

    def feed(self, text: str) -> list[Finding]:
        return self._scan.feed(text)

    def end(self) -> list[Finding]:
        return self._scan.end()

    def take_work(self) -> int:
        return self._scan.work.take()


def values_of(
    program: Program, request: Request, meter: Meter, degrade: Callable[[str], None]
) -> Generator[None, None, KnownValues]:
    """Return the values that the program's triggers may spare, as digests, by ingress channel; in steps.

    Each text is searched apart: what only two of them make together nobody has said.

    Args:
        program: The compiled policies.
        request: What was read.
        meter: Counts the work.
        degrade: Notes that there were too many.
    """
    found: dict[str, set[bytes]] = {}
    room = MAX_KNOWN
    for delta in request.unit.deltas if program.remembered else ():
        wanted = program.remembered.get(delta.channel.kind)
        if wanted is None or delta.path[0] not in _SAID_IN or room <= 0:
            continue
        patterns, names = wanted
        search = _Search(patterns)
        known = found.setdefault(delta.channel.kind, set())
        before = len(known)
        findings = yield from meter.feeding(search, delta.text)
        findings += search.end()
        meter.spend(search.take_work())
        for count, finding in enumerate(findings, 1):
            if count % _KEYS_A_STEP == 0:
                meter.spend(_KEYS_A_STEP * _KEY_WORK)
                yield
            name = names[finding.signal]
            said = keys(name, delta.text[finding.span.start : finding.span.end])
            known.update(digest_of(name, key) for key in said.known[: max(0, room - len(known) + before)])
        room -= len(known) - before
        if room <= 0:
            degrade("values_not_remembered")
        yield
    return {kind: frozenset(digests) for kind, digests in found.items()}
