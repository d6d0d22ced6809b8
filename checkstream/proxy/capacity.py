"""How much more is taken on: what running answers need, what has been admitted and not begun, what one more comes to.

Refusing is the last that a proxy should do, and it must come before those who run suffer (G32). So the need of a stream
is measured, from how busy the process is and how many streams bring text, and every admitted one counts with it from
the start, when it has not brought any. An upstream that sends at full speed is paused and loses nothing by it: of its
speed counts only what a reader can use.

What is measured in a moment is chance. Whoever admits when little seems to be needed, and refuses when much does,
takes on what the luckiest moment allows; so one answer's need is taken over seconds, times how many there are. Where
there is more to do than gets done, an answer that brings nothing may just not have been read: so all that have begun
count there, or the fewer were read, the more would be admitted.

Pure: no clock, no loop; `Meter` feeds it. INVARIANTS: who is within its fair share is refused only after all others;
what is admitted is never taken back; when nothing runs, everything is admitted; while one caller has much more than
another, the other is let in.
"""

from __future__ import annotations

import math
from collections import Counter

from checkstream.errors import Overloaded

STEADY_BYTES_PER_S = 15_000.0
"""Of an event stream, some 60 tokens a second: nobody reads faster, so what comes faster can wait."""
_SATURATED = 0.985
"""Above this share of the time there is more to do than is seen."""
_TELLING = 0.2
"""Below this share of the time, most of it is no stream's."""
GUESS = 1 / 256
"""What a stream needs until one has been measured, as a share of the process."""
_MOST = 1 / 27
"""No answer counts for more than this share, whatever was measured: a few share what there is, and short answers, or a
core that others use too, say little of what one needs."""
_KEPT = 0.9
"""How much of older measurements counts beside a new one."""
_QUIET = 4
"""After so many measurements without a byte an answer's upstream is taken to be silent."""
_FAIR, _FULL = 1.1, 0.99
"""Who is within its fair share may go so far above the limit, but not above what there is."""
_GREEDY = 4
"""Who has so many times what another would have has much more."""
FOR_MODEST = 0.125
"""Share of the process that is taken on beyond what there is for those who have little, while one has much more."""
_LONGEST_RETRY_S = 30.0


class Load:
    """What one exchange that was admitted brings with it; whoever has it ends it once."""

    __slots__ = ("_caller", "_capacity", "begun", "quiet", "taken")

    def __init__(self, capacity: Capacity, caller: str) -> None:
        """Begin before the answer."""
        self._capacity = capacity
        self._caller = caller
        self.begun = False
        """Its answer brought something before the last measurement."""
        self.taken = 0
        """Bytes of its answer since then."""
        self.quiet = 0
        """Measurements in a row in which it could have brought something and has not."""

    def took(self, count: int) -> None:
        """Note bytes of the answer."""
        self.taken += count

    def end(self) -> None:
        """Make room; harmless if it has ended."""
        self._capacity.ended(self, self._caller)


class Capacity:
    """What the process can do, as far as it is known, and what it has been promised to."""

    def __init__(self, limit: float) -> None:
        """Take on what needs up to `limit` of the process's time; 1: whatever comes."""
        self._limit = limit
        self._loads: set[Load] = set()
        self._callers: Counter[str] = Counter()
        self.need = GUESS
        """What one answer needs, as a share of the process."""
        self._needed = 0.0
        """What those need that have begun."""
        self._waiting = 0
        """How many have not."""
        self._brought: list[int] = []
        """Bytes of the answers that brought some since the last measurement, and have ended."""
        self._refused = 0
        self._ended = 0
        self._retry_s = 1.0

    def __len__(self) -> int:
        """Return how many exchanges run."""
        return len(self._loads)

    @property
    def expected(self) -> float:
        """What all that has been admitted will need, as a share of the process."""
        return self._needed + self._waiting * self.need

    def admit(self, caller: str = "", *, wait_s: float = 0.0, most_s: float = math.inf) -> Load:
        """Admit an exchange.

        Args:
            caller: Whose it is.
            wait_s: How long its prompt would wait for its checks.
            most_s: The most that it may.

        Raises:
            Overloaded: what has been admitted leaves no room for it.
        """
        full = self.expected + self.need > self._limit_of(caller) and not self._is_modest(caller)
        if (full or wait_s > most_s) and self._loads and self._limit < 1:
            self._refused += 1
            retry_s = min(max(self._retry_s, wait_s - most_s), _LONGEST_RETRY_S)
            message = "there is as much to check as can be checked in time; try again in a moment"
            raise Overloaded(message, retry_after_s=math.ceil(retry_s))
        load = Load(self, caller)
        self._loads.add(load)
        self._waiting += 1
        self._callers[caller] += 1
        return load

    def _limit_of(self, caller: str) -> float:
        """Return how far a caller may fill the process: above the limit while it has less than its fair share."""
        callers = len(self._callers.keys() | {caller})
        fair = (self._callers[caller] + 1) * self.need * callers <= self._limit
        return max(min(self._limit * _FAIR, _FULL), self._limit) if fair and callers > 1 else self._limit

    def _is_modest(self, caller: str) -> bool:
        """Tell whether a caller has so little beside another that it is taken on though there is no room.

        What runs is never taken back, so else one caller's long answers would keep all others out until they end. Turns
        go round by caller: what is taken on too much slows those who have the most.
        """
        most = max(self._callers.values(), default=0)
        if most < _GREEDY * (self._callers[caller] + 1):
            return False
        modest = sum(count for count in self._callers.values() if _GREEDY * count <= most)
        return (modest + 1) * self.need <= FOR_MODEST

    def ended(self, load: Load, caller: str) -> None:
        """Make room; harmless if it has been made."""
        if load not in self._loads:
            return
        self._loads.remove(load)
        self._callers[caller] -= 1
        if not self._callers[caller]:
            del self._callers[caller]
        self._ended += 1
        if load.taken:
            self._brought.append(load.taken)
        if load.begun:
            self._needed = max(self._needed - self.need, 0.0)
        else:
            self._waiting -= 1

    def measure(self, seconds: float, busy: float) -> None:
        """Take note of a stretch of time.

        Args:
            seconds: How long it was.
            busy: Share of it in which the process's busiest thread worked, or waited for a core to work on; 0..1.
        """
        self._retry_s = max(self._refused / max(self._ended / seconds, 0.5), 1.0)
        self._refused = self._ended = 0
        full = busy > _SATURATED
        ended, taken = len(self._brought), sum(self._brought)
        running, more = self._look(full)
        taken += more
        self._brought.clear()
        if not running + ended:
            self._needed = 0.0
            return
        useful = min(1.0, STEADY_BYTES_PER_S * seconds * (running + ended) / taken) if taken else 1.0
        needed = min(busy * useful, running * _MOST)
        if busy >= _TELLING:
            need = min(busy * useful / (running + ended), _MOST)
            if full and useful == 1.0:
                need = max(need, self.need)  # there is more to do than gets done
            kept = _KEPT if self.need != GUESS else 0.0
            self.need = kept * self.need + (1 - kept) * need
            needed = max(running * self.need, needed if full else 0.0)
        self._needed = needed

    def _look(self, full: bool) -> tuple[int, int]:
        """Return how many of those that run bring text, and how many bytes they have brought; begin to count anew."""
        running = taken = 0
        for load in self._loads:
            if load.taken:
                taken += load.taken
                self._waiting -= not load.begun
                load.begun, load.taken, load.quiet = True, 0, 0
            elif not full:
                load.quiet += 1
            running += load.begun and load.quiet < _QUIET
        return running, taken
