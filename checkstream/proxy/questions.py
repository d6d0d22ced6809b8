"""What an exchange asks of classifiers and of evidence: each answer comes back to the guard as an event.

Whatever goes wrong there is an answer too, so that the guard never waits for nothing (G23).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.errors import ScoringError
from checkstream.proxy.counts import StreamCounts
from checkstream.scoring.scorer import Asked, Checked


class Classifiers(Protocol):
    """Who answers `Score`."""

    def ask(
        self,
        classifiers: tuple[str, ...],
        text: str,
        deadline_ms: float,
        *,
        ingress: bool = False,
        fresh_chars: int = 0,
        open_chars: int = 0,
        caller: str | None = None,
        share: str = "",
        parts: Sequence[int] = (),
    ) -> Asked:
        """Ask about one text.

        Raises:
            ScoringError: refused.
        """

    def wait_s(self, share: str, chars: int) -> float:
        """Return how long a prompt of so many characters would wait for its scores."""


class Names(Protocol):
    """Who keeps what stands for whose data in a conversation."""

    async def recall(self, caller: str, command: do.RecallNames) -> on.NamesKnown:
        """Return what is kept of a conversation of a caller.

        Raises:
            CheckstreamError: it can't be read.
        """

    async def keep(self, caller: str, command: do.KeepNames) -> on.NamesKept | on.NamesKnown:
        """Keep it; where another request has kept something since, return that.

        Raises:
            CheckstreamError: it can't be kept.
        """


class Past(Protocol):
    """Who knows what conversations have come to."""

    @property
    def at_once(self) -> bool:
        """Every question is answered without waiting."""

    async def recall(self, caller: str, command: do.Recall) -> on.Recalled:
        """Return what is known of a conversation.

        Raises:
            CheckstreamError: it can't be read, or not in time.
        """

    async def remember(self, caller: str, command: do.Remember) -> bool:
        """Keep what an exchange has come to; tell whether that was done.

        Raises:
            CheckstreamError: it can't be kept, or not in time.
        """


class Tools(Protocol):
    """Who keeps how tools of servers were described."""

    async def recall(self, command: do.RecallTools) -> on.ToolsKnown:
        """Return what is kept of a server.

        Raises:
            CheckstreamError: it can't be read.
        """

    async def keep(self, command: do.KeepTools) -> on.ToolsKept | on.ToolsKnown:
        """Keep it; where another process has kept something since, return that.

        Raises:
            CheckstreamError: it can't be kept.
        """


class Questions:
    """The questions of one exchange."""

    def __init__(
        self,
        scorer: Classifiers,
        assess: Callable[[do.Assess], Awaitable[on.Assessed]] | None,
        vault: Names | None = None,
        past: Past | None = None,
        tools: Tools | None = None,
        *,
        tasks: asyncio.TaskGroup,
        counts: StreamCounts,
        post: Callable[[on.AnyEvent], None],
    ) -> None:
        """Ask nothing yet.

        Args:
            scorer: Answers `Score`.
            assess: Answers `Assess`; None: nobody can.
            vault: Answers `RecallNames` and `KeepNames`; None: nobody can.
            past: Answers `Recall`, takes what is to be remembered; None: nobody does.
            tools: Answers `RecallTools` and `KeepTools`; None: nobody can.
            tasks: Wait for answers; the exchange ends after them.
            counts: Takes scores, and what went wrong.
            post: Takes the answers.
        """
        self._scorer = scorer
        self._assess = assess
        self._vault = vault
        self._past = past
        self._tools = tools
        self._tasks = tasks
        self._counts = counts
        self._post = post
        self._waiting: set[asyncio.Task[None]] = set()
        self.share = ""
        """In whose share of the work the questions are."""
        self.caller = ""
        """Who sent the prompt: what is known of it is known to its caller alone."""

    def score(self, command: do.Score) -> None:
        """Ask classifiers; most answers are there at once, for the others a task waits."""
        began = time.monotonic()
        try:
            asked = self._scorer.ask(
                command.classifiers,
                command.text,
                command.deadline_ms,
                ingress=command.ingress,
                fresh_chars=command.fresh_chars,
                open_chars=command.open_chars,
                caller=self.caller,
                share=self.share,
                parts=command.parts,
            )
            if asked.settled:
                self._scored(command, asked.answered())
                self._counts.judged(time.monotonic() - began, ingress=command.ingress)
                return
        except Exception as error:  # noqa: BLE001 - a broken classifier meets the fail mode, never the process (G23)
            self._not_scored(command.ticket, error)
            self._counts.judged(time.monotonic() - began, ingress=command.ingress)
            return
        task = self._tasks.create_task(self._wait_for(command, asked, began))
        self._keep(task)
        task.add_done_callback(lambda _: asked.leave())  # cancelled before it began, it did not leave by itself

    async def _wait_for(self, command: do.Score, asked: Asked, began: float) -> None:
        try:
            checked = await asked.answer()
        except Exception as error:  # noqa: BLE001 - as above
            self._not_scored(command.ticket, error)
        else:
            self._scored(command, checked)  # the guard hears of it there, and decides
        self._counts.judged(time.monotonic() - began, ingress=command.ingress)

    def _scored(self, command: do.Score, checked: Checked) -> None:
        if not checked.again:  # a chat sends its history with each request: one text would be most of what is counted
            self._counts.scored(checked.scores, ingress=command.ingress)
        self._post(on.Scored(command.ticket, checked.scores, checked.entities))

    def _not_scored(self, ticket: int, error: Exception) -> None:
        if isinstance(error, ScoringError):
            self._post(on.ScoringFailed(ticket, error.reason))
            return
        self._counts.crashed(error)
        self._post(on.ScoringFailed(ticket, "crash"))

    def assess(self, command: do.Assess) -> None:
        """Have an answer held against evidence."""
        self._keep(self._tasks.create_task(self._assess_one(command)))

    async def _assess_one(self, command: do.Assess) -> None:
        said = on.Assessed(failed=command.profiles)
        if self._assess is not None:
            try:
                said = await self._assess(command)
            except Exception as error:  # noqa: BLE001 - what can't be assessed is told as such
                self._counts.crashed(error)
        self._post(said)

    def name(self, command: do.RecallNames | do.KeepNames) -> None:
        """Have it told, or kept, what stands for whose data in a conversation."""
        task = self._tasks.create_task(self._name_one(command))
        if isinstance(command, do.RecallNames) or not command.later:
            self._keep(task)

    async def _name_one(self, command: do.RecallNames | do.KeepNames) -> None:
        told: on.NamesKnown | on.NamesKept | on.NamesFailed = on.NamesFailed()
        if self._vault is not None:
            try:
                if isinstance(command, do.RecallNames):
                    told = await self._vault.recall(self.caller, command)
                else:
                    told = await self._vault.keep(self.caller, command)
            except Exception as error:  # noqa: BLE001 - it meets the fail mode, never the process (G23)
                self._counts.crashed(error)
        if isinstance(command, do.RecallNames) or not command.later:
            self._post(told)
        elif isinstance(told, on.NamesKnown):
            self._counts.degraded("names_of_two_answers")

    async def recall(self, command: do.Recall) -> None:
        """Have it told what a conversation has come to."""
        if self._past is None or self._past.at_once:
            await self._recall_one(command)
        else:
            self._keep(self._tasks.create_task(self._recall_one(command)))

    async def _recall_one(self, command: do.Recall) -> None:
        told = on.Recalled(None)
        try:
            if self._past is not None:
                told = await self._past.recall(self.caller, command)
        except Exception as error:  # noqa: BLE001 - it meets the fail mode, never the process (G23)
            self._counts.crashed(error)
            told = on.Recalled(None, failed=True)
        self._post(told)

    async def remember(self, command: do.Remember) -> None:
        """Have it kept what the exchange has come to: the next request is to know it."""
        try:
            if self._past is not None and not await self._past.remember(self.caller, command):
                self._counts.degraded("conversation_not_kept")
        except Exception as error:  # noqa: BLE001 - what has been answered has been judged for itself all the same
            self._counts.crashed(error)
            self._counts.degraded("conversation_not_kept")

    def describe(self, command: do.RecallTools | do.KeepTools) -> None:
        """Have it told, or kept, how a server's tools were described."""
        self._keep(self._tasks.create_task(self._describe_one(command)))

    async def _describe_one(self, command: do.RecallTools | do.KeepTools) -> None:
        told: on.ToolsKnown | on.ToolsKept | on.ToolsFailed = on.ToolsFailed()
        if self._tools is not None:
            try:
                if isinstance(command, do.RecallTools):
                    told = await self._tools.recall(command)
                else:
                    told = await self._tools.keep(command)
            except Exception as error:  # noqa: BLE001 - as above
                self._counts.crashed(error)
        self._post(told)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def leave(self) -> None:
        """Wait for nothing any more."""
        for task in self._waiting:
            task.cancel()
