"""Who has sent a message to a server: what was asked, whether an answer is owed, and how refusals are told.

An error of HTTP reaches nobody but the transport, so who has asked gets an answer.
"""

from __future__ import annotations

from checkstream.core.commands import Reply
from checkstream.core.exchange.ingress.refusal import NO_VERDICTS, Refusal
from checkstream.core.wire import sse
from checkstream.core.wire.mcp import refusals
from checkstream.core.wire.mcp.fields import OF_CALLERS
from checkstream.core.wire.mcp.heads import Head

_BY_POLICY = frozenset({"request_blocked", "request_needs_confirmation"})


class Asker:
    """The caller of one exchange."""

    def __init__(self) -> None:
        """Begin before anything was asked."""
        self.head: Head | None = None
        """Of the message; None: the caller opens a stream, or ends a session."""
        self.verb = "POST"
        """How it asks, of HTTP."""
        self.answered = False
        self.resumable = False
        """It has an id by which it can ask for the rest of a stream that broke off."""

    @property
    def asks(self) -> bool:
        """The message is one that gets an answer."""
        return self.head is not None and self.head.kind == "request"

    @property
    def waits(self) -> bool:
        """The answer has not come."""
        return self.asks and not self.answered

    @property
    def is_owed(self) -> bool:
        """Nobody else will give the answer that it waits for: it can't ask for the rest of the stream."""
        return self.waits and not self.resumable

    @property
    def method(self) -> str:
        """What was asked for; empty: nothing."""
        return self.head.method if self.head is not None else ""

    @property
    def known_as(self) -> str:
        """What was asked for, as metrics and records call it: one of a few names, whatever callers write.

        A method that is known, `other`, `answer` where a server is answered, `GET` and `DELETE`.
        """
        if self.verb != "POST":
            return self.verb
        if self.head is None or self.head.method:
            return self.method if self.method in OF_CALLERS else "other"
        return "answer"

    def expects(self, head: Head) -> bool:
        """Tell whether a server may answer so: a stream that is resumed has answers to what was asked before."""
        if self.head is None:
            return True
        if not self.asks:
            return head.kind == "error"
        return head.answers(self.head) and not self.answered

    def error(self, refusal: Refusal) -> bytes:
        """Return the error that answers what was asked."""
        number = self.head.id if self.head is not None and self.asks else None
        return refusals.error(number, why_of(refusal))

    def error_event(self, refusal: Refusal) -> bytes:
        """Return the same as an event."""
        return sse.encode(self.error(refusal), "message")

    def refused(self, refusal: Refusal) -> tuple[Reply, str]:
        """Return the reply in place of the server's, and what the exchange has come to."""
        by_policy = refusal.kind in _BY_POLICY
        outcome = refusal.kind if refusal.kind in NO_VERDICTS else "refused" if by_policy else "invalid"
        status = 200 if self.asks and by_policy and refusal.confirm is None else refusal.status
        action = outcome if refusal.kind in NO_VERDICTS else "reject"
        reply = Reply(
            status,
            self.error(refusal),
            action=action if refusal.confirm is None else "require_confirmation",
            retry=False if by_policy else None,
            retry_after_s=1 if status == 503 else None,
            confirm=refusal.confirm,
        )
        return reply, outcome


def why_of(refusal: Refusal, kind: str | None = None) -> refusals.Why:
    """Return a refusal as messages tell it."""
    return refusals.Why(kind or refusal.kind, refusal.message, refusal.rule_id, refusal.param)
