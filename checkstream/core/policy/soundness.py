"""Whether the rules of a stored program can be carried out as they stand, whoever wrote it.

The compiler sees to all of this; what comes from elsewhere is asked again. Types and bounds of single values are those
of the structs, and code has been verified to be safe to run: here parts are held against each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from checkstream.core.cel.code import Instruction, Op
from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.phrases import phrase_regex
from checkstream.core.policy import templates
from checkstream.core.policy.action import (
    AllowConstrained,
    AnyAction,
    AttributeSources,
    InjectDisclaimer,
    Pseudonymise,
    Redact,
    RewriteSpan,
)
from checkstream.core.policy.json_values import MAX_JSON_CHARS
from checkstream.core.policy.placing import SPAN_ACTIONS, action_channels, action_stages
from checkstream.core.policy.program import ALWAYS, Entry, RuleMeta, Signal, Variable, Waits
from checkstream.core.policy.spares_syntax import DOMAIN_ENTITIES
from checkstream.core.policy.variables import RECALLED
from checkstream.core.terms import STAGE_CHANNELS, Stage
from checkstream.errors import PatternError, ProgramInvalid, TemplateError

MAX_STEPS = 100_000
"""Instructions of one expression; what a rule of 10,000 phrases that must all stand in a text comes to is less."""
_STEADY = frozenset({"context", "request", "given"})
_OF_REQUEST = frozenset({*_STEADY, "conversation", "fired", *RECALLED})
"""What rules on the request as a whole may read."""
_ENTITY_NAME = compile_regex(r"\A[A-Z][A-Z0-9_]{0,63}\z")


def check_signals(signals: Sequence[Signal]) -> None:
    """Refuse detectors that are not what they are called, or stand twice.

    Raises:
        ProgramInvalid: one is.
    """
    for signal in signals:
        plain = signal.regex is None and signal.max_chars is None
        recites = signal.texts is not msgspec.UNSET
        by_model = signal.model is not None or signal.threshold is not None
        if by_model:
            same = plain and signal.kind == "entity" and None not in {signal.model, signal.threshold}
            same = same and bool(_ENTITY_NAME.search(signal.name))
        elif signal.kind == "entity":
            entity = ENTITIES.get(signal.name)
            same = entity is not None and (entity.regex, entity.max_chars) == (signal.regex, signal.max_chars)
        elif signal.kind == "classifier":
            model, point, label = signal.name.partition(".")
            same = plain and bool(model and point and label)
        elif signal.kind == "recital":
            same = plain and recites and bool(signal.name)
        elif signal.kind == "phrase":
            same = signal.max_chars is None and signal.regex == _phrase_regex(signal.name)
        else:
            same = signal.regex is not None
        if not (same and recites is (signal.kind == "recital") and _spares_soundly(signal)):
            raise ProgramInvalid(f"the {signal.kind} `{signal.name[:60]}` is not what this version knows by that name")
    if len(set(signals)) < len(signals):
        raise ProgramInvalid("a detector stands twice in the program")


def _spares_soundly(signal: Signal) -> bool:
    """Tell whether what a signal lets pass is of its kind, in order and each once."""
    spares = signal.spares
    if spares is None:
        return True
    lists = (spares.request, spares.values, spares.domains)
    in_order = all(tuple(sorted(set(each))) == each for each in lists) and any(lists)
    return in_order and signal.kind == "entity" and (not spares.domains or signal.name in DOMAIN_ENTITIES)


def _phrase_regex(phrase: str) -> str:
    try:
        return phrase_regex(phrase)
    except PatternError:
        return ""


class Soundness:
    """Holds the rules of a program against its signals, entries and code."""

    def __init__(
        self,
        signals: Sequence[Signal],
        entries: Sequence[Entry],
        code: Sequence[Instruction],
        variables: Sequence[Variable],
    ) -> None:
        """Take verified code, and entries whose numbers point at what is there."""
        self._signals = signals
        self._code = code
        self._variables = variables
        self._read: dict[int, frozenset[Variable]] = {}
        self._entries: dict[int, list[Entry]] = {}
        for entry in entries:
            self._entries.setdefault(entry.rule, []).append(entry)

    def check(self, number: int, rule: RuleMeta) -> None:
        """Check one rule.

        Raises:
            ProgramInvalid: it can't be carried out, or is not what it says it is.
        """
        entries = self._entries.get(number, ())
        reason = (
            _misplaced(rule)
            or _at_odds(rule)
            or next(filter(None, map(_unusable, rule.actions)), None)
            or self._wrong_triggers(rule)
            or self._wrong_entries(rule, entries)
            or self._wrong_reads(rule, entries)
            or self._wrong_waits(rule)
        )
        if reason is not None:
            raise ProgramInvalid(f"rule `{rule.id}` {reason}; compile the policy again")

    def _wrong_triggers(self, rule: RuleMeta) -> str | None:
        if len(rule.thresholds) != len(rule.triggers) or not rule.needs <= frozenset(range(len(self._signals))):
            return "names a detector that is not there"
        scored = [self._signals[signal].kind == "classifier" for signal in rule.triggers]
        if any((threshold is None) == score for threshold, score in zip(rule.thresholds, scored, strict=True)):
            return "has a threshold for what is found or not, or none for a score"
        return None

    def _wrong_entries(self, rule: RuleMeta, entries: Sequence[Entry]) -> str | None:
        if not rule.triggers and (len(entries) != 1 or not rule.conditions):
            return "has neither triggers nor conditions that decide it"
        wanted = set(zip(rule.triggers, rule.thresholds, strict=True)) or {(-1, None)}
        given = {(entry.signal, entry.floor) for entry in entries}
        if not given or not given <= wanted or (rule.alone and given != wanted):
            return "is not decided by what it asks for"
        if rule.conditions and any(entry.start == ALWAYS for entry in entries):
            return "is decided without its conditions"
        return None

    def _wrong_reads(self, rule: RuleMeta, entries: Sequence[Entry]) -> str | None:
        said = frozenset(rule.reads)
        steady = [] if rule.enabled_start is None else [rule.enabled_start]
        if any(variable.kind not in _STEADY for start in steady for variable in self._reads(start)):
            return "reads of a text where none is known yet"
        starts = (*(entry.start for entry in entries if entry.start != ALWAYS), *rule.condition_starts)
        read = {variable.kind for start in starts for variable in self._reads(start)}
        if Stage.INGRESS in rule.stages and (RECALLED & read if rule.triggers else read - _OF_REQUEST):
            return "reads of a text where none is known yet"
        for entry in entries:
            known = said | {entry.signal} if rule.alone else rule.needs
            if entry.start != ALWAYS and not self._signals_of(entry.start) <= known:
                return "reads a detector that it does not name"
        if any(not self._signals_of(start) <= said for start in rule.condition_starts):
            return "has a condition on a detector that it does not name"
        return None

    def _wrong_waits(self, rule: RuleMeta) -> str | None:
        if len(rule.condition_starts) != len(rule.conditions):
            return "has conditions without code"
        read = {variable for start in rule.condition_starts for variable in self._reads(start)}
        of_text = (variable.signal for variable in read if variable.kind not in RECALLED)
        asked = any(signal >= 0 and self._signals[signal].classifier for signal in of_text)
        found = any(threshold is None for threshold in rule.thresholds)
        if rule.waits is Waits.END:
            if rule.alone or (rule.holds and Stage.MIDSTREAM in rule.stages):
                return "waits for the end of a text that can't be kept for it"
        elif rule.waits is not (Waits.CHECK if asked and found else Waits.NO):
            return "waits for what does not decide it, or doesn't wait for what does"
        return None

    def _signals_of(self, start: int) -> frozenset[int]:
        """Return the signals of the text at hand that the expression at `start` reads."""
        read = self._reads(start)
        return frozenset(variable.signal for variable in read if variable.signal >= 0 and variable.kind not in RECALLED)

    def _reads(self, start: int) -> frozenset[Variable]:
        """Return the variables that the expression at `start` reads.

        Raises:
            ProgramInvalid: it is too long.
        """
        if start not in self._read:
            found: set[Variable] = set()
            for place in range(start, len(self._code)):
                op, argument = self._code[place]
                if op == Op.LOAD:
                    found.add(self._variables[argument])
                if op == Op.RETURN:
                    break
                if place - start >= MAX_STEPS:
                    raise ProgramInvalid(f"the expression at {start} has more than {MAX_STEPS} instructions")
            self._read[start] = frozenset(found)
        return self._read[start]


def _misplaced(rule: RuleMeta) -> str | None:
    """Return what is wrong with where a rule runs."""
    if not rule.triggers:
        channels = {"content"} if Stage.EGRESS in rule.stages else set()
        if not rule.stages or Stage.MIDSTREAM in rule.stages or rule.channels != channels:
            return "has no triggers, and runs where only triggers are"
    elif not rule.stages or not all(rule.channels.intersection(STAGE_CHANNELS[stage]) for stage in rule.stages):
        return "runs at no stage, or on none of its channels"
    elif not rule.channels <= {channel for stage in rule.stages for channel in STAGE_CHANNELS[stage]}:
        return "names a channel that its stages don't have"
    for action in rule.actions:
        for stage in rule.stages:
            barred = rule.channels.intersection(STAGE_CHANNELS[stage]).difference(action_channels(action, stage))
            if stage not in action_stages(action) or barred:
                return f"can't carry out `{action.name}` where it runs"
    return None


def _at_odds(rule: RuleMeta) -> str | None:
    """Return how the actions of a rule contradict each other or the rule."""
    names = Counter((a.name, a.position if isinstance(a, InjectDisclaimer) else "") for a in rule.actions)
    if not names or max(names.values()) > 1:
        return "has no action, or one twice"
    only = {name for name, _ in names}
    if "allow" in only and only - {"allow", "log_event"}:
        return "makes an exception and does more than that"
    if not rule.triggers and only & SPAN_ACTIONS:
        return "acts on a span and has no triggers"
    return None


def _unusable(action: AnyAction) -> str | None:
    """Return what is wrong with the texts of an action."""
    names = (*templates.NAMES, templates.SOURCES) if isinstance(action, AttributeSources) else templates.NAMES
    fields: Mapping[str, object] = msgspec.structs.asdict(action)
    written = [value for key in ("message", "text", "instruction") if isinstance(value := fields.get(key), str)]
    try:
        parts = [part for text in written for part in templates.parse(text, names)]
    except TemplateError as error:
        return f"has a text that can't be written: {error.reason}"
    match action:
        case AttributeSources() if templates.Variable((templates.SOURCES,)) not in parts:
            return "names no sources where it says that it does"
        case Redact() if (action.style == "text") != (action.text is not None):
            return "has a text and another style, or neither"
        case Pseudonymise(restore=restore) if tuple(sorted(set(restore))) != restore:
            return "names a channel twice, or out of order"
        case RewriteSpan(words=()):
            return "rewrites no word"
        case AllowConstrained() if not _is_form(action):
            return "asks for an answer of no form, or of two"
        case _:
            return None


def _is_form(action: AllowConstrained) -> bool:
    forms = [form for form in (action.json_schema, action.grammar) if form is not None]
    if len(forms) != 1 or not 0 < len(forms[0]) <= MAX_JSON_CHARS:
        return False
    if action.json_schema is None:
        return True
    try:
        schema = msgspec.json.decode(action.json_schema)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(schema, dict) and msgspec.json.encode(schema).decode() == action.json_schema
