"""What a judge is given: the policies, the text that it has, how it reads it, and what it shares with other judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from checkstream.core.channel.arrivals import Clock, Standing
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.policy.program import Program, Scope
from checkstream.core.pseudonyms.register import Register
from checkstream.core.terms import Channel, ExchangeFacts, Finding, Stage

FailMode = Literal["open", "closed"]


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What every judge of an exchange is given."""

    program: Program
    """The compiled policies."""
    settings: HoldSettings
    """Sizes of windows and holds."""
    fail_mode: FailMode
    """What a failed detector, or an undecided rule, means where the rule does not say."""
    exchange: ExchangeFacts
    """What is known of the exchange."""
    digest: Callable[[str], str]
    """Keyed digest of a text, hex, for the record."""
    degrade: Callable[[str], None]
    """Notes what was checked less than it should have been."""
    clock: Clock = msgspec.field(default_factory=Standing)
    """Tells when text comes."""
    register: Register = msgspec.field(default_factory=Register)
    """What stands for which value of the prompt."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a text is read."""

    grid: bool = True
    """Classifiers see windows of it as it comes; False: they see the whole text once, at its end."""
    asks: bool = True
    """Classifiers are asked."""
    seams: tuple[int, ...] = ()
    """Where texts have been put together that other judges see apart, in order: only findings over a seam count, and no
    classifier is asked."""
    before: tuple[tuple[Finding, ...], ...] | None = None
    """What patterns, phrases and entities find in it, for the judge and for those that follow it: then nothing is
    searched for. Those that are left out find nothing. None: it isn't known."""
    late: bool = False
    """Nothing of it is to be released before its end, as where classifiers see the whole text."""
    scope: Scope | None = None
    """What it needs of the policies; None: what all texts of its channel do."""
    signed: bool = False
    """Its reader takes it back only as the model wrote it: no value of the caller comes back in it."""
    structured: bool = False
    """It has a form that edits must keep, and that no text may be put into."""


AS_IT_COMES = Manner()


class Place(msgspec.Struct, frozen=True):
    """Which text a judge has, and under which rules."""

    channel: Channel
    stage: Stage
    """The section of the policy that applies."""
    brief: Brief
    scope: Scope
    """What the text needs of the policies."""
    leads: bool
    """Rules that hold text are decided here."""
    seams: tuple[int, ...] = ()
    """Where texts have been put together, in order: only findings over a seam count."""
    prelude: int = 0
    """Characters of the text that were sent before it began."""
    base: int = 0
    """Length of the answer's text before it."""

    @property
    def program(self) -> Program:
        """The compiled policies."""
        return self.brief.program
