"""Asks `checkstream policy explain` what policies do to a text, in a process of its own.

It is the command and nothing else, so the page says what the command says. INVARIANT: no stream waits for it: one runs
at a time, beneath everything else (niceness 19), for so long and on so long a text; whoever asks meanwhile is told so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Sequence

import msgspec

from checkstream.console.facts import Places
from checkstream.core.policy.explain import RuleReport
from checkstream.errors import Fault

MOST_CHARS = 20_000
MOST_S = 30.0
_MOST_OUT = 8 * 1024 * 1024


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
        self._places = places
        self._running: asyncio.subprocess.Process | None = None
        self._busy = False

    async def explain(self, files: Sequence[str], stage: str, text: str) -> Explanation:
        """Return what policies do to a text.

        Args:
            files: As the configuration names them.
            stage: Where the text stands, `ingress`, `midstream` or `egress`.
            text: At most `MOST_CHARS` characters.
        """
        if self._busy:
            return Explanation(failure="another text is being looked at; try again when it is done")
        self._busy = True
        try:
            return await self._run(self._command(files, stage), text.encode("utf-8", "replace"))
        finally:
            self._busy = False

    def _command(self, files: Sequence[str], stage: str) -> list[str]:
        models = () if self._places.models is None else ("--models", str(self._places.models))
        return [
            *self._places.program, "policy", "explain", *models, "--stage", stage, "--text", "-", "--json", "--", *files
        ]  # fmt: skip

    async def _run(self, command: Sequence[str], text: bytes) -> Explanation:
        pipe = subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            return Explanation(failure=f"the command can't be started: {error.strerror or error}")
        self._running = process
        try:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, 19)
            async with asyncio.timeout(MOST_S):
                out, err = await process.communicate(text)
        except TimeoutError:
            return Explanation(failure=f"not done within {MOST_S:.0f} s; try a shorter text, or the command by itself")
        finally:
            self._running = None
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if len(out) > _MOST_OUT:
            return Explanation(failure="more was said than a page can show; use the command by itself")
        return await asyncio.to_thread(read, out, err, process.returncode or 0)

    async def close(self) -> None:
        """End what runs."""
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):
                self._running.kill()
