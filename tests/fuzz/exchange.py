"""A whole exchange under hostile bytes and hostile timing: what must hold of every guard, whatever the upstream sends.

The first two bytes of the input choose the surface, the plan, and the dice for cuts and for what happens between
them (timers, scores, failures, leaving callers); all others are the upstream's body.
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.exchange.plan import Assessing
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.surface import Frame, Surface
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import WireError
from tests.playbook import digest
from tests.sse_clients import ONE_FORM

CHAT = SURFACES["openai.chat"]
COMPLETIONS = SURFACES["openai.completions"]
MESSAGES = SURFACES["anthropic.messages"]
RESPONSES = SURFACES["openai.responses"]
SECRET = re.compile("code-[0-9]{2}")
"""What the policy below never lets out."""
POLICY = """
pack: {name: fuzz, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}
  - name: code
    id: PAT-1
    stage: [midstream]
    patterns: [{name: code, regex: 'code-[0-9]{2,6}'}]
    actions: [{type: redact, text: "<cut>"}]
  - {name: stop, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Stopped.}]}
  - name: fca
    id: FCA-1
    stage: [midstream]
    channels: [content]
    phrases: [guaranteed]
    actions: [{type: inject_disclaimer, text: Capital at risk., position: end}]
"""
TOXIC = """
  - name: toxic
    id: TOX-1
    stage: [midstream]
    classifiers: [{name: lexicon.toxicity, threshold: 0.8}]
    actions: [{type: stop, message: Stopped.}]
  - {name: people, id: PER-1, stage: [midstream], entities: [PERSON], actions: [{type: redact}]}
