"""One message of JSON-RPC, a caller's or a server's: judged as a prompt is, whichever way it goes.

What a server says is read by a model, just as what stands in a prompt, so the section of the policy for prompts holds
for it: rules for `tool_result` and `document` mean the same here as in a chat that carries a tool's result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from checkstream.core.channel.actions import Refusing
from checkstream.core.channel.judge import Judge
from checkstream.core.events import RequestReceived
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.prompt import READ_WORK, Prompt
from checkstream.core.exchange.ingress.refusal import Refusal, refused
from checkstream.core.exchange.ingress.removed import Removed
from checkstream.core.exchange.plan import Plan
from checkstream.core.terms import Channel, Unit
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.mcp.bound import SESSION
from checkstream.core.wire.mcp.heads import Head, head_of
from checkstream.core.wire.mcp.messages import is_entry, part_of
from checkstream.core.wire.surface import Request, Requests
from checkstream.errors import RequestInvalid

_NO_BODY = Request(unit=Unit(raw=b""), members={}, streaming=True, usage_wanted=False, model="")


class Message(Prompt):
    """A message on its way to the other side."""

    _of_tools = True

    def __init__(self, side: Requests, plan: Plan, checking: Checking, arrived: float = 0.0) -> None:
        """Start before it is read.

        Args:
            side: Whose messages are read so.
            plan: What the route asks for.
            checking: Makes judges and asks classifiers.
            arrived: When it has come, seconds.
        """
        super().__init__(side, plan, checking)
        self._side = side
        self.arrived = arrived
        self.head: Head | None = None
        """Its frame; None: it has none."""
        self.refused: Refusal | None = None
        """Why it can't go on, whatever policy says of its texts."""
        self.session = ""
        """What it is part of, as its server calls it; empty: nothing, or nothing yet."""

    def _reading(self, event: RequestReceived) -> Generator[None, None, Request]:
        """Return, in steps, what the request says; what opens or ends a stream says nothing.

        Raises:
            RequestInvalid: it is no message, or none is allowed there.
        """
        self.session = self._session(event)
        if event.method == "POST":
            request = yield from super()._reading(event)
            self.head = head_of(request.members)
            return request
        if event.body:
            raise RequestInvalid(f"a request with `{event.method}` has no body; send messages with `POST`")
        return _NO_BODY

    def _session(self, event: RequestReceived) -> str:
        """Return the session that the message is part of, as its server calls it; empty: it has none."""
        said = event.envelope.said
        return next((each.text for each in said if each.place == "header" and each.name == SESSION), "")

    def hearing(self, body: bytes) -> Generator[None, None, None]:
        """Read what a server says, in steps, and begin to judge it.

        Raises:
            WireError: it is no message.
        """
        request = yield from self._checking.meter.stepping(self._side.reading_request(body), READ_WORK)
        self._checking.keep_request(request)
        self.request = request
        with contextlib.suppress(RequestInvalid):  # an error of HTTP may be no message
            self.head = head_of(request.members)
        self.refused = yield from refused(request, self._plan, self._checking, ())
        if self.refused is None:
            yield from self._join(request)
            yield from self._judging()

    @property
    def refusal(self) -> Refusal | None:
        """Why it does not go on; None when it may."""
        return self.refused or super().refusal

    def taken_out(self, path: Path) -> str | None:
        """Return the rule by which an entry of a list is taken out; None: it stays."""
        return self._removed.rule_at(path)

    def take_out(self, path: Path, rule_id: str) -> None:
        """Take an entry out of a list."""
        self._removed.add(path, rule_id)

    def owns(self, judge: Judge) -> bool:
        """Tell whether a judge has a text of it."""
        joined = self._places.get(judge.channel)
        return joined is not None and joined.judge is judge

    @staticmethod
    def _nothing_removed() -> Removed:
        """Return what is taken out: entries of lists, and what is no entry goes with all of the message alone."""
        return Removed(lambda _, path: part_of(path), lambda path: not is_entry(path))

    def _reject(self, refusing: Refusing, place: str | None, channel: Channel) -> None:
        """Take the entries of a list out that a span stands in; refuse the message for all else."""
        joined, request = self._places.get(channel), self.request
        touched = [] if joined is None or request is None else joined.touched(refusing.span)
        paths = [request.unit.deltas[at].path for at in touched] if request is not None else []
        if paths and all(map(is_entry, paths)):
            for path in paths:
                self._removed.add(part_of(path), refusing.rule.id)
        else:
            super()._reject(refusing, place, channel)
