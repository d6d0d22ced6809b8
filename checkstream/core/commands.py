"""Commands: what the guard wants done. The shell carries them out in order and decides nothing.

A command is an imperative. What comes of it comes back as an event.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from checkstream.core.conversation import Conversation, Turn
from checkstream.core.terms import Dialogue, Recited, Span, Verdict


class Command(msgspec.Struct, frozen=True, tag=True):
    """Something that the shell must do now."""


class Recall(Command, frozen=True):
    """Tell what is known of a conversation; always answered by `Recalled`. Nothing of the prompt is decided before."""

    key: str
    """Keyed digest of the caller and of the conversation's name, or of its history."""


class RecallNames(Command, frozen=True):
    """Tell what stands for which value in a conversation; answered by `NamesKnown` or `NamesFailed`."""

    conversation: str
    """As its caller calls it; two callers that name theirs alike share nothing."""


class KeepNames(Command, frozen=True):
    """Keep what stands for which value, in place of what was known, before the prompt is sent that has it.

    Answered by `NamesKept`, by `NamesKnown` where others have kept something since, or by `NamesFailed`.
    """

    conversation: str
    state: bytes
    seen: int
    """Version that it replaces; 0: nothing was known."""
    later: bool = False
    """A request that goes on from this answer asks for it; nobody waits, and what fails is as good as forgotten."""


class RecallTools(Command, frozen=True):
    """Tell how the tools of a server were described before; answered by `ToolsKnown` or `ToolsFailed`."""

    server: str
    """Its upstream, and the path that it is asked at."""


class KeepTools(Command, frozen=True):
    """Keep how they are described, in place of what was known, before the list leaves that says so.

    Answered by `ToolsKept`, by `ToolsKnown` where others have kept something since, or by `ToolsFailed`.
    """

    server: str
    state: bytes
    seen: int
    """Version that it replaces; 0: nothing was known."""


class ForwardRequest(Command, frozen=True):
    """Send this body to the upstream. Comes once, after ingress has passed."""

    body: bytes
    streaming: bool
    """The caller asked for an event stream."""
    without: frozenset[str] = frozenset()
    """Headers of the caller that stay behind: rules have found in them what is to go nowhere."""


class ConfirmationWanted(msgspec.Struct, frozen=True):
    """The refused request is let through when it comes again with a one-time token; the shell makes the token."""

    rules: tuple[str, ...]
    """Ids of the rules that ask for it."""
    expires_s: int
    """How long the token is good for."""
    program: str
    """Hash of the policies that ask: other policies would have to ask anew."""


class Reply(Command, frozen=True):
    """Answer the caller with one whole response, and close."""

    status: int
    body: bytes
    action: str = "allow"
    """For the `x-checkstream-action` header."""
    retry: bool | None = None
    """False: send `x-should-retry: false` (a policy verdict with an error status)."""
    retry_after_s: int | None = None
    confirm: ConfirmationWanted | None = None
    """The answer carries a token that confirms this request."""


class StartStream(Command, frozen=True):
    """Send the caller status 200 and the headers of an event stream."""


class SendDownstream(Command, frozen=True):
    """Send these bytes to the caller. All that is released together comes as one command."""

    data: bytes


class CloseDownstream(Command, frozen=True):
    """The event stream is complete: end it as HTTP says."""


class CancelUpstream(Command, frozen=True):
    """Close the upstream's connection now; nothing that it still sends is wanted."""


class PauseUpstream(Command, frozen=True):
    """Stop reading from the upstream: too much text is held."""


class ResumeUpstream(Command, frozen=True):
    """Read from the upstream again."""


class Score(Command, frozen=True):
    """Ask classifiers for scores of a window of text; answered by `Scored` or `ScoringFailed`."""

    ticket: int
    classifiers: tuple[str, ...]
    """Names of classifiers, without labels."""
    text: str
    """As it was received, but that text which characters out of sight spell stands in sight, place by place."""
    deadline_ms: float
    """The most work of each on 64 tokens of it; the time that it waits for its turn does not count."""
    ingress: bool = False
    """Part of a prompt: runs apart from midstream checks and never delays them."""
    fresh_chars: int = 0
    """Code points at the end of `text` that no earlier check of this channel covered, the rest is context; 0: all."""
    open_chars: int = 0
    """Code points at the end of `text` in which entities are looked for, the rest is context; 0: all. What stands there
    may have been read before: with more text behind it the answer may be another."""
    parts: tuple[int, ...] = ()
    """Lengths of the short texts that `text` is made of, a line's end between them; (): it is one. Their scores are
    the highest of any."""


class Assess(Command, frozen=True):
    """Hold what was said against evidence while its caller waits; always answered by `Assessed`, in the time given.

    An answer that is too long for that comes without its text, and is told as not assessed.
    """

    dialogue: Dialogue
    profiles: tuple[str, ...]
    deadline_ms: float


class ArmTimer(Command, frozen=True):
    """Fire `TimerFired(timer)` after this time; replaces a running timer of the same name."""

    timer: Literal["stall", "keepalive", "budget", "hold"]
    after_ms: float


class DisarmTimer(Command, frozen=True):
    """Forget this timer."""

    timer: Literal["stall", "keepalive", "budget", "hold"]


class Decided(Command, frozen=True):
    """A rule has fired: count it. The verdict is also part of the record."""

    verdict: Verdict


class Degraded(Command, frozen=True):
    """Something was checked less, later or not at all: count and log it."""

    reason: str