"""
REQUESTS = {
    CHAT.name: b'{"model":"m","stream":true,"stream_options":{"include_usage":true},"n":2,'
    b'"messages":[{"role":"user","content":"hi"}]}',
    COMPLETIONS.name: b'{"model":"m","stream":true,"n":2,"prompt":"hi"}',
    RESPONSES.name: b'{"model":"m","stream":true,"input":"hi"}',
    MESSAGES.name: b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}',
}
EVENT_BYTES = 4096
HELD_BYTES = 2048
ANSWER_BYTES = 16_384
SPREAD = 16
"""An answer may grow by this much at most: labels, disclaimers and error events are short."""


@functools.cache
def program(*, classified: bool) -> Program:
    """Return the policy above, compiled once; with a classifier on every channel, or without."""
    known = (ClassifierLabel("lexicon.toxicity"), ModelEntity("PERSON", "ner", 0.5))
    return compile_sources([("fuzz.yaml", POLICY + TOXIC if classified else POLICY)], known)


def run_exchange(data: bytes) -> None:
    """Run one exchange and check every promise that needs no knowledge of what the bytes mean."""
    if len(data) < 2:
        return
    shell = Shell(data[0], random.Random(data[1]))
    shell.run(data[2:])
    shell.check(len(data))


def run_cuts(data: bytes) -> None:
    """Check that neither the cut of the bytes nor its absence is ever seen: texts, verdicts and end are equal.

    Where an event can't be edited, how far decisions had come behind it depends on the cut; nothing of it is sent.
    """
    if len(data) < 2:
        return
    whole, cut = (Shell(data[0] & 0b11010111, random.Random(data[1]), calm=True, cut=cut) for cut in (False, True))
    for shell in (whole, cut):
        shell.run(data[2:])
        shell.check(len(data))
    assert whole.record is not None
    assert cut.record is not None
    assert whole.record.outcome == cut.record.outcome
    if b"can't be edited" in whole.sent and b"can't be edited" in cut.sent:
        return
    assert whole.text() == cut.text()
    assert whole.record.verdicts == cut.record.verdicts


ON_THE_WAY = (
    "choices",
    "delta",
    "content",
    "text",
    "refusal",
    "reasoning_content",
    "tool_calls",
    "arguments",
    "message",
)


def _single(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    assert all(names.count(name) <= 1 for name in ON_THE_WAY)
    return dict(pairs)


class Shell:
    """Carries out commands as the proxy does, and asserts that they come in an order that can be carried out."""

    def __init__(self, options: int, dice: random.Random, *, calm: bool = False, cut: bool = True) -> None:
        older = COMPLETIONS if options & 1 else CHAT
        self.surface: Surface = RESPONSES if options & 128 else MESSAGES if options & 64 else older
        self.streaming = not options & 2
        self.closed_mode = not options & 4
        self.classified = bool(options & 8)
        roomy = 1 << 24
        self.plan = Plan(
            program=program(classified=self.classified),
            hold=HoldSettings(),
            fail_mode="closed" if self.closed_mode else "open",
            event_bytes=EVENT_BYTES,
            held_bytes=roomy if calm else HELD_BYTES,
            answer_bytes=roomy if calm else ANSWER_BYTES,
            assessing=Assessing(always=bool(options & 16), block=50.0 if options & 32 and not calm else None),
            scored_chars=4000 if options & 16 else 0,
        )
        self.guard: Any = Guard(surface=self.surface, plan=self.plan, digest=digest)  # laws look inside
        self.dice = dice
        self.calm = calm
        self.cut = cut
        self.now = 5.0
        self.asked: list[do.Score] = []
        self.assess: do.Assess | None = None
        self.assessed = False
        self.put: do.Enqueue | None = None
        self.sent = b""
        self.started = self.ended = self.cancelled = self.paused = self.left = False
        self.reply: do.Reply | None = None
        self.record: do.StreamRecord | None = None
        self.forwarded: bytes | None = None

    def run(self, body: bytes) -> None:
        """Play the exchange to its end."""
        self.begin()
        assert self.forwarded is not None, "a harmless prompt was not forwarded"
        if not self.calm:
            self.disturb()
        self.receive(on.UpstreamOpened(200, self.streaming))
        for piece in self.pieces(body):
            while self.paused and self.asked:
                self.answer()
            if self.cancelled or self.record is not None:
                break
            self.receive(on.UpstreamBytes(piece))
            self.check_caps(len(piece))
            if not self.calm:
                self.disturb()
        if not self.cancelled:
            self.receive(on.UpstreamClosed())
        while self.asked:
            self.answer()
        if self.record is None and self.assess is not None:
            self.tell()

    def begin(self) -> None:
        """Ask."""
        self.receive(on.RequestReceived(REQUESTS[self.surface.name]))

    def tell(self) -> None:
        """Answer what evidence is asked, not always well."""
        self.assessed = True
        failed = ("watchdog",) if not self.calm and self.dice.random() < 0.3 else ()
        risks = {} if failed else {"watchdog": self.dice.choice((0.0, 49.9, 50.0, 100.0))}
        self.receive(on.Assessed({"risk": msgspec.Raw(b'{"claims": []}')}, risks, failed))

    def pieces(self, body: bytes) -> list[bytes]:
        """Cut the body as the dice say: by bytes, small pieces, or large ones."""
        if not self.cut:
            return [body]
        most = self.dice.choice((1, 7, 60, 900)) if len(body) < 1500 else self.dice.choice((60, 900))
        found, at = [], 0
        while at < len(body):
            size = self.dice.randint(1, most)
            found.append(body[at : at + size])
            at += size
        return found

    def disturb(self) -> None:  # noqa: C901 - one arm for each thing that happens
        """Let something happen between two reads, mostly nothing."""
        self.now += self.dice.choice((0.0, 0.001, 0.3, 20.0))
        match self.dice.randrange(24):
            case 0:
                self.receive(on.TimerFired("stall"))
            case 1:
                self.receive(on.TimerFired("keepalive"))
            case 2:
                self.receive(on.Scored(self.dice.choice((-1, 0, 1, 999)), {"lexicon.toxicity": 1.0}))
            case 3:
                self.receive(on.RequestReceived(b"{}"))
            case 4:
                self.receive(on.UpstreamOpened(500, streaming=False))
            case 5 if self.dice.random() < 0.1:
                self.receive(on.Draining())
            case 6 if self.dice.random() < 0.1:
                self.cancelled = True
                self.receive(on.UpstreamFailed(self.dice.choice(("idle", "reset"))))
            case 7 if self.dice.random() < 0.1:
                self.left = True
                self.receive(on.DownstreamClosed())
            case 8 | 9 | 10 | 11 if self.asked:
                self.answer()
            case 12 if self.assess is None or not self.assessed:
                self.tell()
            case _:
                pass

    def answer(self) -> None:
        """Answer one score request, not always the oldest, not always well."""
        asked = self.asked.pop(self.dice.randrange(len(self.asked)))
        if self.dice.random() < 0.02:
            self.receive(on.ScoringFailed(asked.ticket, self.dice.choice(("deadline", "crash", "garbage", "overload"))))
        elif self.dice.random() < 0.02:
            self.receive(on.Scored(asked.ticket, {}))
        else:
            scores = {"lexicon.toxicity": 0.99 if "idiot" in asked.text else 0.0}
            self.receive(on.Scored(asked.ticket, scores, tuple(self.entities(len(asked.text)))))

    def entities(self, size: int) -> Iterator[on.EntityFound]:
        """Yield spans that are anywhere in a window, or beyond it, and seldom any."""
        while self.dice.random() < 0.1:
            start = self.dice.randrange(max(size, 1))
            yield on.EntityFound("PERSON", start, start + self.dice.randint(1, 40), self.dice.choice((0.9, 0.2, 7.0)))

    def receive(self, event: on.AnyEvent) -> None:
        """Give the guard an event and carry out what it asks."""
        for command in self.guard.receive(event, self.now):
            self.carry_out(command)

    def carry_out(self, command: do.AnyCommand) -> None:  # noqa: C901, PLR0912 - one arm for each command
        """Note a command; assert that its time is right."""
        assert self.record is None, f"{type(command).__name__} after the record"
        match command:
            case do.ForwardRequest(body):
                assert self.forwarded is None
                self.forwarded = body
            case do.StartStream():
                assert not self.started
                assert self.reply is None
                self.started = True
            case do.SendDownstream(data):
                assert self.started
                assert not self.ended
                assert data
                self.sent += data
            case do.CloseDownstream():
                assert self.started
                assert not self.ended
                self.ended = True
            case do.Reply():
                assert not self.started
                assert self.reply is None
                self.reply = command
            case do.CancelUpstream():
                assert not self.cancelled
                self.cancelled = True
            case do.PauseUpstream():
                assert not self.paused
                self.paused = True
            case do.ResumeUpstream():
                assert self.paused
                self.paused = False
            case do.Score():
                self.asked.append(command)
            case do.Assess():
                assert self.assess is None
                self.assess = command
            case do.Enqueue():
                assert self.put is None
                self.put = command
            case do.Record(record):
                self.record = record
            case _:
                pass

    def check_caps(self, piece: int) -> None:
        """Assert that no more is held than the plan says and one read can add (G22)."""
        if self.record is not None:
            return
        assert self.guard._incoming._decoder.held_bytes <= self.plan.event_bytes
        assert len(self.guard._incoming._body) <= self.plan.answer_bytes
        if not self.cancelled and not self.paused:
            assert self.guard._course.outbox.bytes_held <= self.plan.held_bytes
        assert self.guard._course.outbox.bytes_held <= self.plan.held_bytes + piece + self.plan.event_bytes

    def check(self, received: int) -> None:
        """Assert what must hold of an exchange that is over."""
        assert self.record is not None, "no record"
        assert self.left or self.ended or self.reply is not None, "a silent end"
        assert self.ended != (self.reply is not None) or self.left
        frames = self.frames()
        assert len(self.sent) <= SPREAD * received + 8192
        if self.ended:
            assert all(frame.complete or frame.data is None for frame in frames), "the last event is cut"
        if self.closed_mode:
            for channel, text in self.text().items():
                assert channel == "reply" or SECRET.search(text) is None, "a condemned span was sent"
        for kept in (self.assess, self.put):
            for text in kept.dialogue.answers.values() if kept is not None else ():
                assert SECRET.search(text) is None, "a condemned span was handed over"

    def frames(self) -> list[Frame]:
        """Return the events that the caller has received."""
        decoder = sse.Decoder(1 << 26)
        frames = decoder.decode(self.sent) + decoder.flush()
        assert ONE_FORM.fullmatch(self.sent)
        return frames

    def read(self, frame: Frame) -> Unit:
        """Read an event that was sent; names beside the way to the text pass as they came, twice or not."""
        try:
            return self.surface.read_event(frame)
        except WireError:
            single = json.dumps(json.loads(frame.data or b"", object_pairs_hook=_single)).encode()
            return self.surface.read_event(sse.parse(sse.encode(single, frame.event)))

    def choices(self, frame: Frame) -> tuple[int, ...]:
        """Return whose the frame is; one that can't be read is of none."""
        try:
            return self.surface.read_event(frame).choices if frame.data is not None else ()
        except WireError:
            return ()

    def text(self) -> dict[object, str]:
        """Return what the caller reads, by channel; in closed mode all of it must be readable."""
        found: dict[object, str] = {}
        units = []
        if self.reply is not None and self.reply.status < 400 and self.closed_mode:
            units.append(self.surface.read_whole(self.reply.body))
        elif self.reply is not None:
            found["reply"] = self.reply.body.decode("utf-8", "replace")
        if self.closed_mode:
            units += [self.read(frame) for frame in self.frames() if frame.data is not None]
            assert not any(unit.opaque for unit in units)
        else:
            for frame in self.frames():  # a choice doesn't wait for another, but all wait for what is of none
                for choice in self.choices(frame) or range(8):
                    found[choice] = found.get(choice, "") + (frame.data or b"").decode("utf-8", "replace")
        for unit in units:
            for delta in unit.deltas:
                found[delta.channel] = found.get(delta.channel, "") + delta.text
        return found
