"""Where one exchange of messages stands: what both sides have said and got, and how it comes to its end.

Nothing here waits or looks ahead: `messages` says when.
"""

from __future__ import annotations

from collections.abc import Callable

from checkstream.core.commands import (
    AnyCommand,
    CancelUpstream,
    CloseDownstream,
    Observe,
    Record,
    Reply,
    SendDownstream,
    StartStream,
)
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.course import CHARS_PER_TOKEN, State
from checkstream.core.exchange.ingress.refusal import NO_VERDICTS, Refusal
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.asker import Asker
from checkstream.core.exchange.rpc.message import Message
from checkstream.core.exchange.watch import Watch
from checkstream.core.wire import sse
from checkstream.core.wire.mcp.surface import Mcp


class Course:
    """The course of one exchange. INVARIANT: `Record` comes once, when the state becomes CLOSED."""

    def __init__(self, surface: Mcp, plan: Plan, digest: Callable[[str], str]) -> None:
        """Begin before the request; see `Guard`."""
        self.surface = surface
        self.plan = plan
        self.checking = Checking(plan, digest)
        self.ledger = self.checking.ledger
        self.watch = Watch(plan, self.checking)
        self.state = State.NEW
        self.request = Message(surface.callers, plan, self.checking)
        self.asker = Asker()
        self.status = 200
        """Of the server's answer."""
        self.upstream_open = False
        self.said_chars = self.released_chars = 0
        """Of the server's messages."""
        self._streamed = False
        self._begun_at: float | None = None

    # --- what the server says

    def open_stream(self) -> None:
        """Begin the stream to the caller, now that the server has begun one."""
        self.state = State.STREAMING
        self._streamed = True
        self.do(StartStream())
        self.watch.begin_stream()

    def begin_message(self) -> None:
        """Note that a message of the server's has come."""
        self._begun_at = self.checking.now if self._begun_at is None else self._begun_at

    def end_message(self, message: Message) -> None:
        """Note that a message has been decided and is about to leave, and how long it was held."""
        held_s = self.checking.now - message.arrived
        if held_s > 0:
            self.ledger.held_s = max(self.ledger.held_s, held_s)
            self.do(Observe("hold_seconds", held_s))
        if self._begun_at is not None and not self.released_chars:
            self.do(Observe("added_ttft_seconds", self.checking.now - self._begun_at))
        self.said_chars += message.chars

    # --- what is done

    def do(self, command: AnyCommand) -> None:
        """Have something done."""
        self.checking.commands.append(command)

    def send(self, data: bytes) -> None:
        """Send the caller an event."""
        if data:
            self.do(SendDownstream(data))
            self.watch.sent()

    def send_sign_of_life(self) -> None:
        """Show the caller that the stream lives."""
        self.do(SendDownstream(sse.KEEP_ALIVE))

    def cancel_upstream(self) -> None:
        """Hear no more of the server."""
        if self.upstream_open:
            self.upstream_open = False
            self.do(CancelUpstream())

    # --- ends

    def reply(self, reply: Reply, outcome: str) -> None:
        """Answer with a whole body, and end."""
        self.do(reply)
        self.close(outcome)

    def give_whole(self, data: bytes, outcome: str) -> None:
        """Answer with what the server has said, or with what stands in its place, and end."""
        self.released_chars = self.said_chars
        self.reply(Reply(self.status, data, action=self.ledger.action), outcome)

    def say_status(self) -> None:
        """Answer with the status of a server that has said nothing that could be checked."""
        refusal = Refusal(self.status, "upstream_error", f"the upstream answered with status {self.status}")
        self.give_whole(self.asker.error(refusal), "upstream_failed")

    def refuse(self, refusal: Refusal) -> None:
        """Answer in place of the server: as an error that SDKs raise where something was asked."""
        if refusal.kind != "overloaded":
            self.ledger.carried_out("reject" if refusal.confirm is None else "require_confirmation")
        self.reply(*self.asker.refused(refusal))

    def end_stream(self) -> None:
        """End a stream whose server has ended it."""
        if self.state is not State.STREAMING:
            return
        if self.asker.is_owed:
            refusal = Refusal(502, "upstream_error", "the upstream ended its stream without an answer")
            self.send(self.asker.error_event(refusal))
            self.ledger.upstream_failure = self.ledger.upstream_failure or "no_answer"
        self.do(CloseDownstream())
        self.close("upstream_failed" if self.ledger.upstream_failure else "complete")

    def fail(self, refusal: Refusal) -> None:
        """End the exchange with an error: never a silent end of what the caller waits for."""
        if self.state in {State.RECALLING, State.INGRESS}:
            self.refuse(refusal)
            return
        if refusal.kind not in NO_VERDICTS:
            self.ledger.upstream_failure = self.ledger.upstream_failure or refusal.kind
        self.cancel_upstream()
        self._end(refusal, refusal.kind if refusal.kind in NO_VERDICTS else "failed", owed=self.asker.waits)

    def break_off(self, refusal: Refusal, outcome: str) -> None:
        """End what can't go on; a stream that can be resumed just ends."""
        self._end(refusal, outcome, owed=self.asker.is_owed)

    def _end(self, refusal: Refusal, outcome: str, *, owed: bool) -> None:
        if self.state is not State.STREAMING:
            self.reply(Reply(refusal.status, self.asker.error(refusal), action=refusal.kind), outcome)
            return
        if owed:
            self.send(self.asker.error_event(refusal))
        self.do(CloseDownstream())
        self.close(outcome)

    def close(self, outcome: str) -> None:
        """Write the record: nothing follows."""
        self.checking.close()
        self.watch.end()
        for each in self.request.remembered(outcome, None):
            self.do(each)
        record = self.ledger.record(
            surface=self.surface.name,
            method=self.asker.known_as,
            streaming=self._streamed,
            outcome=outcome,
            program=self.plan.program,
            prompt_chars=self.request.chars,
            released_chars=self.released_chars,
            risks={},
            answer_chars=self.said_chars,
            conversation=self.request.conversation.record(self.ledger),
        )
        self.do(Observe("tokens_in", -(-record.prompt_chars // CHARS_PER_TOKEN)))
        self.do(Observe("tokens_out", -(-record.released_chars // CHARS_PER_TOKEN)))
        self.do(Record(record))
        self.state = State.CLOSED
