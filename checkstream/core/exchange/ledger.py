"""What is noted of one exchange on its way, and the record that the audit chain keeps of it at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

import msgspec

from checkstream.core.channel.actions import strictest
from checkstream.core.channel.judge import Judge
from checkstream.core.commands import ConversationRecord, FindingDigest, StreamRecord
from checkstream.core.policy.program import Program, RuleMeta
from checkstream.core.pseudonyms.register import Register
from checkstream.core.steps import Walk
from checkstream.core.terms import Channel, Span, Stage, Verdict

_MAX_VERDICTS = 32
"""Verdicts that the record keeps one by one, besides the first of each kind, and spans of each; how often each rule
fired it always says. A short text can be made of findings, and a record must not be a hundred times its size."""
_MAX_FINDINGS = 32
"""Findings that the record keeps one by one, over all channels."""
_MAX_FIRED_ON = 256
_MAX_UNSCANNED = 100
"""Names that the record keeps of what was not scanned; the upstream chooses them."""
_MAX_NAME_CHARS = 100
_READ_NAME_CHARS = 256
"""What is looked at of a longer name, before that: each of its words is looked for in all of it."""
_JUDGES_A_STEP = 256
_MAX_WORD_CHARS = 40
_MAX_DIGITS = 4
_MAX_ALL_DIGITS = 6
_MAX_CAPITALS = 15
"""Together with digits: keys have more."""
_JOINTS = str.maketrans(dict.fromkeys(".:[]", "\0"))
_MARKS = str.maketrans(dict.fromkeys("_-$"))


class Ledger:
    """The notes of one exchange. Repeated notes count once; order is that of the first."""

    def __init__(self) -> None:
        """Start with nothing noted."""
        self.verdicts: list[Verdict] = []
        self.judges: list[Judge] = []
        """Every channel that was scanned, of prompt and answer ..."""
        self.gone: list[Judge] = []
        """... but for those of which all is noted."""
        self.confirmed: tuple[str, ...] = ()
        """Ids of rules that asked for a confirmation, which the caller has sent."""
        self.unheard: set[str] = set()
        """Classifiers that were asked and not waited for: the exchange ended before they had read anything of it."""
        self.upstream_failure: str | None = None
        self.withheld: str | None = None
        """What the upstream has left torn and was not passed on."""
        self.turned_at: int | None = None
        """Where the answer was cut, to go on in a second one."""
        self.checked_s = 0.0
        """Longest time that a check took."""
        self.held_s = 0.0
        self._carried_out: list[str] = []
        self.fired_on: dict[tuple[Channel, str], None] = {}
        """Texts, and ids of rules that were enforced on them."""
        self.entities: set[str] = set()
        """Kinds of entities for which rules have fired."""
        self._fired: dict[str, int] = {}
        """Id of a rule -> how often it has fired."""
        self._kinds: set[tuple[str, str, str, str | None]] = set()
        """Rule, action, mode and exception of verdicts that are kept: what an exchange comes to depends on these."""
        self._unscanned: dict[str, None] = {}
        self._besides: dict[str, None] = {}
        self._removed: dict[str, None] = {}
        self._degradations: dict[str, None] = {}
        self._seen = _Seen()

    def judged(self, verdicts: Iterable[Verdict]) -> None:
        """Note verdicts."""
        for verdict in verdicts:
            kind = verdict.rule_id, verdict.action, verdict.mode, verdict.excepted_by
            if len(self.verdicts) < _MAX_VERDICTS or kind not in self._kinds:
                self._kinds.add(kind)
                self.verdicts.append(msgspec.structs.replace(verdict, spans=verdict.spans[:_MAX_VERDICTS]))
            else:
                self.degraded("verdicts_not_listed")
            if verdict.mode == "enforce" and verdict.excepted_by is None and len(self.fired_on) < _MAX_FIRED_ON:
                self.fired_on.setdefault((verdict.channel, verdict.rule_id))
            self.entities.update(name.removeprefix(_ENTITY) for name in verdict.triggers if name.startswith(_ENTITY))
            self._fired[verdict.rule_id] = self._fired.get(verdict.rule_id, 0) + 1

    def carried_out(self, action: str) -> None:
        """Note an action that was carried out whether or not a verdict asked for it, as a fail mode may."""
        self._carried_out.append(action)

    def scanned(self, name: str) -> None:
        """Note that a text was scanned which has a name of its own, besides the kinds of channels."""
        if len(self._besides) < 2 * _MAX_UNSCANNED:
            self._besides.setdefault(_named(name))

    def read(self, stage: Stage, kind: str, chars: int = 0) -> None:
        """Note that a channel was read for which no judge was made, with so many characters of an answer."""
        self._seen.kinds.add((stage, kind))
        self._seen.answered += chars

    def unscanned(self, name: str) -> None:
        """Note that something was passed on without a scan."""
        if len(self._unscanned) < _MAX_UNSCANNED:
            self._unscanned.setdefault(_named(name))
        elif name not in self._unscanned:
            self.degraded("unscanned_not_listed")

    def read_besides(self, fields: Iterable[str]) -> None:
        """Note fields of the request that nobody knows and that were scanned all the same."""
        for name in fields:
            if len(self._besides) < _MAX_UNSCANNED:
                self._besides.setdefault(_named(f"ingress:{name}"))

    def removed(self, fields: Iterable[str]) -> None:
        """Note fields that were taken out of the request."""
        for name in fields:
            if len(self._removed) < _MAX_UNSCANNED:
                self._removed.setdefault(_named(name))

    def degraded(self, reason: str) -> bool:
        """Note a degradation; return whether it is new."""
        new = reason not in self._degradations
        self._degradations.setdefault(reason)
        return new

    @property
    def action(self) -> str:
        """The strictest action that was carried out so far."""
        done = [v.action for v in self.verdicts if v.mode == "enforce" and v.excepted_by is None]
        if self.confirmed:  # what has been confirmed was not carried out
            done = [action for action in done if action != "require_confirmation"]
        return strictest([*done, *self._carried_out])

    @property
    def tells(self) -> bool:
        """Something was done to the exchange that its caller is told of."""
        return self.action not in _UNTOLD or self.withheld is not None

    def told(self, stream: str, halted: RuleMeta | None) -> msgspec.Raw | None:
        """Return what the caller is told of what was done to the answer, as JSON; None: nothing was done to it.

        Args:
            stream: Id of the exchange, to ask its operator about; empty: it has none.
            halted: The rule that has ended the answer, if one has.
        """
        if not self.tells:
            return None
        action = self.action if self.action not in _UNTOLD else "allow"
        carried = [v for v in self.verdicts if v.mode == "enforce" and v.excepted_by is None]
        asked = [v for v in carried if v.action == action]
        if not asked and halted is not None:  # it has asked for something else, which could not be done
            asked = [v for v in carried if v.rule_id == halted.id]
        verdict = min(asked, key=_place, default=None) if action != "allow" else None
        told = {"action": action}
        if verdict is not None:
            told |= {"rule_id": verdict.rule_id, "reason": ", ".join(map(_kind, verdict.triggers)) or "conditions"}
        elif halted is not None:  # no verdict of the rule: what it asks could not be answered
            told |= {"rule_id": halted.id, "reason": "detector_failed"}
        if self.withheld is not None:
            told |= {"reason": self.withheld} if "reason" not in told else {"withheld": self.withheld}
        return msgspec.Raw(msgspec.json.encode(told | ({"stream": stream} if stream else {})))

    def letting_go(self) -> Walk:
        """Keep of the channels that have been decided, in steps, only what the record says: there can be any number."""
        at = 0
        while at < len(self.judges):
            some = self.judges[at : at + _JUDGES_A_STEP]
            over = [judge for judge in some if judge.holdback.settled]
            self._note(over)
            self.judges[at : at + len(some)] = kept = [judge for judge in some if not judge.holdback.settled]
            at += len(kept)
            yield

    def noting(self, *, whatever: bool = False) -> Walk:
        """Note, in steps, what the record says of the first channels: as far as they are decided, or of `whatever` is.

        In their order, so that the record is the same whenever they were decided. Nothing is to be decided about those
        that are noted.
        """
        while self.judges:
            some = self.judges[:_JUDGES_A_STEP]
            over = some if whatever else list(takewhile(lambda judge: judge.holdback.settled, some))
            self._note(over)
            del self.judges[: len(over)]
            yield
            if len(over) < len(some):
                break

    def _note(self, judges: Sequence[Judge]) -> None:
        self._seen.take(judges)
        del self._seen.findings[_MAX_FINDINGS + 1 :]
        self.gone += judges

    def record(
        self,
        *,
        surface: str,
        streaming: bool,
        outcome: str,
        program: Program,
        prompt_chars: int,
        released_chars: int,
        risks: dict[str, float],
        conversation: ConversationRecord | None = None,
        answer_chars: int = 0,
        register: Register | None = None,
        method: str | msgspec.UnsetType = msgspec.UNSET,
    ) -> StreamRecord:
        """Return the record of the exchange; of a prompt that was not judged no characters count.

        `answer_chars` counts characters of answers that were judged otherwise than midstream.
        """
        seen = self._seen
        self._note(self.judges)
        self.judges.clear()
        if seen.uncounted or len(seen.findings) > _MAX_FINDINGS:
            self.degraded("findings_not_listed")
        scanned = {f"{stage}:{kind}" for stage, kind in seen.kinds}
        classifiers = {name for names in seen.asked for name in names} - self.unheard
        return StreamRecord(
            surface=surface,
            method=method,
            streaming=streaming,
            action=self.action,
            outcome=outcome,
            policies=program.packs,
            program=program.hash,
            scanned=tuple(sorted({*self._besides, *scanned})),
            unscanned=tuple(self._unscanned),
            detectors=("match", *sorted(classifiers)) if seen.kinds else (),
            findings=tuple(seen.findings[:_MAX_FINDINGS]),
            verdicts=tuple(sorted(self.verdicts, key=_place)),
            fired=self._fired if sum(self._fired.values()) > len(self.verdicts) else {},
            pseudonyms=(register.counts if register is not None else None) or msgspec.UNSET,
            restored=(register.restored if register is not None else 0) or msgspec.UNSET,
            not_given=(register.not_given if register is not None else 0) or msgspec.UNSET,
            removed=tuple(self._removed),
            confirmed=self.confirmed,
            turned_at=self.turned_at,
            degradations=tuple(self._degradations),
            upstream_failure=self.upstream_failure,
            checked_ms=round(self.checked_s * 1000, 3) or msgspec.UNSET,
            held_ms=round(self.held_s * 1000, 3),
            prompt_chars=prompt_chars if seen.prompted else 0,
            answer_chars=seen.answered + answer_chars,
            released_chars=released_chars,
            risks=risks,
            conversation=msgspec.UNSET if conversation is None else conversation,
        )


class _Seen:
    """What a record says of channels, put together."""

    def __init__(self) -> None:
        self.findings: list[FindingDigest] = []
        self.kinds: set[tuple[Stage, str]] = set()
        self.asked: set[tuple[str, ...]] = set()
        self.answered = 0
        """Characters of answers."""
        self.prompted = False
        self.uncounted = False

    def take(self, judges: Sequence[Judge]) -> None:
        """Take some; nearly all say nothing but what others of their kind do."""
        self.findings += [digest for judge in judges for digest in judge.noted.digests]
        self.uncounted = self.uncounted or max((judge.noted.uncounted for judge in judges), default=0) > 0
        leading = {(judge.stage, judge.channel.kind, judge.asked, judge.leads) for judge in judges}
        for stage, kind, asked, leads in leading:
            self.kinds.add((stage, kind))
            self.asked.add(asked)
            self.prompted = self.prompted or (leads and stage is Stage.INGRESS)
        if any(leads and stage is not Stage.INGRESS for stage, _, _, leads in leading):
            told = [judge for judge in judges if judge.leads and judge.stage is not Stage.INGRESS]
            self.answered += sum([judge.holdback.received - judge.prelude for judge in told])


def _named(name: str) -> str:
    """Return a place as a record may have it: a name in it may be the caller's or the upstream's secret."""
    if len(name) > _READ_NAME_CHARS:
        name = name[:_READ_NAME_CHARS]
        torn = name.translate(_JOINTS).rpartition("\0")[2]
        name = f"{name.removesuffix(torn)}?"  # nobody has looked at all of its last word
    numbers = sum(map(str.isdigit, name)) > _MAX_ALL_DIGITS
    for word in sorted(name.translate(_JOINTS).split("\0"), key=len, reverse=True):
        if word and not (_is_harmless(word) and not (numbers and any(map(str.isdigit, word)))):
            name = name.replace(word, "?")
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]}..."


def _is_harmless(word: str) -> bool:
    """Tell whether a word looks like what people call a field, and not like a key, a number or an address."""
    letters = word.translate(_MARKS)
    return (
        letters.isascii()
        and letters.isalnum()
        and len(letters) <= _MAX_WORD_CHARS
        and sum(map(str.isdigit, letters)) <= _MAX_DIGITS
        and sum(not char.islower() for char in letters) <= _MAX_CAPITALS
    )


def _kind(trigger: str) -> str:
    """Return what callers may know of a trigger: phrases that a policy looks for, and texts, are its own."""
    kind = trigger.partition(":")[0]
    return kind if kind in _OWN else trigger


def _place(verdict: Verdict) -> tuple[int, Channel, tuple[Span, ...], str]:
    """Return where a verdict stands in a record: by stage, then by text, whenever it was taken."""
    return _STAGES.index(verdict.stage), verdict.channel, verdict.spans, verdict.rule_id


_ENTITY = "entity:"
_OWN = frozenset({"phrase", "recital"})
_STAGES = tuple(Stage)
_UNTOLD = frozenset({"allow", "log_event"})
"""What these do, no caller sees."""
