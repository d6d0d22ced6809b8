"""A circuit breaker: stops asking a detector that keeps failing, and tries it again now and then (G24).

closed --`failures` failures in a row--> open --`open_s` later, one probe--> half open --success--> closed
                                          ^----------------failure of the probe----------'

Pure but for its own state; time is passed in. Results of requests that were admitted before the circuit
opened change nothing: only the probe decides.

While the texts of one share alone have failed, the circuit is open for that share alone: it may be they that the
detector can't read, and nobody is to be kept from it by what another writes. As many failures of others in a row open
it for all.
"""

from __future__ import annotations

from typing import Literal

State = Literal["closed", "open", "half_open"]


class Breaker:
    """The circuit of one detector in one lane."""

    def __init__(self, *, failures: int = 5, open_s: float = 5.0) -> None:
        """Open after `failures` failures in a row, for `open_s` seconds."""
        self._failures = failures
        self._open_s = open_s
        self._streak = 0
        self._opened_at = 0.0
        self._failed: frozenset[str] = frozenset()
        """Shares whose texts have failed since the last success; no more than two are needed."""
        self.state: State = "closed"

    def admit(self, now: float, share: str = "") -> Literal["pass", "probe", "wait", "refuse"]:
        """Say whether a request may go ahead.

        `probe`: its result decides over the circuit; whoever gets it must answer with `succeed`, `fail` or `release`.
        `wait`: another's result does; ask again when it is there.
        """
        if self.state == "closed" or self._is_open_for_others(share):
            return "pass"
        if self.state == "half_open":
            return "wait"
        if now - self._opened_at >= self._open_s:
            self.state = "half_open"
            return "probe"
        return "refuse"

    def succeed(self, *, probe: bool) -> None:
        """Note a usable answer."""
        if probe:
            self.state = "closed"
        if self.state == "closed":
            self._failed = frozenset()
        self._streak = 0

    def fail(self, now: float, share: str = "", *, probe: bool) -> None:
        """Note a deadline, a crash or garbage, of a text of `share`."""
        if self.state == "closed" or self._is_open_for_others(share):
            self._streak += 1
        opens = probe or self._streak >= self._failures
        if (self.state == "closed" or opens) and len(self._failed) <= 1:
            self._failed |= {share}
        if opens:
            self.state = "open"
            self._opened_at = now
            self._streak = 0

    def _is_open_for_others(self, share: str) -> bool:
        return len(self._failed) == 1 and share not in self._failed

    def release(self) -> None:
        """Note that the probe was abandoned without a result: the next request probes again."""
        if self.state == "half_open":
            self.state = "open"
