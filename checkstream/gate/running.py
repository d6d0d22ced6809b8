"""One evaluation from end to end: opens what a configuration names, runs the steps, keeps the run."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

import msgspec

from checkstream.errors import GateError, StepFailed
from checkstream.gate.kept import Kept
from checkstream.gate.ledger import Ledger
from checkstream.gate.past import LocalPast
from checkstream.gate.pipeline import evaluate
from checkstream.gate.report import Report, ended_run, headline, reported
from checkstream.gate.settings import GateSettings, Model
from checkstream.gate.shared_past import SharedPast
from checkstream.gate.state import State
from checkstream.gate.steps import World
from checkstream.gate.terms import Run, Said


@dataclass(frozen=True, slots=True)
class Opened:
    """What a configuration names, ready to be asked."""

    world: World
    snapshot: str
    """Names the state of the trusted documents."""
    verifier: str
    """Name and version of what judges claims."""
    shared: SharedPast | None = None
    """The history of many machines, if there is one."""
    library: str = ""
    """Digest of the files of prompts; empty: there are none."""


class Gate:
    """Evaluates models and keeps what came of it."""

    def __init__(
        self,
        ledger: Ledger,
        opening: Callable[[GateSettings], AbstractAsyncContextManager[Opened]],
        *,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - runs are told by the calendar
    ) -> None:
        """Keep runs in `ledger`; `opening` connects to models and stores."""
        self.ledger = ledger
        self._opening = opening
        self._clock = clock

    async def evaluate(
        self,
        config: GateSettings,
        *,
        resume: str | None = None,
        begun: Callable[[str, int], None] = lambda _step, _number: None,
    ) -> Report:
        """Run one evaluation.

        Args:
            config: what is evaluated.
            resume: id of a run that was cut off or failed; items that it finished are not asked again.
            begun: told of each step as it begins.

        Raises:
            GateError: a model or store can't be used, or `resume` names no run that can go on.
            StepFailed: an item failed; the run can go on later.
            StoreUnusable: the documents or the history of many machines can't be used; the run can go on later.
        """
        async with self._opening(config) as opened:
            run = await asyncio.to_thread(self._begun, config, opened, resume)
            memory = Kept(self.ledger, run.run_id, run.begun)
            await _require_target(memory, config.target, run.run_id)
            try:
                state = await evaluate(config, replace(opened.world, memory=memory), begun=begun)
            except StepFailed as failed:
                failure = msgspec.structs.replace(run, ended=self._clock(), failure=failed.told)
                await asyncio.to_thread(self.ledger.end, failure, None)
                raise
            return await self._ended(state, run, opened.shared)

    async def _ended(self, state: State, run: Run, shared: SharedPast | None) -> Report:
        """Tell a run that came to its end, and keep what it came to."""
        baseline = await (shared or LocalPast(self.ledger)).last_deployed(run.config_hash, run.begun)
        report = reported(state, run, self._clock(), baseline)
        decided = Said(run_id=run.run_id, kind="decision", item=run.target, at=run.begun, text=headline(report))
        ended, text = ended_run(run, report), msgspec.json.encode(report).decode()
        if shared is not None:  # first: a run whose history can't be kept stays undecided, and can go on
            said = await asyncio.to_thread(self.ledger.said, run.run_id)
            await shared.record(ended, text, [*said, decided])
        await asyncio.to_thread(self.ledger.end, ended, text, [decided])
        return report

    def _begun(self, config: GateSettings, opened: Opened, resume: str | None) -> Run:
        """Return a new run, or the one that goes on.

        Raises:
            GateError: that run is unknown, decided, or was of something else.
        """
        now = self._clock()
        made = Run(
            run_id=resume or f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}-{secrets.token_hex(4)}",
            config_hash=config.fingerprint(opened.library),
            target=config.target.name,
            verifier=opened.verifier,
            snapshot=opened.snapshot,
            begun=now,
        )
        if resume is None:
            self.ledger.begin(made)
            return made
        known = self.ledger.run(resume)
        if known is None or known.decision is not None:
            raise GateError(f"there is no run `{resume}` that could go on; list those that did not end")
        for name in ("config_hash", "target", "verifier", "snapshot"):
            if getattr(known, name) != getattr(made, name):
                raise GateError(f"run `{resume}` had another {name.replace('_', ' ')}; begin a new run")
        return known


async def _require_target(memory: Kept, target: Model, run_id: str) -> None:
    """Note how the target is asked, or let a run go on that asked it alike.

    Raises:
        GateError: the run asked it at another address, with another system prompt, or for longer answers.
    """
    asked = hashlib.sha256(msgspec.json.encode(target)).hexdigest()
    known = await memory.recall("target", "asked", str)
    if known is None:
        await memory.keep("target", "asked", asked)
    elif known != asked:
        raise GateError(f"run `{run_id}` asked its target in another way; begin a new run")
