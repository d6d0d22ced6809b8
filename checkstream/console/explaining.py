"""Asks `checkstream policy explain` what policies do to a text, in a process of its own.

It is the command and nothing else, so the page says what the command says. One runs at a time, on so long a text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkstream.console.facts import Places
from checkstream.core.policy.explain import RuleReport
from checkstream.errors import Fault
from checkstream.own_process import OwnProcesses, Ran

MOST_CHARS = 20_000
MOST_S = 30.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of the text."""

    action: str
    texts: dict[str, str] = {}
    error: str = ""
    degraded: tuple[str, ...] = ()


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What the command said."""

    rules: tuple[RuleReport, ...] = ()
    """Those that fired first, then those that could have."""
    out_of_scope: int = 0
    """Rules that read no such text."""
    result: Result | None = None
    faults: tuple[Fault, ...] = ()
    failure: str = ""
    """Why nothing was said."""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the command that is not about a rule."""

    result: Result | None = None
    faults: tuple[Fault, ...] = ()


_ORDER = {"fired": 0, "shadow": 1, "not_fired": 2, "out_of_scope": 3}


def read(out: bytes, err: bytes, code: int) -> Explanation:
    """Return what the command has said; what is no line of it counts as a failure."""
    rules: list[RuleReport] = []
    result: Result | None = None
    faults: tuple[Fault, ...] = ()
    try:
        for line in out.splitlines():
            if line.startswith(b'{"rule_id"'):
                rules.append(msgspec.json.decode(line, type=RuleReport))
            else:
                other = msgspec.json.decode(line, type=_Line)
                result, faults = other.result or result, other.faults or faults
    except msgspec.DecodeError as error:
        return Explanation(failure=f"the command said what can't be read: {error}")
    if faults or result is not None:
        known = [rule for rule in rules if rule.outcome != "out_of_scope"]
        known.sort(key=lambda rule: _ORDER[rule.outcome])
        return Explanation(rules=tuple(known), out_of_scope=len(rules) - len(known), result=result, faults=faults)
    said = err.decode("utf-8", "replace").strip().splitlines()
    return Explanation(failure=said[-1] if said else f"the command ended with {code} and said nothing")


class Explainer:
    """Runs the command, one at a time."""

    def __init__(self, places: Places) -> None:
        """Run nothing yet."""
        self._models = places.models
        self._processes = OwnProcesses(places.program, at_once=1, waiting=0)

    async def explain(self, files: Sequence[str], stage: str, text: str) -> Explanation:
        """Return what policies do to a text.

        Args:
            files: As the configuration names them.
            stage: Where the text stands, `ingress`, `midstream` or `egress`.
            text: At most `MOST_CHARS` characters.
        """
        words = command(files, stage, self._models)
        return await said(await self._processes.run(words, text.encode("utf-8", "replace"), most_s=MOST_S))

    async def close(self) -> None:
        """End what runs."""
        await self._processes.close()


def command(files: Sequence[str], stage: str, models: Path | None) -> list[str]:
    """Return the words of the command that explains the text on its standard input."""
    own = () if models is None else ("--models", str(models))
    return ["policy", "explain", *own, "--stage", stage, "--text", "-", "--json", "--", *files]


async def said(ran: Ran) -> Explanation:
    """Return what the command has said."""
    if ran.failure:
        return Explanation(failure=ran.failure)
    return await asyncio.to_thread(read, ran.out, ran.err, ran.code)
