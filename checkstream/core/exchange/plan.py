"""What one route asks of the guard."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from checkstream.core.channel.brief import FailMode
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.policy.program import Program

BUDGET_CHARS = 4000
"""Of a prompt that is read within one budget; a longer one has as much more as it is longer."""
HOLD_CHARS = 100_000
"""Of a text that may wait for `max_hold_ms`; a longer one may wait as much longer, or a busy machine would refuse what
it can read in time."""


class Assessing(msgspec.Struct, frozen=True, kw_only=True):
    """How a route holds answers against evidence before their callers have all of them."""

    always: bool = False
    """Of every answer; else only where the request asks."""
    profiles: tuple[str, ...] = ("watchdog",)
    deadline_ms: float = 3000.0
    block: float | None = None
    """Whole answers of this risk and above are blocked, 0..100. Where it is given no request can switch it off."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one route asks of the guard. An exchange keeps the plan that it started with (G25)."""

    program: Program
    models: Mapping[str, str] = MappingProxyType({})
    """Name of a classifier -> `name@version` of the model that answers for it, for records."""
    route: str = ""
    """Its name."""
    upstream: str = ""
    """Name of what it leads to: ids of answers, of conversations and of sessions are that one's own."""
    hold: HoldSettings = HoldSettings()
    max_hold_ms: float = 30_000.0
    """The most that `HOLD_CHARS` of text wait for a classifier."""
    fail_mode: FailMode = "closed"
    ingress_deadline_ms: float = 1000.0
    check_deadline_ms: float = 1000.0
    """The most work of a classifier on 64 tokens: past it, it is broken."""
    ingress_budget_ms: float = 150.0
    """Of `BUDGET_CHARS` of a prompt."""
    check_budget_ms: float = 50.0
    """Above its budget a check counts as slow: `on_exceeded` says what follows, and the record says that it did."""
    on_exceeded: Literal["hold", "degrade", "shed"] = "hold"
    """hold: wait on for the answer. degrade: let the rules' cheaper detectors decide alone, where every rule that waits
    for the answer has one; else hold. shed: hold, and refuse new requests for a moment."""
    turn_work: int = 0
    """The most work of one turn of the guard (see `match.work`), before it asks for the next; 0: all there is."""
    work: int = 0
    """The most work on one exchange, after which it meets the fail mode; 0: no limit."""
    tells: bool = True
    """Callers are told what rules have done to prompt and answer."""
    keepalive_ms: float = 15_000.0
    held_bytes: int = 2_097_152
    """Most bytes of events that may wait in one stream."""
    call_bytes: int = 8_388_608
    """Most bytes of events that may wait in one stream for a tool call to be whole."""
    event_bytes: int = 1_048_576
    answer_bytes: int = 16_777_216
    prompt_chars: int = 400_000
    prompt_messages: int = 4096
    """Messages and fields of one prompt that are judged apart: each costs some kilobytes, whatever its text."""
    parts: Literal["pass", "refuse"] = "pass"
    """What becomes of parts that are not text; where prompts are refused for them, answers lose them."""
    unknown_fields: Literal["scan", "refuse"] = "scan"
    """What becomes of fields of a request that nobody knows. scan: they are read as text and forwarded."""
    known_fields: frozenset[str] = frozenset()
    """Those that the route knows besides: they are read as text and forwarded, whatever becomes of others."""
    tools_changed: Literal["alert", "refuse"] = "alert"
    """What becomes of a tool of MCP that is described otherwise than before."""
    pins: Mapping[str, str] = MappingProxyType({})
    """Name of a tool of MCP -> hash of how it is to be described (see `wire.mcp.tools`)."""
    keeps_tools: bool = False
    """How tools of MCP are described can be asked for, and is kept for other processes and times."""
    assessing: Assessing | None = None
    """None: nobody is there who could."""
    keeps_names: bool = False
    """What stands for values of the prompt is the same in all requests of a conversation, and kept between them."""
    recalls: bool = False
    """What earlier requests of a conversation came to can be asked for, and is kept."""
    recalls_texts: bool = False
    """Of conversations whose history is not sent again what the user said last is kept, too."""
    said: Mapping[str, Any] = MappingProxyType({})
    """Fields of `request` as conditions are to read them, whatever the request says: where an answer is judged again,
    they are those of the request that it answered."""
    scored_chars: int = 0
    """Most characters of an answer that is scored after it has gone out; a longer one isn't, and the record says so.
    0: none is."""

    def hold_ms(self, chars: int) -> float:
        """Return how long a text of so many characters may wait for a classifier that is busy."""
        return self.max_hold_ms * max(1.0, chars / HOLD_CHARS)
