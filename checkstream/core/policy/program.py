"""What policies are compiled to: signals, rules, constants, code, and the scopes that streams read.

Everything here is frozen and shared by all streams. A `Program` is plain data: its hash is that of its canonical
JSON (`policy.stored`), and nothing of it is executable but its code (`core.cel`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.core.cel.code import Instruction
from checkstream.core.cel.values import Value
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.placeholders import Placeholders, kind_of
from checkstream.core.policy.action import Allow, AnyAction, Severity, holds_text
from checkstream.core.policy.spares import Spares
from checkstream.core.terms import Facts, Stage, Told

Word = Annotated[str, Meta(max_length=100, pattern=r"\A[A-Za-z0-9_.:/+-]+\Z")]
"""A name: it stands in headers, logs and records as it is."""
Line = Annotated[str, Meta(min_length=1, max_length=1_000)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
MAX_RECITAL_WORDS = 200


class RecitedTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts that must not be recited."""

    digest: Digest
    """Of their file of fingerprints, as `Fingerprints.digest` has it."""
    words: Annotated[int, Meta(ge=1, le=MAX_RECITAL_WORDS)]
    """Of the shortest recital that counts."""


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One detector, shared by every rule that asks for it; its number is its place in `Program.signals`."""

    kind: Literal["pattern", "phrase", "entity", "classifier", "recital"]
    name: str
    """The pattern's name, the phrase, the entity's name, `model.label`, or the path of a file of fingerprints."""
    regex: str | None = None
    """RE2 syntax; None for what a model says."""
    max_chars: int | None = None
    model: Word | None = None
    """Of an entity: the model that finds it; None: its regex does."""
    threshold: Share | None = None
    """Of an entity that a model finds: the score from which on it counts."""
    spares: Spares | None = None
    """Of an entity: what is found and counts for nothing."""
    texts: RecitedTexts | msgspec.UnsetType = msgspec.UNSET
    """Of a recital."""

    def lets_pass(self, text: str, told: Told) -> str:
        """Return why a text that was found counts for nothing, in words; empty: it counts."""
        if self.spares is None:
            return ""
        return self.spares.let_pass(self.name, text, told, by_model=self.model is not None)

    @property
    def title(self) -> str:
        """How verdicts and audit entries call the detector, e.g. `entity:EMAIL`."""
        return f"{self.kind}:{self.name}"

    @property
    def placeholder(self) -> str:
        """What stands in place of redacted text unless the rule says otherwise."""
        return f"[{self.name}]" if self.kind == "entity" else "[REDACTED]"

    @property
    def kind_of_placeholder(self) -> str:
        """What stands in a placeholder for what it finds: `PERSON` in `<PERSON_1>`."""
        return kind_of({"phrase": "TERM", "recital": "TEXT"}.get(self.kind, self.name))

    @property
    def classifier(self) -> str:
        """Name of the model that is asked for it, without its label; empty where none is."""
        if self.kind == "classifier":
            return self.name.partition(".")[0]
        return self.model or ""


class Waits(enum.StrEnum):
    """What the decision on a trigger that has been found waits for."""

    NO = "no"
    """Nothing: the rule is decided where it was found."""
    CHECK = "check"
    """The first check that covers it: the rule's conditions read scores."""
    END = "end"
    """The end of the text: the rule asks that something does not stand in it."""


