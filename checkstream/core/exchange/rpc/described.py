"""How a server describes its tools: noted when it lists them, and held against when one is called."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.commands import KeepTools, RecallTools
from checkstream.core.events import ToolsKnown
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.refusal import Refusal
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.message import Message
from checkstream.core.exchange.rpc.toolbook import CHANGED, NOT_PINNED, Pins, Seen, is_pinned
from checkstream.core.steps import Walk
from checkstream.core.wire.mcp.tools import defining
from checkstream.core.wire.requests.prompt import is_plain
from checkstream.core.wire.surface import Request

_TOOLS_A_STEP, _LOOKING_WORK = 32, 500
_MOST_TRIES = 8
"""How often a list is looked at anew because others have kept something meanwhile."""


class Described:
    """The tools of one exchange's server."""

    def __init__(self, book: Pins, plan: Plan, checking: Checking, server: str) -> None:
        """Know what a book says, which other exchanges write in too, or what is kept of `server`."""
        self._book = book
        self._plan = plan
        self._checking = checking
        self._server = server
        self._asks = plan.keeps_tools
        self._pins = Pins() if plan.keeps_tools else book
        self._seen = 0
        self._tries = 0
        self.waits = False
        """The store owes an answer."""

    # --- what is kept

    def recalling(self) -> RecallTools | None:
        """Return what asks for what is kept; None: it is known, or nothing is."""
        if not self._asks:
            return None
        self.waits = True
        return RecallTools(self._server)

    def take(self, event: ToolsKnown) -> bool:
        """Know what is kept, in place of what was seen here; tell whether that may go on.

        Raises:
            ToolsUnreadable: nobody here has kept it.
        """
        self.waits = self._asks = False
        self._tries += 1
        self._seen = event.version
        self._pins.begin_with(event.state)
        return self._tries <= _MOST_TRIES

    def looking(self, message: Message, request: Request) -> Generator[None, None, KeepTools | None]:
        """Look at a list in steps; return what keeps what is new in it, before it leaves; None: nothing is."""
        yield from self._checking.meter.stepping(self._look_at(message, request), _LOOKING_WORK)
        if self._pins is self._book or not self._pins.changed:
            return None
        self.waits = True
        return KeepTools(self._server, self._pins.state(), self._seen)

    def kept(self) -> None:
        """Note that it is kept."""
        self.waits = self._pins.changed = False
        self._seen += 1

    def keep_nothing(self) -> None:
        """Go by what this process has seen alone: the store has failed, and the fail mode is open."""
        self.waits = self._asks = False
        self._checking.degrade("mcp_tools_not_kept")
        self._pins = self._book

    # --- what follows

    def refusal_of(self, name: str) -> Refusal | None:
        """Return why a tool may not be called: what its description says, or that it says something else now."""
        why = self._pins.refusing(name)
        if not why and self._plan.tools_changed == "refuse" and name not in self._plan.pins:
            why = CHANGED if self._pins.is_changed(name) else ""
        if not why:
            return None
        said = _WHY.get(why, "its description was not let through")
        return Refusal(400, "request_blocked", f"this tool may not be called: {said}", why, param="params.name")

    def _look_at(self, message: Message, request: Request) -> Walk:
        """Note how the tools of a list are described, and take out those that may not be called."""
        refuses, ledger = self._plan.tools_changed == "refuse", self._checking.ledger
        for count, found in enumerate(defining(request.members), 1):
            if found is None or count % _TOOLS_A_STEP == 0:
                yield
            if found is None:
                continue
            i, name, said, text = found
            rule = message.taken_out(("result", "tools", i))
            fault = self._fault(name, Seen(said, text), keeps=refuses) if rule is None else None
            if fault is not None:
                self._checking.degrade(fault.replace(":", "_"))
                shown = name if is_plain(name) else "?"
                ledger.degraded(f"{fault}:{shown}:{said}")
                rule = fault if refuses else None
                if refuses:
                    message.take_out(("result", "tools", i), fault)
                    ledger.carried_out("reject")
            told = rule == CHANGED and name not in self._plan.pins  # by how it is described now
            self._pins.condemn(name, "" if rule is None or told else rule)

    def _fault(self, name: str, seen: Seen, *, keeps: bool) -> str | None:
        """Return what is wrong with how a tool is described; None: nothing."""
        pinned = is_pinned(name, seen.said, self._plan.pins)
        if pinned is not None:
            return None if pinned else CHANGED
        if self._pins.look(name, seen, keeps=keeps):
            return CHANGED
        return None if self._pins.of(name) is not None else NOT_PINNED


_WHY = {
    CHANGED: "it is described otherwise than before",
    NOT_PINNED: "its server has more tools than are remembered",
}
