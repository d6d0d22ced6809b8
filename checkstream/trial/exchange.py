"""One exchange through a real guard, without a network: events in, commands carried out at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import msgspec

from checkstream.core.commands import (
    AnyCommand,
    CancelUpstream,
    CloseDownstream,
    ForwardRequest,
    Recall,
    Record,
    Reply,
    Score,
    SendDownstream,
    StreamRecord,
)
from checkstream.core.conversation import Conversation
from checkstream.core.events import AnyEvent, Recalled
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.midstream.extras import place_of
from checkstream.core.exchange.plan import Plan
from checkstream.core.steps import done
from checkstream.core.wire.json_text import strict
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.errors import WireError

Answers = Callable[[Score], AnyEvent | None]
"""Answers what is asked of classifiers; None: an event that is yet to come does."""

_EVENT_BYTES = 1 << 30


class Came(msgspec.Struct, kw_only=True):
    """What an exchange has come to so far."""

    forwarded: list[bytes] = msgspec.field(default_factory=list)
    """Bodies that the upstream got: more than one when it was asked to go on with its answer."""
    reply: Reply | None = None
    sent: list[bytes] = msgspec.field(default_factory=list)
    closed: bool = False
    cancelled: bool = False
    """The upstream's connection was closed, and not opened again."""
    record: StreamRecord | None = None

    @property
    def status(self) -> int:
        """Of the response: a stream has 200."""
        return self.reply.status if self.reply is not None else 200


class Exchange:
    """Feeds a guard and carries its commands out; scores are answered before the next event."""

    def __init__(
        self, surface: Surface | Mcp, plan: Plan, answers: Answers, conversation: Conversation | None = None
    ) -> None:
        """Start before the request; `conversation`: what earlier requests came to."""
        self._guard = machine_for(surface, plan, digest)
        self._answers = answers
        self._conversation = conversation
        self.came = Came()

    def send(self, event: AnyEvent, at: float) -> None:
        """Tell the guard what has happened at `at` (seconds)."""
        pending: list[AnyEvent] = [event]
        while pending:
            for command in self._guard.receive(pending.pop(0), at):
                if isinstance(command, Score):
                    answer = self._answers(command)
                    pending += [answer] if answer is not None else []
                elif isinstance(command, Recall) and self._conversation is not None:
                    pending.append(Recalled(self._conversation))
                else:
                    self._carry_out(command)

    def _carry_out(self, command: AnyCommand) -> None:
        came = self.came
        match command:
            case ForwardRequest(body):
                came.forwarded.append(body)
                came.cancelled = False
            case Reply():
                came.reply = command
            case SendDownstream(data):
                came.sent.append(data)
            case CloseDownstream():
                came.closed = True
            case CancelUpstream():
                came.cancelled = True
            case Record(record):
                came.record = record
            case _:
                pass

    @property
    def over(self) -> bool:
        """Nothing that the upstream still sends is wanted."""
        return self.came.cancelled or self.came.record is not None


def digest(text: str) -> str:
    """Return a digest without a key: what is recorded here is shown, not kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_texts(surface: Surface | Mcp, came: Came) -> Mapping[str, str]:
    """Return what the caller reads: `content/0/0` (kind, choice, index) -> text; `error` -> an error's message.

    Of messages: `0/result.content[0].text` (which message, place in it) -> text.
    """
    if isinstance(surface, Mcp):
        return _read_messages(surface, came)
    units = []
    texts: dict[str, str] = {}
    places: dict[int, dict[Path, int]] = {}
    try:
        if came.reply is not None:
            units = [surface.read_whole(came.reply.body)]
        else:
            decoder = surface.framing.decoder(_EVENT_BYTES, surface.events)
            frames = [*decoder.decode(b"".join(came.sent)), *decoder.flush()]
            units = [surface.read_event(frame) for frame in frames]
    except WireError as error:
        texts["error"] = str(error)
    for unit in units:
        if unit.failure is not None:
            texts["error"] = unit.failure
        for delta in unit.deltas:
            name = f"{delta.channel.kind}/{delta.channel.choice}/{delta.channel.index}"
            texts[name] = texts.get(name, "") + delta.text
        for extra in unit.extras:
            if extra.joins and extra.again == "read" and not (extra.part or extra.word):
                known = places.setdefault(extra.choice, {})
                number = known.setdefault(place_of(extra.place or extra.path), len(known))
                name = f"extra/{extra.choice}/{number}"
                texts[name] = texts.get(name, "") + extra.text
    return dict(sorted(texts.items()))


def _read_messages(surface: Mcp, came: Came) -> Mapping[str, str]:
    bodies = [came.reply.body] if came.reply is not None and came.reply.body else []
    decoder = surface.framing.decoder(_EVENT_BYTES, surface.events)
    frames = [*decoder.decode(b"".join(came.sent)), *decoder.flush()]
    texts: dict[str, str] = {}
    for number, body in enumerate(bodies + [frame.data for frame in frames if frame.data]):
        try:
            unit = done(surface.errors.reading_request(body)).unit
        except WireError as error:
            texts[f"{number}/error"] = str(error)
            continue
        for delta in unit.deltas:
            texts[f"{number}/{strict.place_of(delta.path)}"] = delta.text
    return texts
