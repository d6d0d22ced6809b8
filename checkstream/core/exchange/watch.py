"""What of an exchange is a matter of time and room: its timers, the silence of both sides, the bytes that are held."""

from __future__ import annotations

from typing import Literal

from checkstream.core.commands import ArmTimer, DisarmTimer, PauseUpstream, ResumeUpstream
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.plan import Plan

Timer = Literal["stall", "keepalive", "budget", "hold"]
_TIMERS: tuple[Timer, ...] = ("stall", "keepalive", "budget", "hold")
UPSTREAM_STATUS = {"first_byte": 504, "idle": 504, "room": 503}
"""Why an upstream was given up -> the status by which its caller is told; of all else it is 502."""
_MAX_PENDING_CHECKS = 4
"""Checks of one stream that may wait before reading pauses: an upstream that outruns the classifiers must not make
their answers late."""
_LEAST_KEEPALIVE_MS = 1000.0


class Watch:
    """Watches one exchange; its commands go the way of those of `checking`."""

    __slots__ = ("_checking", "_heard_at", "_plan", "_sent_at", "_timers", "paused")

    def __init__(self, plan: Plan, checking: Checking) -> None:
        """Begin with no timer armed.

        Args:
            plan: What the route asks for.
            checking: Knows what waits for classifiers, and the time of the event that is being taken.
        """
        self.paused = False
        """The upstream is not read from."""
        self._plan = plan
        self._checking = checking
        self._timers: set[Timer] = set()
        self._heard_at = 0.0
        self._sent_at = 0.0

    def looks_after(self, held_bytes: int, *, scored: bool) -> bool:
        """Tell whether nothing is to be done about so many bytes that wait."""
        if self.paused or held_bytes > self._plan.held_bytes:
            return False
        return not scored or ("stall" in self._timers and self._checking.pending < _MAX_PENDING_CHECKS)

    def begin_stream(self) -> None:
        """Keep the connection of a stream alive from here on."""
        if "keepalive" not in self._timers:
            self._arm("keepalive", self._plan.keepalive_ms)

    def resume(self) -> None:
        """Read again: what has filled the room is gone, or another upstream answers."""
        if self.paused:
            self.paused = False
            self._checking.commands.append(ResumeUpstream())

    def heard(self) -> None:
        """Note that the upstream has said something."""
        self._heard_at = self._checking.now

    def sent(self) -> None:
        """Note that the caller was sent something."""
        self._sent_at = self._checking.now

    def rang(self, timer: Timer) -> None:
        """Note that a timer has run out."""
        self._timers.discard(timer)

    def arm(self) -> None:
        """See to it that checks are noticed which pass their budget, or wait for too long."""
        if "budget" not in self._timers and (left_ms := self._checking.budget_left_ms) is not None:
            self._arm("budget", left_ms)
        if "hold" not in self._timers and (left_ms := self._checking.hold_left_ms) is not None:
            self._arm("hold", left_ms)

    def end(self) -> None:
        """Forget every timer."""
        self._checking.commands += [DisarmTimer(timer) for timer in _TIMERS if timer in self._timers]

    def wants_comment(self, *, held: bool) -> bool:
        """Tell, when the timer has run out, whether the caller has to be shown that the stream lives; arm it anew."""
        quiet_ms = (self._checking.now - self._sent_at) * 1000
        wanted = held and quiet_ms >= self._plan.keepalive_ms
        if wanted:
            self.sent()
            quiet_ms = 0.0
        self._arm("keepalive", max(self._plan.keepalive_ms - quiet_ms, _LEAST_KEEPALIVE_MS))
        return wanted

    def is_silent(self, now: float) -> bool:
        """Tell whether the upstream has said nothing for so long that what is there may be checked early."""
        return (now - self._heard_at) * 1000 >= self._plan.hold.max_delay_ms

    def stalls(self) -> bool:
        """Tell, when the timer has run out, whether the upstream has been silent for so long; else arm it anew."""
        if self.is_silent(self._checking.now):
            return True
        silent_ms = (self._checking.now - self._heard_at) * 1000
        self._arm("stall", self._plan.hold.max_delay_ms - silent_ms)
        return False

    def holds_too_much(self, held_bytes: int, *, scored: bool) -> bool:
        """Keep what is held within its caps, in bytes, in checks and in time; tell whether that can't be done.

        Args:
            held_bytes: Bytes of events that wait.
            scored: Classifiers have a say over the answer, so that a stall may let go of what waits.
        """
        waiting, most = self._checking.waiting, self._plan.held_bytes
        if held_bytes > most and not waiting and not (self.paused and held_bytes and scored):
            return True
        if not self.paused:
            if held_bytes > most or self._checking.pending >= _MAX_PENDING_CHECKS:
                self.paused = True
                self._checking.commands.append(PauseUpstream())
        elif held_bytes <= (most // 2 if waiting else most) and self._checking.pending <= 1:
            # Where nothing is being checked, only more text can let go of what a pattern holds.
            self.resume()
        if held_bytes and scored and "stall" not in self._timers:
            self._arm("stall", self._plan.hold.max_delay_ms)
        return False

    def _arm(self, timer: Timer, after_ms: float) -> None:
        self._timers.add(timer)
        self._checking.commands.append(ArmTimer(timer, after_ms))
