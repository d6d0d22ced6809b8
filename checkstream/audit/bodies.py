"""Bodies of records as readers show them: of this version or another, so what is missing has a default. Pure."""

from __future__ import annotations

import msgspec

from checkstream.audit.chain import Record
from checkstream.core.terms import unknown_of
from checkstream.errors import AuditError


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Characters of a text, from `start` up to `end`."""

    start: int
    end: int

    def __str__(self) -> str:
        """Return `start..end`."""
        return f"{self.start}..{self.end}"


class ChannelName(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text stood."""

    kind: str = "?"
    choice: int = 0

    def __str__(self) -> str:
        """Return `kind/choice`."""
        return f"{self.kind}/{self.choice}"


class RecitedTold(msgspec.Struct, frozen=True, kw_only=True):
    """How much was recited."""

    words: int = 0
    share: str = "0"

    def __str__(self) -> str:
        """Return it in words."""
        many = "1 word" if self.words == 1 else f"{self.words} words"
        return f"{many} recited, a share of {short(self.share)[:8]} of the text so far"


class VerdictTold(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule decided."""

    rule_id: str = "?"
    action: str = ""
    mode: str = ""
    policy: str = ""
    version: str = ""
    stage: str = ""
    channel: ChannelName = ChannelName()
    spans: tuple[Span, ...] = ()
    triggers: tuple[str, ...] = ()
    model: str = ""
    latency_ms: str | int = "0"
    """The chain has fractions as texts."""
    confidence: str | int = ""
    regulation: str | None = None
    citation: str | None = None
    severity: str | None = None
    excepted_by: str | None = None
    undecided: bool = False
    recited: RecitedTold | None = None


class FindingTold(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector found."""

    detector: str = "?"
    channel: str = ""
    span: Span = Span(start=0, end=0)
    view: str = ""
    digest: str = ""


class ConversationTold(msgspec.Struct, frozen=True, kw_only=True):
    """Where an exchange stands in its conversation."""

    id: str = ""
    turns: int = 0
    risks: dict[str, str] = {}
    """The chain has fractions as texts."""
    rules: tuple[str, ...] = ()
    counted: dict[str, str] = {}


class StreamTold(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a guarded exchange."""

    surface: str = ""
    streaming: bool = False
    action: str = ""
    outcome: str = ""
    policies: tuple[str, ...] = ()
    verdicts: tuple[VerdictTold, ...] = ()
    confirmed: tuple[str, ...] = ()
    findings: tuple[FindingTold, ...] = ()
    detectors: tuple[str, ...] = ()
    degradations: tuple[str, ...] = ()
    unscanned: tuple[str, ...] = ()
    pseudonyms: dict[str, int] = {}
    restored: int = 0
    not_given: int = 0
    removed: tuple[str, ...] = ()
    turned_at: int | None = None
    scanned: tuple[str, ...] = ()
    upstream_failure: str | None = None
    held_ms: str | int = "0"
    prompt_chars: int = 0
    answer_chars: int = 0
    released_chars: int = 0
    conversation: ConversationTold = ConversationTold()

    @property
    def unknown(self) -> tuple[str, ...]:
        """What was scanned besides the channels: fields that nobody knows."""
        return tuple(unknown_of(self.scanned))

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the rules that fired."""
        return tuple(dict.fromkeys(verdict.rule_id for verdict in self.verdicts))


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What any record tells."""

    stream: str = ""
    route: str = ""
    caller: str | None = None
    record: StreamTold = StreamTold()
    reason: str = ""
    version: str = ""
    next: str = ""
    method: str = ""
    path: str = ""
    status: int = 0
    dropped_bytes: int = 0
    result: str = ""
    rules: tuple[str, ...] = ()
    cutoff_ms: str | int | None = None
    accepted: bool = True
    policies: tuple[str, ...] = ()
    who: str = ""
    role: str = ""
    act: str = ""
    fleet: str = ""
    subject: str = ""
    detail: dict[str, str] = {}


def body_of(record: Record) -> Body:
    """Return what a record tells.

    Raises:
        AuditError: a member of it is not what it is in any version.
    """
    try:
        return msgspec.convert(record.body, Body)
    except msgspec.ValidationError as error:
        raise AuditError(str(error)) from None


def short(fraction: str) -> str:
    """Return a fraction of the chain without the zeros behind it."""
    return fraction.rstrip("0").rstrip(".") if "." in fraction else fraction
