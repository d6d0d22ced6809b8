"""Messages of tools under hostile bytes and timing: what must hold of both sides' messages, whatever stands in them.

The first two bytes of an exchange's input choose how it is asked, the plan, and the dice for cuts and for what happens
between them; all others are the server's body.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from checkstream.core import events as on
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.toolbook import Pins
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.steps import done
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.strict import place_of
from checkstream.core.wire.mcp.surface import MCP, Side
from checkstream.errors import RequestInvalid, WireError
from tests.fuzz.exchange import ANSWER_BYTES, EVENT_BYTES, HELD_BYTES, SPREAD, Shell
from tests.playbook import digest

POLICY = """
pack: {name: fuzz, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: [ingress], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}
  - name: code
    id: PAT-1
    stage: [ingress]
    patterns: [{name: code, regex: 'code-[0-9]{2,6}'}]
    actions: [{type: redact, text: "<cut>"}]
  - {name: stop, id: STOP-1, stage: [ingress], phrases: [zero risk], actions: [{type: reject, message: Stopped.}]}
"""
TOXIC = """
  - name: toxic
    id: TOX-1
    stage: [ingress]
    classifiers: [{name: lexicon.toxicity, threshold: 0.8}]
    actions: [{type: reject, message: Stopped.}]
"""
PROGRAMS = tuple(
    compile_sources([("fuzz.yaml", text)], (ClassifierLabel("lexicon.toxicity"),)) for text in (POLICY, POLICY + TOXIC)
)
SECRET = re.compile(r"code-[0-9]{2}|\bzero risk\b")
"""What the policy never lets through."""
RESUMABLE = re.compile(
    rb"(?:: keep-alive\n|(?:event: message\n)?(?:retry: [0-9]+\n)?(?:id: [!-~]*\n)?"
    rb"(?:data: (?:[^\n\r\x0b\x0c\x1c-\x1e\xc2\xe2]|\xc2(?!\x85)|\xe2(?!\x80[\xa8\xa9]))*\n)?\n)*"
)
"""All that a stream of messages that leaves the proxy may be, byte for byte."""
ASKED = (
    ("POST", b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{}}}'),
    ("POST", b'{"jsonrpc":"2.0","id":"7","method":"tools/list"}'),
    ("POST", b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    ("GET", b""),
)


def read_message(side: Side, data: bytes) -> None:
    """A message is refused, or goes on as JSON that says what was scanned; what is edited is read back (G5, G31)."""
    try:
        request = done(side.reading_request(data))
    except (RequestInvalid, WireError):
        return
    assert done(side.writing_request(request, {})) == data
    json.loads(data)
    frame = {place for place, delta in enumerate(request.unit.deltas) if delta.path[0] in ("id", "method")}
    edits = {place: f"<{place}>" for place in range(len(request.unit.deltas)) if place not in frame}
    try:
        edited = done(side.writing_request(request, edits))
    except WireError as error:
        if "two members" in str(error):
            return
        raise
    json.loads(edited)
    for place in frame:
        assert place_of(request.unit.deltas[place].path) in ("id", "method")
    left = request.members
    assert json.loads(edited).get("id") == left.get("id")


def run_messages(data: bytes) -> None:
    """Run one exchange and check every promise that needs no knowledge of what the bytes mean."""
    if len(data) < 2:
        return
    shell = _Shell(data[0], random.Random(data[1]))
    shell.run(data[2:])
    shell.check(len(data))


def run_messages_cut(data: bytes) -> None:
    """Check that neither the cut of the bytes nor its absence is ever seen (G3)."""
    if len(data) < 2:
        return
    whole, cut = (_Shell(data[0] & 0b11110111, random.Random(data[1]), calm=True, cut=cut) for cut in (False, True))
    for shell in (whole, cut):
        shell.run(data[2:])
        shell.check(len(data))
    assert whole.record is not None
    assert cut.record is not None
    assert whole.sent == cut.sent
    assert whole.reply == cut.reply
    assert (whole.record.outcome, whole.record.verdicts) == (cut.record.outcome, cut.record.verdicts)


class _Shell(Shell):
    """An exchange of messages, carried out as the proxy does."""

    def __init__(self, options: int, dice: random.Random, *, calm: bool = False, cut: bool = True) -> None:
        super().__init__(options & 0b1110, dice, calm=calm, cut=cut)
        self.method, self.request = ASKED[options >> 4 & 3]
        self.plan = Plan(
            program=PROGRAMS[self.classified],
            fail_mode=self.plan.fail_mode,
            event_bytes=EVENT_BYTES,
            held_bytes=HELD_BYTES,
            answer_bytes=ANSWER_BYTES,
            tools_changed="refuse" if options & 64 else "alert",
        )
        self.guard: Any = machine_for(MCP, self.plan, digest, tools=Pins())  # laws look inside

    def begin(self) -> None:
        self.receive(on.RequestReceived(self.request, method=self.method))

    def check_caps(self, piece: int) -> None:
        if self.record is not None:
            return
        assert self.guard._inbox._decoder.held_bytes <= EVENT_BYTES
        assert len(self.guard._body) <= ANSWER_BYTES
        if not self.cancelled:
            assert self.paused or self.guard._inbox._bytes <= HELD_BYTES
            assert self.guard._inbox._bytes <= HELD_BYTES + piece + EVENT_BYTES

    def check(self, received: int) -> None:
        assert self.record is not None, "no record"
        assert self.left or self.ended or self.reply is not None, "a silent end"
        assert len(self.sent) <= SPREAD * received + 8192
        assert RESUMABLE.fullmatch(self.sent)
        decoder = sse.Decoder(1 << 26, MCP.events, ids=True)
        frames = [*decoder.decode(self.sent), *decoder.flush()]
        assert not self.ended or all(frame.complete or frame.data is None for frame in frames), "the last event is cut"
        bodies = [frame.data for frame in frames if frame.data]
        bodies += [self.reply.body] if self.reply is not None and self.reply.body else []
        answers = 0
        for body in bodies if self.closed_mode else ():
            said = json.loads(body)
            assert SECRET.search(json.dumps(said, ensure_ascii=False)) is None, "what was condemned was sent"
            answers += "id" in said and "method" not in said
        if self.closed_mode and self.method == "POST":
            assert answers <= 1, "two answers to one request"
            waits = self.request.startswith(b'{"jsonrpc":"2.0","id"') and not self.left
            named = any(b"\nid: " in b"\n" + frame.raw for frame in frames)
            assert answers or not waits or named, "no answer to who waits for one"
