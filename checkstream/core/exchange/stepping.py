"""How an exchange takes its events: in turns, so that nothing that takes long makes others wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from checkstream.core.commands import AnyCommand, Yield
from checkstream.core.events import AnyEvent, DownstreamClosed, Resumed
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.meter import Steps
from checkstream.core.exchange.watch import Watch

_STEP_WORK = 5
"""Of any step, besides what it says itself."""


class Stepping(ABC):
    """The part of a state machine that does what follows from its events, a turn at a time."""

    def __init__(self, checking: Checking, watch: Watch) -> None:
        """Begin before the first event.

        Args:
            checking: Collects the commands, and counts work.
            watch: Its timers are armed for what is asked.
        """
        self.__checking = checking
        self.__watch = watch
        self._events: deque[AnyEvent] = deque()
        """What has come while an event was being taken, of which some steps are left."""
        self._steps: Steps | None = None
        self._exhausted = False
        self._forgets = False
        """Nothing is left to do but to forget."""

    def receive(self, event: AnyEvent, now: float) -> list[AnyCommand]:
        """Take one event at `now` (monotonic seconds) and return the commands that follow, in order.

        An event that has no meaning in the present state (a late score, a second end) is ignored.
        """
        checking = self.__checking
        checking.commands = []
        checking.now = now
        if isinstance(event, DownstreamClosed) and not self._forgets:
            self._steps = None  # nobody waits for what is left of it
            self._events.clear()
        if not isinstance(event, Resumed):
            self._events.append(event)
        checking.meter.begin_turn()
        over = self._take_turn()
        if checking.waiting:
            self.__watch.arm()
        if not over:
            checking.commands.append(Yield())
        return checking.commands

    def _take_turn(self) -> bool:
        """Do what is to be done about the events that have come, as far as one turn goes; return whether that is all.

        Where a turn ends changes nothing but the time: what comes meanwhile waits for its own turn.
        """
        meter = self.__checking.meter
        while (steps := self._next_steps()) is not None:
            for _ in steps:
                meter.spent += _STEP_WORK
                if meter.exhausted and not self._exhausted:
                    self._exhausted = True
                    self._steps = self._steps_without_work() or steps
                    break
                if meter.turn_over:
                    return False
            else:
                self._steps = None
        return True

    def _next_steps(self) -> Steps | None:
        """Return what is to be done next: an event at a time, and when all is over, to forget what it was about.

        Judges know who checks, who knows the ledger. Apart, all of an exchange is freed when it is left; a full
        collection, which would have to find it, stops every stream.
        """
        if self._steps is None and self._events:
            self._steps = self._steps_of(self._events.popleft())
        elif self._steps is None and self.over and not self._forgets:
            self._forgets = True
            self._steps = self._forgetting()
        return self._steps

    def _forgetting(self) -> Steps:
        """Take apart what the exchange has known, in steps."""
        yield from self.__checking.forgetting()

    @property
    @abstractmethod
    def over(self) -> bool:
        """The record was written: nothing follows."""

    @abstractmethod
    def _steps_of(self, event: AnyEvent) -> Steps:
        """Take one event, then go as far as that allows."""

    @abstractmethod
    def _steps_without_work(self) -> Steps | None:
        """Let the fail mode decide on an exchange that has done all the work that it may do; None: it goes on."""
