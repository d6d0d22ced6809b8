"""What the request path hands to the background and hears from it. Nothing here waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from checkstream.core.commands import Assess
from checkstream.core.events import Assessed
from checkstream.core.exchange.plan import Plan
from checkstream.core.terms import Dialogue
from checkstream.proxy.accept import Route

EARLIER_RISK = "x-checkstream-earlier-risk"


class Background(Protocol):
    """Who scores answers after they have gone out. Nothing of it waits for a disk or a server."""

    def takes(self, route: Route, stream: str) -> bool:
        """Tell whether an exchange is of the route's sample."""
        ...

    def put(self, dialogue: Dialogue, *, stream: str, route: Route, caller: str | None) -> None:
        """Take what was said in an exchange; what there is no room for is counted and dropped."""
        ...

    def earlier_risk(self, caller: str | None, conversation: str) -> float | None:
        """Return the risk of an earlier answer of a conversation where it was high, once; 0 to 100."""
        ...


class Assessor(Protocol):
    """Who holds an answer against evidence while its caller waits."""

    async def assess(self, command: Assess, *, stream: str, route: Route) -> Assessed:
        """Return what the profiles say, in the command's time; what fails is told in it."""
        ...


class _Extension(msgspec.Struct):
    conversation: str = ""


class _Named(msgspec.Struct):
    checkstream: _Extension | None = None


_NAMED = msgspec.json.Decoder(_Named)


class Afterwards:
    """What one exchange has to do with the background."""

    def __init__(self, background: Background | None, route: Route, stream: str, caller: str | None) -> None:
        """Do nothing yet."""
        self._background = background
        self._route = route
        self._stream = stream
        self._caller = caller

    def plan(self, plan: Plan) -> Plan:
        """Return the exchange's plan: nothing of its answer is kept unless it is of the sample."""
        if not plan.scored_chars or (
            self._background is not None and self._background.takes(self._route, self._stream)
        ):
            return plan
        return msgspec.structs.replace(plan, scored_chars=0)

    def put(self, dialogue: Dialogue) -> None:
        """Hand over what was said."""
        if self._background is not None:
            self._background.put(dialogue, stream=self._stream, route=self._route, caller=self._caller)

    def earlier_risk(self, body: bytes, named: str | None = None) -> float | None:
        """Return what the conversation that a request names was marked with, on routes that mark.

        The body is read loosely: the guard refuses one that is not what the surface accepts.

        Args:
            body: Of the request.
            named: What a header of it calls the conversation; None: none does.
        """
        marking = self._route.grounding is not None and "marker" in self._route.grounding.on_high
        if self._background is None or not marking or not (named or b"conversation" in body):
            return None
        if named:
            return self._background.earlier_risk(self._caller, named)
        try:
            extension = _NAMED.decode(body).checkstream
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if extension is None or not extension.conversation:
            return None
        return self._background.earlier_risk(self._caller, extension.conversation)


def risk_header(risk: float | None) -> Mapping[str, str]:
    """Return the header that tells a caller of an earlier answer."""
    return {} if risk is None else {EARLIER_RISK: f"{risk:g}"}
