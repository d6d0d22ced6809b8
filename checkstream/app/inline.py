"""Holds answers against evidence while their callers wait: on a thread of its own, in bounded time, a few at once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from checkstream.app.background import exchanges
from checkstream.app.turns import short_turns
from checkstream.config import Config, GroundingSettings
from checkstream.core.commands import Assess
from checkstream.core.events import Assessed
from checkstream.proxy.accept import Route
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from checkstream.app.profiles import Profile, Said
    from checkstream.jobs.exchange import Exchange

KEYS: Mapping[str, tuple[str, ...]] = {
    "watchdog": ("risk",),
    "rag": ("verification",),
    "budget": ("hallucination_check", "warning"),
}
"""Profile -> the names in a reply under which its design puts what it says."""
_MOST = 16
"""Answers that are held against evidence at a time; one more goes without rather than make all of them late."""
_MOST_CHARS = 131_072
"""Of the documents that a request brings along; more would take seconds, and from all streams."""
_SLACK_S = 0.25
"""The thread keeps the time itself; this is how much later the event loop stops to wait for it."""
_NULL = msgspec.Raw(b"null")
_T = TypeVar("_T")


class Inline:
    """Asks profiles on a thread with an event loop of its own. Implements `proxy.background.Assessor`."""

    def __init__(self, config: Config, metrics: Metrics, log: Log) -> None:
        """Start nothing yet: verifier and evidence are opened when the first answer is to be assessed.

        Args:
            config: Says who judges, and where evidence is.
            metrics: Count risks, as the worker's do.
            log: Told of high risks, and of profiles that fail.
        """
        self._config = config
        self._metrics = metrics
        self._log = log
        self._running = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._opening: asyncio.Task[Mapping[str, Profile]] | None = None
        self._stack = contextlib.AsyncExitStack()
        self._turns = contextlib.ExitStack()

    async def assess(self, command: Assess, *, stream: str, route: Route) -> Assessed:
        """Return what the profiles say, in the command's time; what fails is told in it."""
        evidence = sum(len(document.text) for document in command.dialogue.documents)
        if not command.dialogue.answers or evidence > _MOST_CHARS or self._running >= _MOST:
            self._log.warning("inline.refused", stream=stream, route=route.name, evidence_chars=evidence)
            return _nothing(command.profiles)
        self._running += 1
        seconds = command.deadline_ms / 1000
        try:
            async with asyncio.timeout(seconds + _SLACK_S):
                asked = list(exchanges(command.dialogue, stream, route, caller=None))
                said = await self._away(self._assess(command.profiles, asked, seconds))
        except TimeoutError:
            return _nothing(command.profiles)
        finally:
            self._running -= 1
        self._tell(said, stream, route)
        return said

    async def close(self) -> None:
        """Close what is open, and end the thread; one that reckons on is left behind."""
        if self._loop is not None and self._thread is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._away(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            await asyncio.to_thread(self._thread.join, 1.0)
            self._turns.close()
            if not self._thread.is_alive():
                self._loop.close()

    def _tell(self, said: Assessed, stream: str, route: Route) -> None:
        """Count and log what was said, as the route wants it; webhooks and markers follow from the queue alone."""
        settings = route.grounding or GroundingSettings()
        for profile, risk in said.risks.items():
            self._metrics.grounding_risk.of(route.name, profile).observe(risk)
            if risk >= settings.high and "metric" in settings.on_high:
                self._metrics.grounding_high.of(route.name, profile).inc()
            if risk >= settings.high and "log" in settings.on_high:
                self._log.warning("grounding.high", stream=stream, route=route.name, profile=profile, risk=risk)

    async def _away(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._loop is None:
            self._turns.enter_context(short_turns())
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="inline", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # --- on the thread

    async def _close(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait((self._opening,))
        await self._stack.aclose()

    async def _assess(self, names: Sequence[str], asked: Sequence[Exchange], seconds: float) -> Assessed:
        """Ask every profile of every choice; the choice with the highest risk speaks for the answer."""
        try:
            known = await self._profiles()
        except Exception as error:  # noqa: BLE001 - whatever is missing, the answer goes without
            self._log.error("inline.unavailable", detail=str(error))
            return _nothing(names)
        tasks = {
            (name, exchange.stream): asyncio.create_task(known[name].assess(exchange))  # noqa: TID251 - awaited here
            for name in names
            for exchange in asked
        }
        _, late = await asyncio.wait(tasks.values(), timeout=seconds)
        for task in late:
            task.cancel()
        members: dict[str, msgspec.Raw] = {}
        risks: dict[str, float] = {}
        failed: list[str] = []
        for name in names:
            said = [self._said(name, tasks[name, exchange.stream]) for exchange in asked]
            if worst := max((each for each in said if each is not None), key=_risk_of, default=None):
                members |= {key: msgspec.Raw(msgspec.json.encode(value)) for key, value in worst.members.items()}
            else:
                members |= dict.fromkeys(KEYS[name], _NULL)
            if worst is not None and worst.risk is not None:
                risks[name] = worst.risk
            if any(each is None or each.risk is None for each in said):
                failed.append(name)
        return Assessed(members, risks, tuple(failed))

    def _said(self, name: str, task: asyncio.Task[Said]) -> Said | None:
        if not task.done() or task.cancelled():
            self._log.warning("inline.late", profile=name)
            return None
        error = task.exception()
        if error is not None:
            self._log.warning("inline.failed", profile=name, error=type(error).__name__)
            return None
        return task.result()

    async def _profiles(self) -> Mapping[str, Profile]:
        """Return the profiles; what opens for longer than one answer may wait goes on opening for the next."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opening = asyncio.create_task(self._open())  # noqa: TID251 - awaited here
        return await asyncio.shield(opening)

    async def _open(self) -> Mapping[str, Profile]:
        # Large, and most processes hold no answer against evidence.
        from checkstream.app.evidence_search import open_search  # noqa: PLC0415
        from checkstream.app.profiles import profiles  # noqa: PLC0415
        from checkstream.app.verifiers import open_verifiers  # noqa: PLC0415

        async with contextlib.AsyncExitStack() as stack:
            verifiers = await stack.enter_async_context(
                open_verifiers(self._config.verifier, self._config.models, waiting=True)
            )
            evidence = await stack.enter_async_context(open_search(self._config))
            self._stack = stack.pop_all()
        return profiles(verifiers, evidence)


def _risk_of(said: Said) -> float:
    return -1.0 if said.risk is None else said.risk


def _nothing(names: Sequence[str]) -> Assessed:
    """Return what is said where nobody could say anything."""
    return Assessed({key: _NULL for name in names for key in KEYS[name]}, {}, tuple(names))
