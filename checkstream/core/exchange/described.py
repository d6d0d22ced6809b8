"""How a server describes its tools: noted when it lists them, and held against when one is called."""

from __future__ import annotations

from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.message import Message
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.refusal import Refusal
from checkstream.core.exchange.toolbook import CHANGED, ToolBook
from checkstream.core.wire.mcp.tools import definitions
from checkstream.core.wire.requests.prompt import is_plain
from checkstream.core.wire.surface import Request


class Described:
    """The tools of one exchange's server."""

    def __init__(self, book: ToolBook, plan: Plan, checking: Checking) -> None:
        """Know what a book says, which other exchanges write in too."""
        self._book = book
        self._plan = plan
        self._checking = checking

    def refusal_of(self, name: str) -> Refusal | None:
        """Return why a tool may not be called: what its description says, or that it says something else now."""
        why = self._book.refusing(name)
        if why is None:
            return None
        said = "it is described otherwise than before" if why == CHANGED else "its description was not let through"
        return Refusal(400, "request_blocked", f"this tool may not be called: {said}", why, param="params.name")

    def look_at(self, message: Message, request: Request) -> None:
        """Note how the tools of a list are described, and take out those that may not be called."""
        refuses, ledger = self._plan.tools_changed == "refuse", self._checking.ledger
        for i, name, said in definitions(request.members):
            rule = message.taken_out(("result", "tools", i))
            if rule is None and self._book.look(name, said, self._plan.pins, keeps=refuses):
                self._checking.degrade("mcp_tool_changed")
                shown = name if is_plain(name) else "?"
                ledger.degraded(f"{CHANGED}:{shown}:{said}")
                rule = CHANGED if refuses else None
                if refuses:
                    message.take_out(("result", "tools", i), CHANGED)
                    ledger.carried_out("reject")
            if rule is None:
                self._book.allow(name)
            else:
                self._book.refuse(name, rule)
