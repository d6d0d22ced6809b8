"""Runs one exchange through a `Guard` without a shell: a test says how bytes are cut and what classifiers answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from checkstream.core.commands import (
    AnyCommand,
    CancelUpstream,
    CloseDownstream,
    ForwardRequest,
    Record,
    Reply,
    Score,
    SendDownstream,
    StreamRecord,
    Yield,
)
from checkstream.core.events import (
    AnyEvent,
    EntityFound,
    RequestReceived,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.toolbook import Pins
from checkstream.core.policy.compile import compile_policies
from checkstream.core.policy.program import Program
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface

Scorer = Callable[[Score], AnyEvent]


def digest(text: str) -> str:
    """Stand-in for the keyed digest."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def constant(value: float, label: str = "lexicon.toxicity") -> Scorer:
    """Answer every score request with one value for one label."""
    return lambda score: Scored(score.ticket, {label: value})


def by_words(label: str, words: Iterable[str], hit: float = 0.99) -> Scorer:
    """Answer with `hit` when one of the words stands in the window, else 0."""
    known = tuple(words)

    def score(request: Score) -> AnyEvent:
        return Scored(request.ticket, {label: hit if any(word in request.text for word in known) else 0.0})

    return score


def capitalised(request: Score) -> AnyEvent:
    """Call each run of capitalised words a person, and each word in capitals a place; be calm otherwise."""
    spans = [(*found.span(), "PERSON") for found in _NAME.finditer(request.text)]
    spans += [(*found.span(), "LOCATION") for found in _PLACE.finditer(request.text)]
    entities = tuple(EntityFound(name, start, end, 0.9) for start, end, name in sorted(spans))
    return Scored(request.ticket, {"lexicon.toxicity": 0.99 if "idiot" in request.text else 0.0}, entities)


_NAME = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_PLACE = re.compile(r"[A-Z]{2,}")


class Played(msgspec.Struct):
    """What an exchange came to."""

    forwarded: bytes | None = None
    reply: Reply | None = None
    sent: list[bytes] = msgspec.field(default_factory=list)
    closed: bool = False
    cancelled: bool = False
    record: StreamRecord | None = None
    commands: list[AnyCommand] = msgspec.field(default_factory=list)

    @property
    def joined(self) -> bytes:
        return b"".join(self.sent)


class Exchange:
    """Feeds a guard and carries out its commands at once; scores are answered before the next event."""

    def __init__(
        self, surface: Surface | Mcp, plan: Plan, scorer: Scorer | None = None, tools: Pins | None = None
    ) -> None:
        self.guard: Any = machine_for(surface, plan, digest, tools=tools)  # laws look inside
        self.scorer = scorer
        self.now = 100.0
        self.out = Played()
        self.unanswered: list[Score] = []

    def send(self, event: AnyEvent) -> None:
        commands = self.guard.receive(event, self.now)
        for command in commands:
            self._carry_out(command)
        while self.scorer is not None and self.unanswered:
            self.send(self.scorer(self.unanswered.pop(0)))

    def _carry_out(self, command: AnyCommand) -> None:
        out = self.out
        assert out.record is None or isinstance(command, Yield), f"{command} after the record"
        out.commands.append(command)
        match command:
            case ForwardRequest():
                out.forwarded = command.body
            case Reply():
                assert out.reply is None
                out.reply = command
            case SendDownstream():
                assert not out.closed
                out.sent.append(command.data)
            case CloseDownstream():
                out.closed = True
            case CancelUpstream():
                out.cancelled = True
            case Record():
                out.record = command.record
            case Score():
                self.unanswered.append(command)
            case _:
                pass


def play(
    surface: Surface | Mcp,
    plan: Plan,
    request: bytes,
    pieces: Sequence[bytes],
    *,
    streaming: bool = True,
    status: int = 200,
    scorer: Scorer | None = None,
    method: str = "POST",
) -> Played:
    """Run one exchange whose upstream answers `pieces` and then closes."""
    exchange = Exchange(surface, plan, scorer)
    exchange.send(RequestReceived(request, method=method))
    if exchange.out.forwarded is None:
        return exchange.out
    exchange.send(UpstreamOpened(status, streaming))
    for piece in pieces:
        if exchange.out.cancelled:
            break
        exchange.send(UpstreamBytes(piece))
    if not exchange.out.cancelled:
        exchange.send(UpstreamClosed())
    return exchange.out


__all__ = ["Exchange", "Played", "Program", "by_words", "capitalised", "compile_policies", "constant", "digest", "play"]