class RuleMeta(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a rule besides its code."""

    id: Word
    name: Word
    pack: Word
    version: Word
    stages: frozenset[Stage]
    channels: frozenset[str]
    mode: Literal["enforce", "shadow", "disabled"] = "enforce"
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] = 0
    actions: tuple[AnyAction, ...]
    triggers: tuple[int, ...]
    """Signals that the rule asks for, in the order of the policy file; empty: it is decided once, on the request
    (ingress) or at the end of the text (egress)."""
    thresholds: tuple[Share | None, ...]
    """Beside each trigger: the score from which on it counts, the lowest if that depends on conditions; None for what
    is found or not."""
    shape: str = "any"
    """How the triggers combine, for people: `any`, `all`, or a tree such as `all(entity:EMAIL, not(phrase:sample))`."""
    alone: bool = True
    """Each trigger fires the rule by itself, whatever else is known of the text."""
    reads: tuple[int, ...] = ()
    """Signals that conditions read, besides the triggers."""
    waits: Waits = Waits.NO
    conditions: tuple[str, ...] = ()
    """As written, for people."""
    condition_starts: tuple[int, ...] = ()
    """Beside each condition: where its code starts."""
    enabled_start: int | None = None
    """Where the code of `enabled_when` starts; it reads the context and the request only."""
    enforce_share: Share = 1.0
    """Share of callers and users for whom the rule is enforced; for the others it is a shadow rule."""
    regulation: Line | None = None
    citation: Line | None = None
    severity: Severity | None = None
    description: Line | None = None
    owner: Line | None = None
    tags: tuple[Word, ...] = ()
    fail_mode: Literal["open", "closed"] | None = None
    """What a failed detector, or a condition that can't be decided, means; None: as the route says."""

    @property
    def holds(self) -> bool:
        """Text waits until this rule is decided over it: it is enforced and changes, stops or excepts text."""
        return self.mode == "enforce" and any(holds_text(action) for action in self.actions)

    @property
    def condemns(self) -> bool:
        """What it finds must not be sent as it is: it holds text, and not for an exception."""
        return self.holds and not self.excepts

    @property
    def excepts(self) -> bool:
        """What it finds is set aside: an exception from other rules."""
        return any(isinstance(action, Allow) for action in self.actions)

    @property
    def needs(self) -> frozenset[int]:
        """Every signal that the decision on the rule may read."""
        return frozenset((*self.triggers, *self.reads))


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """Something that code loads; its number is its place in `Program.variables`."""

    kind: Literal[
        "context", "request", "given", "stream", "conversation", "fired",
        "found", "count", "score", "scored", "peak", "risk", "highest", "recent", "short",
    ]  # fmt: skip
    """given: whether the request says anything of the field `name`. fired: how often a rule was in the conversation."""
    name: str = ""
    """Field of `request`, `stream` or `conversation`, or id of a rule; empty for the others."""
    signal: int = -1
    """For what is known of a signal: found (bool), count (int), score (double), scored (bool), peak (double, the
    highest score so far); and of the conversation: risk (double, what its scores add up to), highest (double),
    recent (double, its score of what the user said last, read as one text), short (double, the same of more texts,
    where they are short)."""

    @property
    def title(self) -> str:
        """The variable in a listing."""
        if self.kind == "context":
            return "context"
        return f"{self.kind}.{self.name}" if self.signal < 0 else f"{self.kind}({self.signal})"


READ_AS_ONE = frozenset({"recent", "short"})
"""Kinds of variables for which texts of the user are read as one."""
ALWAYS = -1
"""In place of a start of code: the signal alone decides."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Where the code starts that decides one rule when one of its signals has come."""

    rule: int
    signal: int = -1
    """-1: the rule has no triggers and is decided once."""
    start: int = ALWAYS
    floor: Share | None = None
    """A score below this never fires the rule; None for what is found."""


class Scope(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one kind of channel needs at one stage; made once per program and shared by all streams."""

    stage: Stage
    channel: str
    hold: PatternSet
    """Patterns, phrases and entities that text waits for."""
    restored: PatternSet | None = None
    """`hold` with the placeholders of pseudonyms, which are read where the prompt has some; None: there are none, or
    nothing is put back here."""
    watch: PatternSet
    """Those that are only recorded (or add text elsewhere): they never hold text. In both sets stands only what a rule
    of `watched` needs to see beside the rest of its triggers."""
    hold_classifiers: tuple[str, ...]
    degradable: bool = False
    """Every rule that holds text for a classifier has a cheaper detector which fires it alone (a pattern, phrase or
    entity, with `match: any`): over the budget that one may decide without the score."""
    watch_classifiers: tuple[str, ...]
    score_signals: Mapping[str, int]
    """`model.label` -> signal, for every score that a rule of this scope reads; in the order of the names."""
    least: Mapping[int, float]
    """Signal -> the score below which no rule here fires for it, now or later; of any other none does."""
    entity_signals: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Entity that a model finds -> its signals, one for each model that rules of this scope ask for it."""
    risk_labels: frozenset[str] = frozenset()
    """`model.label` of the scores that make out the risk of a text: rules here act against what reaches them."""
    anchored: bool = False
    """A pattern that a policy has written for a text of its own is searched here: it says where one begins or ends."""
    rules: Mapping[int, tuple[Entry, ...]]
    """Signal -> the rules that it can fire here."""
    bare: tuple[Entry, ...] = ()
    """Rules without triggers (egress): decided once, at the end of the text."""
    active: tuple[int, ...]
    """Indexes of the rules in force here, in the program's order."""
    held: frozenset[int] = frozenset()
    """Signals that are decided before text is released; all others are decided behind it."""
    watched: frozenset[int] = frozenset()
    """Indexes of rules that need several signals, of which not all are in `held`: decided behind the release."""
    grain: Literal["span", "word", "sentence"] = "span"
    """The largest scope of an edit here: text is held and decided in whole words or sentences."""
    reads_stream: bool = False
    """A rule here reads `stream`."""
    reads_language: bool = False
    """A rule here reads `stream.language`."""
    accumulates: Mapping[str, int] = MappingProxyType({})
    """`model.label` -> signal, of the scores that add up over a conversation: a rule asks what they come to."""
    changes: bool = False
    """A rule here may change the request or add to the answer."""
    inserts: bool = False
    """A rule here adds texts within the answer, behind sentences."""
    requires: tuple[tuple[int, str], ...] = ()
    """Rules here, by number, that may ask for a text unless the answer has it, and the text."""

    def decides(self, rule: int, signal: int, *, leads: bool) -> bool:
        """Tell who decides on a rule that a signal fires: each is decided once, before the release or behind it."""
        return leads == (rule not in self.watched and signal in self.held)


class Program(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Compiled policies: what every stream that starts now runs under."""

    signals: tuple[Signal, ...]
    rules: tuple[RuleMeta, ...]
    constants: tuple[Value, ...]
    variables: tuple[Variable, ...]
    code: tuple[Instruction, ...]
    entries: tuple[Entry, ...]
    """In the order of the rules and of their triggers."""
    packs: tuple[str, ...]
    """`name@version` of each pack, in the order of the files."""
    hash: str
    """SHA-256 of the canonical form, hex: equal programs decide equally."""
    scopes: Mapping[tuple[Stage, str], Scope]
    bare: tuple[Entry, ...] = ()
    """Rules of ingress without triggers: decided once, on the request."""
    late: frozenset[int] = frozenset()
    """Those of them that read what scores come to in the conversation: decided when all of the prompt has been read."""
    recalls: frozenset[str] = frozenset()
    """What rules in force ask of a conversation: fields of `conversation` (`refused`), and `fired`, `risk`, `highest`,
    `recent`, `short`."""
    recalling: frozenset[str] = frozenset()
    """Ids of the rules that ask for any of it."""
    recent: Scope | None = None
    """What the user's last texts need when they are read as one; None: no rule asks."""
    loads: tuple[Callable[[Facts], Value], ...]
    """Beside each variable: takes its value from the facts."""
    remembered: Mapping[str, tuple[PatternSet, tuple[str, ...]]] = MappingProxyType({})
    """Ingress channel -> what of its messages is remembered, for triggers that spare it: patterns, and the entity that
    each one's signal stands for."""
    placeholders: Placeholders | None = None
    """Those that its rules may put into a prompt."""
    restores: Mapping[str, frozenset[str]] = MappingProxyType({})
    """Kind of a placeholder -> channels of the prompt whose values come back for it."""
    worded: frozenset[str] = frozenset()
    """Ingress channels whose words are remembered, for triggers on what models find."""
    steady: frozenset[int] = frozenset()
    """Starts of code that reads only the context and the request: its value is the same for a whole exchange."""
    turns: bool = False
    """A rule may have an answer continued under stricter parameters."""

    @property
    def searched(self) -> frozenset[tuple[Pattern, ...]]:
        """What is searched for together, anywhere, with expressions."""
        scopes, remembered = self.scopes.values(), self.remembered.values()
        sets = (*(each.hold for each in scopes), *(each.watch for each in scopes), *(each for each, _ in remembered))
        restored = (each.restored for each in scopes if each.restored is not None)
        patterns = (each.patterns for each in (*sets, *restored))
        return frozenset(
            found for each in patterns if (found := tuple(pattern for pattern in each if pattern.texts is None))
        )

    def scope(self, stage: Stage, channel: str) -> Scope:
        """Return what a channel of the kind `channel` needs at `stage`.

        Raises:
            KeyError: the stage has no such channel.
        """
        return self.scopes[stage, channel]
