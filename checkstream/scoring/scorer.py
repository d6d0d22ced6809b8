"""The async face of the classifiers: text in, scores or one typed error out.

Whatever a model does (hang, crash, answer nonsense), a caller of `Scorer.score` gets finite scores for every label
that it asked for, or a `ScoringError` with the reason. Where there is much to do it waits, as long as it likes: only a
detector that is broken fails, never one that is busy (G32). What follows from an error is the policy's fail mode, not
this module's choice. It knows nothing of streams, policies or metrics; what it did is told to an `Observer`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from checkstream.core.events import EntityFound
from checkstream.errors import ScoringError, ScoringReason
from checkstream.scoring.breaker import Breaker, State
from checkstream.scoring.catalog import Model
from checkstream.scoring.known import Known
from checkstream.scoring.lane import Lane
from checkstream.scoring.line import LaneLimits, Runner
from checkstream.scoring.remote import RemoteRunner, RemoteSession
from checkstream.scoring.runners import LoopRunner, PairRunner, ThreadRunner
from checkstream.scoring.session import Reading, Session
from checkstream.scoring.slices import Slices
from checkstream.scoring.ticket import Ticket


class Observer(Protocol):
    """Who wants to know what the scorer does."""

    def checked(self, detector: str, seconds: float, failure: ScoringReason | None) -> None:
        """Hear that a request to one detector ended: with scores, or with this failure."""

    def breaker(self, detector: str, lane: str, state: State) -> None:
        """Hear that the circuit of a detector's lane (`ingress`, `midstream`) changed to `state`."""


class ScorerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much the scorer takes on, and when it rests a detector."""

    lane: LaneLimits = LaneLimits()
    breaker_failures: int = 5
    """Failures in a row that open a circuit."""
    breaker_open_s: float = 5.0
    """Seconds until an open circuit is probed."""
    spare_after_s: float = 0.03
    """So long after the last check of an answer, prompts may have a second thread for what a gate doubts."""
    hang_s: float = 10.0
    """A read that neither works nor ends for so long hangs, as far as the process itself has run meanwhile."""
    close_s: float = 5.0
    """The most that `close` waits for a running batch."""


class Checked(msgspec.Struct, frozen=True):
    """What classifiers say of one text."""

    scores: dict[str, float]
    """`classifier.label` -> 0..1, for every label of every classifier asked."""
    entities: tuple[EntityFound, ...] = ()
    """In order of their place; those of one classifier don't overlap."""
    again: bool = False
    """All of it was known, since the text has come from the same caller before."""


class Asked:
    """A text that classifiers are asked about. Whoever has it takes its answer, or leaves."""

    def __init__(self, tickets: Sequence[tuple[Sequence[str], Ticket]]) -> None:
        """Wait for tickets, each with the names of its scores."""
        self._tickets = tickets

    @property
    def settled(self) -> bool:
        """The answer is there: `answer` will not wait."""
        return all(ticket.over for _, ticket in self._tickets)

    def answered(self) -> Checked:
        """Return the answer, which is there.

        Raises:
            ScoringError: see `answer`.
        """
        try:
            return self._joined((names, ticket.future.result()) for names, ticket in self._tickets)
        finally:
            self.leave()

    async def answer(self) -> Checked:
        """Return the answer.

        Raises:
            ScoringError: some classifier gave no usable answer; `reason` is `deadline`, `crash`,
                `garbage`, `rested` or, when it closes, `overload`. What the others say is not kept.
        """
        try:
            return self._joined([(names, await ticket.future) for names, ticket in self._tickets])
        finally:
            self.leave()

    def _joined(self, readings: Iterable[tuple[Sequence[str], Reading]]) -> Checked:
        """Join what classifiers say of the text, each with the names of its scores."""
        scores: dict[str, float] = {}
        found: list[EntityFound] = []
        for names, reading in readings:
            scores.update(zip(names, reading.scores.tolist(), strict=True))
            found += reading.entities
        found.sort(key=lambda entity: (entity.start, entity.end, entity.entity))
        again = bool(self._tickets) and all(ticket.recalled for _, ticket in self._tickets)
        return Checked(scores, tuple(found), again)

    def leave(self) -> None:
        """Wait no longer; harmless after the answer."""
        for _, ticket in self._tickets:
            ticket.abandon()


