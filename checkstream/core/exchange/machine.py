"""Which state machine guards an exchange: one for answers that are text, one for messages."""

from __future__ import annotations

from collections.abc import Callable

from checkstream.core.exchange.guard import Guard
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.quiet import Quiet
from checkstream.core.exchange.rpc.messages import Messages
from checkstream.core.exchange.rpc.toolbook import Pins
from checkstream.core.exchange.stepping import Stepping
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface


def machine_for(
    surface: Surface | Mcp,
    plan: Plan,
    digest: Callable[[str], str],
    *,
    stream: str = "",
    clock: Callable[[], float] | None = None,
    quiet: Quiet | None = None,
    tools: Pins | None = None,
    server: str = "",
) -> Stepping:
    """Return a fresh machine for one exchange on a surface; see `Guard` and `Messages` for the arguments."""
    if isinstance(surface, Mcp):
        return Messages(
            surface=surface, plan=plan, digest=digest, stream=stream, clock=clock, tools=tools, server=server
        )
    return Guard(surface=surface, plan=plan, digest=digest, stream=stream, clock=clock, quiet=quiet)
