"""Masks a recorded exchange: specimens take the place of personal data and secrets before anything reaches a disk.

The exchange runs through a guard of its own, whose policy redacts every entity on every channel, so that all that
hides text from a guard (cuts, escapes, look-alikes, base64, parts of messages) is met as it is in an answer for a
caller. What stands outside of the channels (ids, names of callers, log probabilities) is masked string by string.
Then the result runs through again, until nothing of it changes and all that is found is a specimen.

INVARIANT: what can't be read is never kept (`UnmaskableError`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.terms import Stage, Unit
from checkstream.core.transcript import Line, Transcript
from checkstream.core.wire.answers.logprobs import SHADOWS
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.requests.fields import EXTENSION
from checkstream.core.wire.surface import Surface
from checkstream.errors import UnmaskableError, WireError
from checkstream.proxy.specimens import SPECIMENS
from checkstream.proxy.strings import Strings, read_object

_NO_CAP = 1 << 30
"""What the proxy took in was within its own limits."""
_MOST_PASSES = 4
_HARMLESS = frozenset(f"midstream:{place}{name}" for place in ("", "choice.") for name in SHADOWS)
"""What is not scanned, and taken out."""
_ENDS = frozenset({"complete", "upstream_failed", "downstream_closed", "drained"})
_BREAKS = (on.UpstreamFailed, on.DownstreamClosed, on.Draining)
"""Events at which the guard adds an error of its own, which no upstream has sent."""
_ALLOWED = "\n\n".join(SPECIMENS.values())
"""What may be found when all is masked: specimens, and parts of them that look like something else in their place."""


class Masker:
    """Masks exchanges. Holds nothing of them but the strings masked lately."""

    def __init__(self) -> None:
        """Compile the policy that redacts every entity."""
        program = _program()
        self._plan = Plan(
            program=program,
            fail_mode="closed",
            parts="refuse",
            prompt_chars=_NO_CAP,
            prompt_messages=_NO_CAP,
            event_bytes=_NO_CAP,
            answer_bytes=_NO_CAP,
            held_bytes=_NO_CAP,
            call_bytes=_NO_CAP,
            tells=False,  # its edits are nobody's verdicts
        )
        self._strings = Strings(program.scope(Stage.MIDSTREAM, "content").hold, program.signals)

    def mask(self, surface: Surface | Mcp, transcript: Transcript, asked: Mapping[int, do.Score]) -> Transcript:
        """Return the exchange with specimens in place of every entity.

        Args:
            surface: The API that the caller speaks.
            transcript: The exchange as it was.
            asked: Ticket -> what was asked of classifiers.

        Raises:
            UnmaskableError: something of it can't be read, or goes on finding what is no specimen; or it is of
                messages of tools.
        """
        if isinstance(surface, Mcp):
            raise UnmaskableError("messages of tools go both ways, and the masking guard reads answers")
        try:
            first = latest = self._pass(surface, transcript.lines)
            for _ in range(_MOST_PASSES):
                again = self._pass(surface, latest.lines, settled=True)
                if again.content == latest.content and all(text in _ALLOWED for text in again.found):
                    break
                latest = again
            else:
                raise UnmaskableError("masking does not come to an end")
        except (WireError, ValueError, RecursionError) as error:
            raise UnmaskableError(f"it can't be read: {type(error).__name__}") from error
        header = msgspec.structs.replace(
            transcript.header, masked=True, lost=tuple(sorted(first.detectors - again.detectors))
        )
        return Transcript(header=header, lines=tuple(_with_scores(latest, asked)))

    def _pass(self, surface: Surface, lines: Iterable[Line], *, settled: bool = False) -> _Pass:
        made = _Pass(surface, self._plan, self._strings, settled=settled)
        for line in lines:
            made.take(line)
            if made.record is not None:
                break
        made.end()
        return made


class _Pass:
    """One way of an exchange through the masking guard."""

    def __init__(self, surface: Surface, plan: Plan, strings: Strings, *, settled: bool) -> None:
        """Start before the request.

        Args:
            surface: The API that the caller speaks.
            plan: The masking policy.
            strings: Masks what stands outside of the channels.
            settled: An answer that broke off is all that there is of it: its last words wait for nothing more.
        """
        self.lines: list[Line] = []
        self.record: do.StreamRecord | None = None
        self.found: set[str] = set()
        """The texts of all that was found."""
        self.detectors: set[str] = set()
        self._surface = surface
        self._strings = strings
        self._guard = Guard(surface=surface, plan=plan, digest=str)  # the text itself: it is not kept
        self._decoder = surface.framing.decoder(_NO_CAP, surface.events)
        self._data = bytearray()
        self._settled = settled
        self._streaming = False
        self._texts: dict[tuple[object, ...], list[str]] = {}

    @property
    def content(self) -> tuple[list[on.AnyEvent], bytes]:
        """All that is kept, however the answer is cut."""
        data = b"".join(line.event.data for line in self.lines if isinstance(line.event, on.UpstreamBytes))
        return [line.event for line in self.lines if not isinstance(line.event, on.UpstreamBytes)], data

    @property
    def texts(self) -> list[str]:
        """What can be read in the masked exchange, channel by channel; the parts of a message both ways."""
        return [between.join(texts) for texts in self._texts.values() for between in ("", "\n")]

    def take(self, line: Line) -> None:
        """Take the next line of the recording."""
        event = line.event
        if isinstance(event, on.Scored | on.ScoringFailed | on.TimerFired):
            self.lines.append(line)
            return
        if isinstance(event, on.UpstreamOpened):
            self._streaming = event.streaming
        ends = isinstance(event, _BREAKS) and self._settled and self._streaming
        self._tell(on.UpstreamClosed() if ends else event, line.at)
        if isinstance(event, on.UpstreamFailed):
            self._keep(line.at, on.UpstreamFailed(event.kind))
        elif not isinstance(event, on.RequestReceived | on.UpstreamBytes):
            self._keep(line.at, event)

    def end(self) -> None:
        """See whether all was read.

        Raises:
            UnmaskableError: something was not, or had to be ended.
        """
        if self.record is None:  # the policy in force cut the upstream off; what is still held may be half of something
            last = self.lines[-1].at if self.lines else 0.0
            self._tell(on.UpstreamClosed() if self._settled and self._streaming else on.DownstreamClosed(), last)
        _refuse_unread([line.event for line in self.lines], self.record)
        for finding in self.record.findings if self.record is not None else ():
            self.found.add(finding.digest)
            self.detectors.add(finding.detector)

    def _tell(self, event: on.AnyEvent, at: float) -> None:
        """Tell the guard what happened, and keep what it lets go."""
        told = event
        if isinstance(event, on.RequestReceived):  # what it can't edit is masked string by string
            told = msgspec.structs.replace(event, envelope=on.Envelope())
        for command in self._guard.receive(told, at):
            match command:
                case do.ForwardRequest(body) if isinstance(event, on.RequestReceived):
                    self._keep(at, self._request(body, event))
                case do.SendDownstream(data) if not isinstance(event, _BREAKS):
                    self._take_events(data, ended=isinstance(event, on.UpstreamClosed))
                case do.Reply(_, body) if isinstance(event, on.UpstreamClosed):
                    self._take_whole(body)
                case do.Record(record):
                    self.record = record
                case _:
                    pass
        if self._data:
            self._keep(at, on.UpstreamBytes(bytes(self._data)))
            self._data.clear()

    def _keep(self, at: float, event: on.AnyEvent) -> None:
        self.lines.append(Line(at=at, event=event))

    def _request(self, masked: bytes, event: on.RequestReceived) -> on.RequestReceived:
        """Return the request: its texts as the guard has masked them, the rest of it masked string by string."""
        strings = self._strings
        unit = self._surface.read_request(masked).unit
        body = strings.body(masked, unit)
        own = read_object(event.body).get(EXTENSION)
        if own is not None:
            body[EXTENSION] = strings.value(own, frozenset())
        context = None
        if event.context is not None:
            context = json.dumps(strings.value(json.loads(event.context), frozenset()))
        for delta in unit.deltas:
            self._texts.setdefault(("prompt", delta.channel.kind, delta.channel.choice), []).append(delta.text)
        caller = None if event.caller is None else strings.text(event.caller)
        said = tuple(msgspec.structs.replace(each, text=strings.text(each.text)) for each in event.envelope.said)
        return on.RequestReceived(
            json.dumps(body).encode(),
            caller,
            context,
            event.confirmed,
            envelope=on.Envelope(said),
            conversation=None if event.conversation is None else strings.text(event.conversation),
            known=json.dumps(strings.value(json.loads(event.known), frozenset())) if event.known else "",
        )

    def _take_events(self, data: bytes, *, ended: bool) -> None:
        for frame in self._decoder.decode(data):
            unit = self._surface.read_event(frame)
            if ended and unit.failure is not None:
                continue  # the guard says that the answer is not over: that is not of the recording
            self._data += self._surface.framing.out(self._strings.event(frame, unit))
            self._read(unit)

    def _take_whole(self, body: bytes) -> None:
        unit = self._surface.read_whole(body)
        self._data += json.dumps(self._strings.body(body, unit)).encode()
        self._read(unit)

    def _read(self, unit: Unit) -> None:
        for delta in unit.deltas:
            self._texts.setdefault(("answer", delta.channel), []).append(delta.text)


def _program() -> Program:
    """Return the policy that redacts every entity."""
    rules = [
        {
            "name": entity,
            "id": entity,
            "stage": ["ingress", "midstream"],
            "entities": [entity],
            "actions": [{"type": "redact", "text": specimen}],
        }
        for entity, specimen in SPECIMENS.items()
    ]
    pack = {"pack": {"name": "masking", "version": "1.0.0"}, "policies": rules}
    return compile_sources([("masking", msgspec.json.encode(pack))], ())


def _refuse_unread(kept: list[on.AnyEvent], record: do.StreamRecord | None) -> None:
    """Refuse what the guard let through unread, or had to end.

    Raises:
        UnmaskableError: something was not read.
    """
    opened = [event for event in kept if isinstance(event, on.UpstreamOpened)]
    if not any(isinstance(event, on.RequestReceived) for event in kept):
        raise UnmaskableError("the request can't be read")
    if len(opened) > 1:
        raise UnmaskableError("its answer was continued by a second one")
    if any(event.status >= 400 for event in opened):
        raise UnmaskableError("the upstream's error is not read")
    if record is None or record.outcome not in _ENDS or record.action not in ("allow", "redact"):
        raise UnmaskableError("it can't be masked in its place")
    if any(name not in _HARMLESS for name in record.unscanned):
        raise UnmaskableError("parts of it are not read")
    if "part_dropped" in record.degradations:
        raise UnmaskableError("parts of it are dropped")
    if "findings_not_listed" in record.degradations:
        raise UnmaskableError("more is found in it than can be checked")


def _with_scores(masked: _Pass, asked: Mapping[int, do.Score]) -> Iterable[Line]:
    """Yield the masked lines; of answers to checks only those about texts in which nothing was masked."""
    texts = masked.texts
    known = {ticket for ticket, score in asked.items() if any(score.text in text for text in texts)}
    for line in masked.lines:
        if not isinstance(line.event, on.Scored | on.ScoringFailed) or line.event.ticket in known:
            yield line
