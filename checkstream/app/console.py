"""What the console is told of this process: what it has counted, and the policies in force with their sources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from checkstream.app.force import InForce
from checkstream.console.facts import Policies, ProgramFacts, RuleFacts, Source
from checkstream.console.totals import NAMES
from checkstream.core.policy.program import Program, RuleMeta
from checkstream.proxy.health import Inside, Status
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Figures, some


class OwnFacts:
    """Tells of this process. Implements `console.Facts`."""

    def __init__(
        self, inside: Inside, metrics: Metrics, force: Callable[[], InForce], listen: Callable[[], object]
    ) -> None:
        """Tell what `inside` shows, what `metrics` count, which policies are in force, and where callers connect."""
        self._inside = inside
        self._metrics = metrics
        self._force = force
        self._listen = listen

    @property
    def listen(self) -> str:
        """Where callers connect."""
        return str(self._listen())

    async def shown(self) -> Status:
        """Return what is in force, and how much runs."""
        return await self._inside.shown()

    async def totals(self) -> Figures:
        """Return what has been counted, as far as the console looks at it.

        On a thread: one metric may have so many series that to collect it alone would keep streams waiting.
        """
        return await asyncio.to_thread(lambda: tuple(some(self._metrics, NAMES)))

    async def policies(self) -> Policies:
        """Return the policies in force."""
        return await asyncio.to_thread(policies_of, self._force())


def policies_of(force: InForce) -> Policies:
    """Return the policies in force. Takes a while where there are many: not for the event loop."""
    loaded = force.loaded
    guarded: dict[tuple[str, ...], list[str]] = {files: [] for files in loaded.programs}
    for route in loaded.config.routes:
        if not route.pass_:
            guarded[route.policies].append(route.name)
    return Policies(
        programs=tuple(
            ProgramFacts(
                hash=program.hash,
                routes=tuple(guarded[files]),
                packs=program.packs,
                files=files,
                rules=tuple(_rules(program)),
            )
            for files, program in loaded.programs.items()
        ),
        sources=tuple(
            Source(name=name, text=content.decode("utf-8", "replace")) for name, content in loaded.sources.items()
        ),
        unguarded=tuple(route.name for route in loaded.config.routes if route.pass_),
    )


def _rules(program: Program) -> Iterator[RuleFacts]:
    for rule in program.rules:
        yield RuleFacts(
            id=rule.id,
            name=rule.name,
            pack=f"{rule.pack}@{rule.version}",
            stages=tuple(sorted(map(str, rule.stages))),
            channels=tuple(sorted(rule.channels)),
            mode=_mode(rule),
            actions=tuple(action.name for action in rule.actions),
            triggers=tuple(program.signals[signal].title for signal in rule.triggers),
            conditions=rule.conditions,
            severity=str(rule.severity or ""),
            regulation=rule.regulation or "",
            citation=rule.citation or "",
            description=rule.description or "",
        )


def _mode(rule: RuleMeta) -> str:
    share = rule.enforce_share
    return rule.mode if rule.mode != "enforce" or share == 1.0 else f"enforce for {share:.0%}"