class Scorer:
    """Every classifier of the process, behind one method. Belongs to one event loop."""

    def __init__(
        self,
        models: Sequence[Model],
        open_session: Callable[[Model], Session],
        *,
        observer: Observer | None = None,
        limits: ScorerLimits | None = None,
    ) -> None:
        """Open a session for each model, and the threads that they need; call it on the loop.

        Args:
            models: what may be asked, by `Model.name`.
            open_session: loads a model.
            observer: told of every ended request and every change of a circuit.
            limits: queue, batch and breaker bounds.

        Raises:
            ModelError: a model can't be loaded.
        """
        limits = limits or ScorerLimits()
        self.labels: Mapping[str, tuple[str, ...]] = {model.name: model.labels for model in models}
        """Name of a classifier -> its labels, in the order of the model's output."""
        self._taggers = frozenset(model.name for model in models if model.entry.entities)
        self._observer = observer
        self._remote = [model.name for model in models if model.remote is not None]
        self._closed = False
        self._names = {model.name: [f"{model.name}.{label}" for label in model.labels] for model in models}
        self._slices = Slices()
        self._loop_runner = LoopRunner()
        self._threads: dict[str, ThreadRunner] = {}
        self._services: list[RemoteRunner] = []
        self._lanes: dict[tuple[str, bool], Lane] = {}
        self._states: dict[Lane, State] = {}
        self._answers_s = -math.inf
        """When somebody last asked about an answer, monotonic seconds."""
        for model in models:
            session = open_session(model)
            for ingress in (False, True):
                self._lanes[model.name, ingress] = self._lane(model, session, limits, ingress=ingress)

    def _lane(self, model: Model, session: Session, limits: ScorerLimits, *, ingress: bool) -> Lane:
        return Lane(
            model.name,
            session,
            labels=len(model.labels),
            limits=limits.lane,
            new_breaker=lambda: Breaker(failures=limits.breaker_failures, open_s=limits.breaker_open_s),
            runner=self._runner(session, limits, ingress=ingress),
            gate_runner=None if session.gate is None else self._gate_runner(limits, ingress=ingress),
            slices=self._slices,
            report=self._report,
            known=_known(session) if ingress else None,  # answers are new
            ingress=ingress,
        )

    def _runner(self, session: Session, limits: ScorerLimits, *, ingress: bool) -> Runner:
        if isinstance(session, RemoteSession):
            self._services.append(RemoteRunner(session))
            return self._services[-1]
        if session.inline:
            return self._loop_runner
        first = self._thread(_lane_name(ingress=ingress), limits)
        if not ingress or session.gate is None or cores() < 2:
            return first
        # What a gate doubts of a long prompt takes half of the time on two cores. Answers come first: while there are
        # any, the loop that carries them would wait for its core.
        return PairRunner(first, self._thread("spare", limits, lambda: self._quiet_s() >= limits.spare_after_s))

    def _quiet_s(self) -> float:
        """Return how long nobody has asked about an answer."""
        return time.monotonic() - self._answers_s

    def _gate_runner(self, limits: ScorerLimits, *, ingress: bool) -> Runner:
        # A prompt has many windows, and may wait: the loop is for answers. While its next windows are shown to the
        # gate, those in doubt are read: a long prompt takes half of the time.
        return self._thread("gate", limits) if ingress else self._loop_runner

    def _thread(self, name: str, limits: ScorerLimits, free: Callable[[], bool] = lambda: True) -> ThreadRunner:
        if name not in self._threads:
            self._threads[name] = ThreadRunner(name, hang_s=limits.hang_s, close_s=limits.close_s, free=free)
        return self._threads[name]

    @property
    def unheard(self) -> tuple[str, ...]:
        """Classifiers that services run and that have answered nothing yet: none is asked before a text comes."""
        lanes = self._lanes
        return tuple(name for name in self._remote if not (lanes[name, False].heard or lanes[name, True].heard))

    async def score(
        self,
        classifiers: tuple[str, ...],
        text: str,
        deadline_ms: float,
        *,
        ingress: bool = False,
        fresh_chars: int = 0,
        open_chars: int = 0,
    ) -> Checked:
        """Score one text with each of the classifiers: ask, and wait for the answer. See `ask`.

        Raises:
            ScoringError: some classifier refused, or gave no usable answer; see `Asked.answer`.
        """
        asked = self.ask(
            classifiers, text, deadline_ms, ingress=ingress, fresh_chars=fresh_chars, open_chars=open_chars
        )
        return await asked.answer()

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
        """Ask each of the classifiers about one text.

        Args:
            classifiers: names of classifiers.
            text: the window to score, of any length.
            deadline_ms: the most work of a classifier on a window of `UNIT_TOKENS`; a larger one has it for each
                such part. The time that it waits for its turn does not count.
            ingress: part of a prompt: waits in its own queue, behind the checks of answers.
            fresh_chars: so much at the end of the text must be scored, the rest is context; 0: all.
            open_chars: so much at the end must be searched for entities; 0: all.
            caller: whose text it is: a prompt that comes from it again is not read again. None: nobody's.
            share: in whose share of the work it is: shares that wait are served in turn.
            parts: lengths of the short texts that it is made of, a line's end between them; (): it is one. Their scores
                are the highest of any.

        Returns:
            What will have a score for every label of every classifier, and the entities that they found; perhaps it
            has it already.

        Raises:
            ScoringError: some classifier is rested, or not loaded (`crash`), or closed (`overload`).
        """
        if not ingress:
            self._answers_s = time.monotonic()
        tickets: list[tuple[Sequence[str], Ticket]] = []
        try:
            for name in classifiers:
                lane = self._lane_of(name, ingress=ingress)
                covered_chars = open_chars if name in self._taggers else fresh_chars
                ticket = lane.submit(text, deadline_ms / 1000, covered_chars, caller=caller, share=share, parts=parts)
                tickets.append((self._names[name], ticket))
        except Exception:
            Asked(tickets).leave()
            raise
        return Asked(tickets)

    def _lane_of(self, name: str, *, ingress: bool) -> Lane:
        if self._closed:
            raise ScoringError(f"classifier `{name}` is closed", reason="overload")
        lane = self._lanes.get((name, ingress))
        if lane is None:
            raise ScoringError(f"classifier `{name}` is not loaded; name one of the manifest", reason="crash")
        return lane

    def _report(self, lane: Lane, seconds: float, failure: ScoringReason | None) -> None:
        if self._observer is None:
            return
        self._observer.checked(lane.name, seconds, failure)
        state = lane.state
        if self._states.get(lane, "closed") != state:
            self._states[lane] = state
            self._observer.breaker(lane.name, _lane_name(ingress=lane.ingress), state)

    @property
    def answering_s(self) -> float:
        """CPU time that the thread which reads answers has spent on them."""
        return sum(
            line.work_s for lane in self._lanes.values() if not lane.ingress for line in lane.lines if line.apart
        )

    def wait_s(self, share: str, chars: int) -> float:
        """Return how long a prompt of so many characters would wait for the slowest classifier of the process."""
        return max((lane.wait_s(share, chars) for lane in self._lanes.values() if lane.ingress), default=0.0)

    async def close(self) -> None:
        """Fail what waits, end the threads. Nothing of the scorer runs afterwards."""
        self._closed = True
        self._slices.close()
        for lane in self._lanes.values():
            lane.refuse_all()
        await self._loop_runner.close()
        for service in self._services:
            await service.close()
        for thread in self._threads.values():
            await thread.close()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _known(session: Session) -> Known | None:
    """Return a memory for what is dear to read, and has a model that can't change unseen."""
    return None if session.inline or isinstance(session, RemoteSession) else Known()


def _lane_name(*, ingress: bool) -> str:
    return "ingress" if ingress else "midstream"
