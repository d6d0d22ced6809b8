"""A lane: one detector for prompts or for answers. Texts become windows, windows wait in lines, tickets get answers.

Each detector has two lanes, so that a flood of long prompts doesn't delay the checks of running answers. A lane decides
what is asked and who gets which answer; *when* it runs and on which thread is its runners' business. Whatever is asked
waits until it is read: nothing is refused because much waits (G32). A text is cut as it is read, so that the memory of
what waits is bounded by the number of texts, not by their length.

A model and the gate before it have a line and a circuit each: a gate goes on clearing texts before a model that hangs,
and what it clears says nothing of the model. While that rests, only what is in doubt is refused.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from checkstream.errors import ScoringError, ScoringReason
from checkstream.scoring.breaker import Breaker, State
from checkstream.scoring.known import Known, key_of, key_of_part
from checkstream.scoring.line import LaneLimits, Line, Runner, Waiting
from checkstream.scoring.outcomes import Outcome, judged
from checkstream.scoring.session import Gate, Reading, Session, Window
from checkstream.scoring.slices import Slices
from checkstream.scoring.ticket import Ticket


class Lane:
    """The lines of one detector, and who waits for what."""

    def __init__(
        self,
        name: str,
        session: Session,
        *,
        labels: int,
        limits: LaneLimits,
        new_breaker: Callable[[], Breaker],
        runner: Runner,
        gate_runner: Runner | None,
        slices: Slices,
        report: Callable[[Lane, float, ScoringReason | None], None],
        known: Known | None,
        ingress: bool,
    ) -> None:
        """Queue for `session`.

        Args:
            name: the detector.
            session: the model.
            labels: how many scores it gives.
            limits: bounds of queue and batches.
            new_breaker: makes a circuit for each line.
            runner: runs the model.
            gate_runner: shows windows to the model's gate first, if it has one; None: the model asks its gate itself.
            slices: cuts texts.
            report: hears of every settled ticket and its seconds.
            known: remembers what was said of texts; None: they are not expected to come again.
            ingress: a lane for prompts.
        """
        self.name = name
        self.ingress = ingress
        self._session = session
        self._labels = labels
        self._limits = limits
        self._new_breaker = new_breaker
        self._slices = slices
        self._report = report
        self._known = known
        self._model = session
        self._gate: Gate | None = None if gate_runner is None else session.gate
        if gate_runner is None or self._gate is None:
            self._first = self._line = self._new_line(self._read, self._answer, runner)
        else:
            self._model = self._gate.model
            self._line = self._new_line(self._read, self._answer, runner)
            self._first = self._new_line(self._glance, self._pass_on, gate_runner, brief=True)
        self._open: Counter[str] = Counter()
        """Share -> characters that it has asked about and that have not been answered."""
        self._read_chars = 0
        """Of all texts that have been answered."""
        self._tickets: set[Ticket] = set()
        """Who waits."""
        self._cutting: set[Ticket] = set()
        """Those of them whose text is being cut."""

    def _new_line(
        self,
        read: Callable[[Window], Outcome | None],
        take: Callable[[Waiting, Outcome | None], None],
        runner: Runner,
        *,
        brief: bool = False,
    ) -> Line:
        return Line(
            self.name,
            read,
            take,
            runner=runner,
            breaker=self._new_breaker(),
            limits=self._limits,
            ingress=self.ingress,
            brief=brief,
        )

    @property
    def state(self) -> State:
        """Of the circuits, that of the line which is worse off."""
        states = self._first.state, self._line.state
        return max(states, key=_BADNESS.__getitem__)

    @property
    def heard(self) -> bool:
        """The model has answered something."""
        return self._line.answered

    @property
    def lines(self) -> tuple[Line, ...]:
        """Where windows wait: for the gate, if there is one, and for the model."""
        return (self._line,) if self._first is self._line else (self._first, self._line)

    def submit(
        self,
        text: str,
        deadline_s: float,
        fresh_chars: int = 0,
        *,
        caller: str | None = None,
        share: str = "",
        parts: Sequence[int] = (),
    ) -> Ticket:
        """Queue a text. A long one is cut in slices of the loop, while its first windows are being read.

        Args:
            text: what to score.
            deadline_s: the most work on a window of `UNIT_TOKENS`, seconds.
            fresh_chars: so much at the end of the text must be covered; 0: all.
            caller: whose text it is; None: nobody's, and not to be remembered.
            share: in whose share of the work it is.
            parts: lengths of the short texts that it is made of, a sign between them: a gate may be shown several at
                once, the model reads each by itself. None: it is one.

        Returns:
            The ticket, settled perhaps: what is known is answered at once, and what a gate clears while the loop has
            time for it. It fails, perhaps at once, with `crash` or `garbage` when the text can't be cut into windows,
            and with `rested` when a gate doubts it while the model's circuit is open.

        Raises:
            ScoringError: refused, since the circuit is open (`rested`).
        """
        together = self._gate is not None and len(parts) > 1
        key = None if together or self._known is None or caller is None else key_of(caller, text, fresh_chars)
        windows = self._windows(text, fresh_chars, parts if together else ())
        ticket = Ticket(self, windows, deadline_s=deadline_s, share=share, key=key, chars=len(text))
        admission = self._first.admit(ticket)
        if admission == "refuse":
            self._report(self, 0.0, "rested")
            raise self._rested()
        if admission == "wait":
            self._wait_for(ticket)
            self._first.postpone(ticket, lambda: self._begin(ticket))
            return ticket
        if self._known is not None and caller is not None and admission == "pass":
            reading = None if key is None else self._known.find(key)
            if reading is not None:
                ticket.recall(reading)
                return ticket
            ticket.caller = caller
        self._wait_for(ticket)
        self._go_on_cutting(ticket)
        return ticket

    def _wait_for(self, ticket: Ticket) -> None:
        self._tickets.add(ticket)
        self._open[ticket.share] += ticket.chars

    def _begin(self, ticket: Ticket) -> None:
        """Read a text that has waited for what comes of a probe."""
        match self._first.admit(ticket):
            case "refuse":
                ticket.fail(self._rested())
            case "wait":
                self._first.postpone(ticket, lambda: self._begin(ticket))
            case "pass" | "probe":
                self._go_on_cutting(ticket)

    @property
    def work_s(self) -> float:
        """CPU time that all reading here has taken."""
        return sum(line.work_s for line in self.lines)

    def wait_s(self, share: str, chars: int) -> float:
        """Return how long a text of so many characters would take, with all that its share lets go first.

        Shares are served in turn, so no other is waited for longer than one's own text takes.
        """
        if not self._read_chars:
            return 0.0
        own = self._open[share] + chars
        others = sum(min(open_chars, own) for other, open_chars in self._open.items() if other != share)
        return (own + others) * self.work_s / self._read_chars

    def _windows(self, text: str, fresh_chars: int, parts: Sequence[int]) -> Iterator[Window | None]:
        if self._gate is None or not parts:
            yield from self._session.cut(text, fresh_chars)
            return
        starts = accumulate((size + 1 for size in parts), initial=0)
        yield from self._gate.together([text[start : start + size] for start, size in zip(starts, parts, strict=False)])

    def _go_on_cutting(self, ticket: Ticket) -> None:
        self._cutting.add(ticket)
        self._slices.add(self._cut(ticket), ingress=self.ingress)

    def _cut(self, ticket: Ticket) -> Iterator[None]:
        """Cut a text into windows, step by step, as far ahead as it may be; what goes wrong fails the ticket."""
        found = False
        try:
            for window in ticket.windows:
                if ticket.over:
                    return
                if window is not None:
                    if window.tokens < 1:
                        break
                    self._show(ticket, window)
                    if ticket.ahead >= self._limits.ahead_tokens:
                        return
                yield
            else:
                found = not ticket.empty
        except Exception as cause:  # noqa: BLE001 - a model's code may raise anything
            self._fail_to_cut(ticket, cause)
        finally:
            self._cutting.discard(ticket)
        if not found:
            ticket.fail(ScoringError(f"classifier `{self.name}` cut a text into nothing", reason="garbage"))
        ticket.seal()

    def _show(self, ticket: Ticket, window: Window) -> None:
        """Have a window of a text read, unless it is known."""
        ticket.expect(window)
        said = self._recalled(ticket, window)
        if said is None:
            self._first.put(ticket, window)
        else:
            ticket.take(window, said)

    def _fail_to_cut(self, ticket: Ticket, cause: Exception) -> None:
        error = ScoringError(f"classifier `{self.name}` failed to read a text", reason="crash")
        error.__cause__ = cause
        ticket.fail(error)

    def _part(self, gate: Gate, ticket: Ticket, together: Window) -> Iterator[None]:
        """Have the texts read by themselves, step by step, that the gate was shown together and doubts."""
        try:
            for window in gate.apart(together.texts):
                if ticket.over:
                    return
                if window is None:
                    yield
                else:
                    self._show(ticket, window)
        except Exception as cause:  # noqa: BLE001 - a model's code may raise anything
            self._fail_to_cut(ticket, cause)
        ticket.replaced(together)
        self._look_whether_to_cut(ticket)

    def _recalled(self, ticket: Ticket, window: Window) -> Reading | None:
        """Return what has been said of a window to the same caller, in another text or an earlier form of this one."""
        if self._known is None or ticket.caller is None:
            return None
        key = key_of_part(ticket.caller, window)
        return None if key is None else self._known.find(key)

    def _remember(self, ticket: Ticket, window: Window, said: Outcome) -> None:
        """Remember what is said of a window, unless it is all of its text: that is remembered as a whole."""
        alone = ticket.sealed and not ticket.parted
        if self._known is None or ticket.caller is None or alone or not isinstance(said, Reading):
            return
        key = key_of_part(ticket.caller, window)
        if key is not None:
            self._known.keep(key, said)

    def _take(self, entry: Waiting, outcome: Outcome) -> None:
        """Hand what is said of a window to its ticket, and cut more of its text if there is room again."""
        ticket = entry.asker
        self._remember(ticket, entry.window, outcome)
        ticket.take(entry.window, outcome)
        self._look_whether_to_cut(ticket)

    def _look_whether_to_cut(self, ticket: Ticket) -> None:
        waits = not ticket.over and not ticket.sealed and ticket not in self._cutting
        if waits and ticket.ahead < self._limits.ahead_tokens:
            self._go_on_cutting(ticket)

    def _answer(self, entry: Waiting, outcome: Outcome | None) -> None:
        """Hand what the model says of a window to its ticket."""
        if outcome is None:
            raise AssertionError("a model is not in doubt")
        ticket = entry.asker
        if ticket.owed and isinstance(outcome, Reading):
            ticket.owed -= 1
        self._take(entry, outcome)

    def _pass_on(self, entry: Waiting, outcome: Outcome | None) -> None:
        """Hand what the gate says of a window to its ticket, or the window on to the model."""
        ticket = entry.asker
        if outcome is not None:
            if isinstance(outcome, ScoringError):
                ticket.owed = 0  # whatever the model owes, it was not the one that failed
            self._take(entry, outcome)
        elif entry.window.texts and self._gate is not None:
            self._slices.add(self._part(self._gate, ticket, entry.window), ingress=self.ingress)
        else:
            self._doubt(entry)

    def _doubt(self, entry: Waiting) -> None:
        """Have the model read a window that its gate doubts, if its circuit lets it."""
        ticket = entry.asker
        admission = "pass" if ticket.doubted else self._line.admit(ticket)
        if admission == "refuse":
            ticket.fail(self._rested())
        elif admission == "wait":
            self._line.postpone(ticket, lambda: self._doubt(entry))
        else:
            ticket.doubted = True
            ticket.owed += 1
            self._line.put(ticket, entry.window)

    def _rested(self) -> ScoringError:
        return ScoringError(f"classifier `{self.name}` failed too often and is rested", reason="rested")

    def _glance(self, window: Window) -> Outcome | None:
        """Show a window to the gate; None: the model has to read it."""
        if self._gate is None:
            raise AssertionError("a lane without a gate has no line for it")
        try:
            return self._gate.glance(window)
        except Exception as error:  # noqa: BLE001 - a model's code may raise anything
            return self._crash(error)

    def _read(self, window: Window) -> Outcome:
        """Run the model and judge its output. May be called on a thread."""
        try:
            return judged(self._model.run([window]), 1, self._labels, self.name)[0]
        except Exception as error:  # noqa: BLE001 - a model's code may raise anything
            return self._crash(error)

    def _crash(self, cause: Exception) -> ScoringError:
        crash = ScoringError(f"classifier `{self.name}` crashed", reason="crash")
        crash.__cause__ = cause
        return crash

    def settled(self, ticket: Ticket, outcome: Outcome) -> None:
        """Remember the answer; tell the circuits and the report how a ticket ended."""
        self._forget(ticket)
        reason: ScoringReason | None = None
        if isinstance(outcome, Reading):
            self._read_chars += ticket.chars
            self._first.succeed(ticket)
            if ticket.doubted:
                self._line.succeed(ticket)
            if self._known is not None and ticket.key is not None:
                self._known.keep(ticket.key, outcome)
        else:
            reason = outcome.reason
            if reason not in _BLAMELESS:
                (self._line if ticket.owed else self._first).fail(ticket)
            self._release(ticket)
        self._report(self, time.monotonic() - ticket.started, reason)

    def forsaken(self, ticket: Ticket) -> None:
        """Note that a ticket ended without saying anything about the detector."""
        self._forget(ticket)
        self._release(ticket)

    def _release(self, ticket: Ticket) -> None:
        self._first.release(ticket)
        self._line.release(ticket)

    def _forget(self, ticket: Ticket) -> None:
        if ticket in self._tickets:
            self._tickets.remove(ticket)
            self._open[ticket.share] -= ticket.chars
            if not self._open[ticket.share]:
                del self._open[ticket.share]
        self._first.drop(ticket)
        self._line.drop(ticket)

    def refuse_all(self) -> None:
        """Fail every waiting ticket: the scorer closes."""
        for ticket in tuple(self._tickets):
            ticket.fail(ScoringError(f"classifier `{self.name}` is closed", reason="overload"))
        self._cutting.clear()


_BLAMELESS: frozenset[ScoringReason] = frozenset({"overload", "rested"})
"""They say nothing new of the detector."""
_BADNESS: dict[State, int] = {"closed": 0, "half_open": 1, "open": 2}