class ShedRequests(Command, frozen=True):
    """Refuse new requests of this route for a moment: its checks run over their budget. Comes with each such check."""


class FindingDigest(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as the audit log keeps it: where and what kind, never the text itself."""

    detector: str
    channel: str
    """`kind/choice/index`."""
    span: Span
    view: str
    digest: str
    """Keyed digest of the text of the span, hex."""
    recited: Recited | msgspec.UnsetType = msgspec.UNSET
    """Of a recital: how long it is, and how much of the text recites; left out for all else."""


class ConversationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where in its conversation an exchange stands, for the audit log."""

    id: str
    """Keyed digest of its name, hex."""
    turns: int
    """Texts that the user has said in it."""
    refused: int
    """Requests of it that were refused before."""
    risks: dict[str, float]
    """`model.label` -> what its scores have added up to, 0..1, of those that rules ask for."""
    rules: tuple[str, ...] = ()
    """Ids of the rules that were enforced here for what the conversation has come to."""
    counted: dict[str, float] = {}
    """Number of a text of the user, from 1 -> the highest of its scores, of those that add to a risk; of many the
    latest."""


class StreamRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the audit chain keeps of one exchange."""

    surface: str
    streaming: bool
    action: str
    """The strictest action that was carried out (`allow` if none)."""
    outcome: str
    """How it ended: complete; refused or stopped by a rule; invalid: a request that the route can't take;
    detector_failed: a broken detector met its fail mode; overloaded: it waited for too long; work_exceeded: its text
    costs more work than one exchange may; upstream_failed; downstream_closed; failed; drained."""
    policies: tuple[str, ...]
    """`name@version` of each pack in force."""
    program: str
    """Hash of the compiled program."""
    scanned: tuple[str, ...]
    """Channels scanned, `stage:kind`, sorted."""
    unscanned: tuple[str, ...]
    """What was passed on without a scan, and why."""
    detectors: tuple[str, ...]
    """Detectors that ran: `match` and each classifier as `name`."""
    findings: tuple[FindingDigest, ...]
    verdicts: tuple[Verdict, ...]
    degradations: tuple[str, ...]
    fired: dict[str, int] = {}
    """Id of a rule -> how often it has fired, where `verdicts` doesn't list all."""
    pseudonyms: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """Kind of placeholder -> values of the prompt that the model got as one; left out: none."""
    restored: int | msgspec.UnsetType = msgspec.UNSET
    """How often such a value was put back into the answer; left out: never."""
    not_given: int | msgspec.UnsetType = msgspec.UNSET
    """How often the answer has a placeholder that stands for nothing; left out: never, or there were none to know."""
    method: str | msgspec.UnsetType = msgspec.UNSET
    """What was asked of a server of tools: a method, `other` where nobody knows it, `answer`, `GET`, `DELETE`."""
    removed: tuple[str, ...] = ()
    """Fields that were taken out of the request, since they could undo what a rule shapes; others were not known."""
    confirmed: tuple[str, ...] = ()
    """Ids of rules that asked for a confirmation and got it."""
    turned_at: int | None = None
    """Where the answer's text was cut by `safe_mode`, in characters: what stands behind it is of a second answer."""
    risks: dict[str, float] = {}
    """Profile that was asked while the caller waited -> what it said, 0 to 100."""
    upstream_failure: str | None
    checked_ms: float | msgspec.UnsetType = msgspec.UNSET
    """Longest time from a question to classifiers to their answer, milliseconds, what it waited for its turn included;
    left out: nothing was asked, or it took none."""
    held_ms: float
    """Longest time that released text was held, milliseconds."""
    prompt_chars: int
    answer_chars: int
    released_chars: int
    conversation: ConversationRecord | msgspec.UnsetType = msgspec.UNSET
    """Unset: the request is not known to be part of one."""


class Yield(Command, frozen=True):
    """Give others their turn, then send `Resumed`: there is more to be done. The last command of its event."""


class Enqueue(Command, frozen=True):
    """Have what was said scored when nobody waits for it any more. Comes right before `Record`, if the plan asks."""

    dialogue: Dialogue


class Remember(Command, frozen=True):
    """Keep what this exchange has come to, on top of what is known of its conversation by then."""

    key: str
    """As in `Recall`; of a conversation without a name, the key of its history with this answer, or of the answer."""
    turn: Turn
    before: Conversation | None = None
    """What it comes on top of, whatever is kept there: all that has this history has come to the same."""


class Record(Command, frozen=True):
    """Append this to the audit chain. Comes exactly once for each exchange, as its last decision."""

    record: StreamRecord
    model: str = ""
    """As the request names it, for metrics that tell models apart; empty: it names none."""


class Observe(Command, frozen=True):
    """A measurement for the metrics table."""

    metric: Literal["hold_seconds", "tokens_in", "tokens_out", "added_ttft_seconds", "cutoff_seconds"]
    value: float


AnyCommand = (
    Recall
    | RecallNames
    | KeepNames
    | RecallTools
    | KeepTools
    | ForwardRequest
    | Reply
    | StartStream
    | SendDownstream
    | CloseDownstream
    | CancelUpstream
    | PauseUpstream
    | ResumeUpstream
    | Score
    | Assess
    | ArmTimer
    | DisarmTimer
    | Decided
    | Degraded
    | ShedRequests
    | Yield
    | Enqueue
    | Remember
    | Record
    | Observe
)
