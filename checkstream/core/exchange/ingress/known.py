"""What stands in the messages of a request, for the triggers that spare what the caller already has."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

from checkstream.core.exchange.ingress.mentions import Mentions
from checkstream.core.exchange.meter import Meter
from checkstream.core.exchange.quiet import MOST_FINDINGS, Quiet
from checkstream.core.match import names
from checkstream.core.match.entities.canonical import keys
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import scanning
from checkstream.core.policy.program import Program
from checkstream.core.policy.spares import digest_of
from checkstream.core.terms import Delta, Finding, Told
from checkstream.core.wire.surface import Request

MAX_KNOWN = 20_000
"""Keys of one request that are remembered; values beyond them are no longer spared."""
MAX_WORD_CHARS = 131_072
"""Of the words of one request that are remembered: a name is looked for in all of them in less than a millisecond."""
_WORD_WORK = 0.15
"""Of a character that is read for its words, and of one of those."""
_TEXTS_A_STEP, _TEXTS_WORK = 2048, 200
_LOOKED_UP_A_STEP = 256
"""Texts that were looked through before."""
_KEYS_A_STEP = 16
_HEARD_WORK = 6
"""Of the digest of a word."""
_KEY_WORK = 30
"""Of what was found once, in the forms by which it is known."""
_SAID_IN = frozenset({"messages", "prompt", "input", "system", "instructions", "documents", "checkstream"})
"""Fields whose texts are said by somebody; a setting is not."""


class Search:
    """Reads one text for values."""

    def __init__(self, patterns: PatternSet, *, late: bool = False) -> None:
        """Begin with no text; `late`: nobody asks what is `live`."""
        self._scan = scanning(patterns, late=late)

    @property
    def ahead(self) -> int:
        """How many characters can be read at once (see `Scan.ahead`)."""
        return self._scan.ahead

    @property
    def live(self) -> int:
        """Oldest place from which something could still be found."""
        return self._scan.live

    def feed(self, text: str) -> list[Finding]:
        """Read on; return what is decided."""
        return self._scan.feed(text)

    def end(self) -> list[Finding]:
        """Decide all."""
        return self._scan.end()

    def take_work(self) -> int:
        """Return what was spent since the last time."""
        return self._scan.work.take()


def told_of(
    program: Program,
    request: Request,
    meter: Meter,
    degrade: Callable[[str], None],
    quiet: Quiet | None = None,
    *,
    mentions: Mentions | None = None,
) -> Generator[None, None, Told]:
    """Return what stands in the request and the program's triggers may spare, by ingress channel; in steps.

    Each text is searched apart: what only two of them make together nobody has said.

    Args:
        program: The compiled policies.
        request: What was read.
        meter: Counts the work.
        degrade: Notes that there was too much.
        quiet: What was found in texts before; None: nobody remembers.
        mentions: Takes what later requests don't say again, and has what earlier ones said; None: nobody asks.
    """
    mentions = mentions or Mentions(program, str)
    said: list[Delta] = []
    for at in range(0, len(request.unit.deltas), _TEXTS_A_STEP):
        if at:
            meter.spend(_TEXTS_WORK)
            yield
        said += (delta for delta in request.unit.deltas[at : at + _TEXTS_A_STEP] if delta.path[0] in _SAID_IN)
    values = yield from _values(program, said, meter, degrade, quiet, mentions=mentions)
    words = yield from _words(program, said, meter, degrade, mentions)
    return mentions.joined(Told(values=values, words=words, key=mentions.key))


def _values(
    program: Program,
    said: Sequence[Delta],
    meter: Meter,
    degrade: Callable[[str], None],
    quiet: Quiet | None,
    *,
    mentions: Mentions,
) -> Generator[None, None, Mapping[str, frozenset[bytes]]]:
    """Return what validators find, as digests, so that nothing of it is written out by being remembered."""
    found: dict[str, set[bytes]] = {}
    room = MAX_KNOWN
    for count, delta in enumerate(said if program.remembered else (), 1):
        if count % _LOOKED_UP_A_STEP == 0:
            meter.spend(_TEXTS_WORK)
            yield
        wanted = program.remembered.get(delta.channel.kind)
        if wanted is None or room <= 0:
            continue
        kind = f"value:{delta.channel.kind}"
        before = None if quiet is None else quiet.found(kind, delta.text)
        if before == ():
            continue
        patterns, entities = wanted
        search = Search(patterns, late=True)
        known = found.setdefault(delta.channel.kind, set())
        held = len(known)
        findings = list(before[0]) if before else (yield from _searched(search, delta.text, meter))
        if quiet is not None and before is None and len(findings) <= MOST_FINDINGS:
            quiet.keep(kind, delta.text, (tuple(findings),) if findings else ())
        findings.reverse()
        while findings:
            finding = findings.pop()  # freed here: thousands at once take long
            if len(findings) % _KEYS_A_STEP == 0:
                meter.spend(_KEYS_A_STEP * _KEY_WORK)
                yield
            name = entities[finding.signal]
            each = keys(name, delta.text[finding.span.start : finding.span.end])
            digests = [digest_of(name, key, mentions.key) for key in each.known[: max(0, room - len(known) + held)]]
            known.update(digests)
            if mentions.takes(delta):
                mentions.take(delta.channel.kind, digests)
        room -= len(known) - held
        if room <= 0:
            degrade("values_not_remembered")
        yield
    return {kind: frozenset(digests) for kind, digests in found.items()}


def _searched(search: Search, text: str, meter: Meter) -> Generator[None, None, list[Finding]]:
    found = yield from meter.feeding(search, text)
    found += search.end()
    meter.spend(search.take_work())
    return found


def _words(
    program: Program, said: Sequence[Delta], meter: Meter, degrade: Callable[[str], None], mentions: Mentions
) -> Generator[None, None, Mapping[str, str]]:
    """Return the words of texts, among which what models find is looked for."""
    found: dict[str, list[str]] = {}
    room = MAX_WORD_CHARS
    for delta in said if program.worded else ():
        if delta.channel.kind not in program.worded:
            continue
        known = found.setdefault(delta.channel.kind, [])
        takes = mentions.takes(delta)
        for piece in names.pieces(delta.text):
            if room <= 0:
                break
            words = names.words_of(piece)
            known.append(words)
            room -= len(words) + 1
            meter.spend(int((len(piece) + len(words)) * _WORD_WORK) + 1)
            yield
            for count in mentions.hear(delta.channel.kind, words) if takes else ():
                meter.spend(count * _HEARD_WORK)
                yield
        known.append(names.APART)
        if takes:
            mentions.part(delta.channel.kind)
    if room <= 0:
        degrade("values_not_remembered")
    return {kind: names.told(known) for kind, known in found.items()}
