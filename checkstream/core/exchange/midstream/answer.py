"""The answer of one exchange: its choices and channels, and how far it has come."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from checkstream.core.channel.actions import Halt, Pivot
from checkstream.core.channel.brief import Manner
from checkstream.core.channel.checks import CHECK_WORK, Check
from checkstream.core.channel.execution import NOT_ADDED
from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.closing import Closing, Said
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.meter import Steps
from checkstream.core.exchange.midstream.calls import Calls
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.outbox import Outbox
from checkstream.core.exchange.midstream.sieve import Sieve
from checkstream.core.exchange.midstream.writer import Writer
from checkstream.core.policy.program import RuleMeta
from checkstream.core.terms import COMMON, Channel, Stage
from checkstream.core.wire.surface import Surface

_JUDGES_A_STEP = 512
_CHECKS = 64
"""Checks of one text that are asked for at a time."""


class Answer:
    """What the upstream has answered so far, streamed or whole; what changes it stands in the files above this."""

    def __init__(self, surface: Surface, prompt: Prompt, checking: Checking) -> None:
        """Start before the first unit.

        Args:
            surface: Writes what is edited.
            prompt: Its rules may put disclaimers around every choice.
            checking: Makes judges and asks classifiers.
        """
        self.choices: dict[int, Choice] = {}
        self.common = Choice()
        """What belongs to no choice."""
        self.judges: dict[Channel, Judge] = {}
        self._prefixes: list[str] = []
        self._surface = surface
        sending = surface.sending(checking.most_held_of({*surface.signed, "extra"} if surface.signed else ()))
        self.writer = Writer(surface, sending, self.choices, self._prefixes)
        self.outbox = Outbox(self.writer, self.choices)
        self.terminated = False
        """The upstream has sent its terminator."""
        self.cut_off = False
        """A rule has ended the last choice that ran: nothing more is wanted of the upstream."""
        self.turning: Pivot | None = None
        """The upstream is to be cut off and asked to go on from here, once all before it has been sent."""
        self.turned_down = False
        """A rule has ended it before the place where it was to turn: of what stands behind that nothing is sent."""
        self.before_turn: dict[Channel, str] = {}
        """What texts other than the content had said last before it turned."""
        self.may_turn = True
        """The upstream can still be asked to go on."""
        self.failed: RuleMeta | None = None
        """A detector of this rule is broken, and its fail mode is closed."""
        self.first_text_at: float | None = None
        """When its first text came, seconds."""
        self.sieve = Sieve(surface, prompt, checking, choices=self.choices, judges=self.judges)
        self.calls = Calls(prompt, checking)
        self._prompt = prompt
        self._checking = checking

    @property
    def stopped(self) -> bool:
        """A rule has ended a choice."""
        return any(choice.halt is not None for choice in (*self.choices.values(), self.common))

    @property
    def refused_whole(self) -> Halt | None:
        """The stop that makes an error of the whole answer, when it is not streamed: the first that has a status."""
        choices = (*(choice for _, choice in sorted(self.choices.items())), self.common)
        halts = (choice.halt for choice in choices if choice.halt is not None)
        return next((halt for halt in halts if halt.status is not None), None)

    @property
    def running(self) -> bool:
        """A choice still runs that neither the upstream nor a rule has ended."""
        request = self._prompt.request
        wanted = request.choices if request is not None else 1
        begun = sum(number < wanted for number in self.choices)
        return begun < wanted or any(choice.running for choice in self.choices.values())

    def settling(self) -> Generator[None, None, bool]:
        """Tell, in steps, whether every channel has ended and been decided."""
        for count, judge in enumerate(self.judges.values(), 1):
            if not judge.holdback.settled:
                return False
            if count % _JUDGES_A_STEP == 0:
                self._checking.meter.spend(_JUDGES_A_STEP)
                yield
        return True

    def begin(self, number: int) -> None:
        """Begin a choice, with what the prompt's rules have asked for it."""
        wishes = self._prompt.wishes
        choice = self.choices[number] = Choice()
        if not self._prompt.structured:
            self._prefixes[:] = wishes.prefixes
        elif wishes.prefixes:
            self._checking.degrade(NOT_ADDED)
        for closing in (*wishes.closings, *self._checking.required()):
            if closing.unless_said:
                choice.said = choice.said or Said()
                choice.said.look_for(closing)
        for closing in (*wishes.closings, *self.common.closings):
            self.close_with(choice, closing)

    def choice(self, number: int) -> Choice:
        """Return a choice that has begun, or what belongs to none."""
        return self.common if number == COMMON else self.choices[number]

    def judge(self, channel: Channel, choice: Choice, said: str = "") -> Judge:
        """Return a judge for a channel of a choice, of which `said` has been sent already."""
        signed = channel.kind in self._surface.signed
        manner = Manner(late=choice.alone and not said, structured=self._prompt.structured, signed=signed)
        judge = self._checking.judge(channel, Stage.MIDSTREAM, manner, said=said)
        judge.share_insertions(choice.inserted)
        return judge

    def ask(self, judge: Judge, checks: Iterable[Check]) -> None:
        """Ask about those of some checks that still matter."""
        self._checking.ask(judge, (check for check in checks if not check.over))

    def asking(self, judge: Judge, checks: Sequence[Check]) -> Steps:
        """Ask about those of many checks that still matter, some at a time."""
        for at in range(0, len(checks), _CHECKS):
            if at:
                self._checking.meter.spend(_CHECKS * CHECK_WORK)
                yield
            self.ask(judge, checks[at : at + _CHECKS])

    def close_with(self, choice: Choice, closing: Closing) -> None:
        """Add a text to the end of a choice, once; what is asked for by what stands in none, to the end of each."""
        if self._prompt.structured or choice.closed:
            self._checking.degrade(NOT_ADDED)
        elif closing not in choice.closings:
            choice.closings.append(closing)
            for each in self.choices.values() if choice is self.common else ():
                self.close_with(each, closing)
