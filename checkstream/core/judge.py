"""One channel under the policy: its text goes through the holdback, its findings and scores through the VM.

`Judge` turns decisions of the holdback into verdicts, replacements and halts. It knows nothing of the wire
or of other channels. A decision that rules which never hold text take is recorded the same way, apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from checkstream.core.actions import Firing, Halt, JsonText, Outcome, inside_json_string, resolve
from checkstream.core.commands import FindingDigest
from checkstream.core.holdback import Check, Cluster, Holdback, HoldSettings, Replacement
from checkstream.core.policy.program import InjectDisclaimer, Program, RuleMeta
from checkstream.core.policy.vm import run
from checkstream.core.terms import Channel, Facts, Finding, Span, Stage

FailMode = Literal["open", "closed"]

_RISK_DECAY = 0.8
"""Share of a stream's risk that is left after one quiet check: about 60 tokens to a tenth of it."""
_MAX_DIGESTS = 1000
"""Findings of one channel that the record keeps one by one; more are only counted."""
_MAX_JSON_SPANS = 256
"""Strings of a JSON text that are remembered before those already sent are forgotten."""


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge decided at one place of the text."""

    outcome: Outcome
    checks: tuple[Check, ...] = ()
    """Checks that are due because of it."""
    halt: Halt | None = None
    """The choice ends here."""
    failed: RuleMeta | None = None
    """A detector of this rule failed and its fail mode is closed."""
    degraded: str | None = None


class Judge:
    """Judges the text of one channel as it comes."""

    __slots__ = (
        "_digest",
        "_facts",
        "_fail_mode",
        "_fired",
        "_json",
        "_program",
        "_risk",
        "_scope",
        "channel",
        "digests",
        "holdback",
        "stage",
        "uncounted",
    )

    def __init__(
        self,
        channel: Channel,
        stage: Stage,
        *,
        program: Program,
        settings: HoldSettings,
        fail_mode: FailMode,
        digest: Callable[[str], str],
        grid: bool = True,
    ) -> None:
        """Start with an empty channel.

        Args:
            channel: Which text it is.
            stage: The section of the policy that applies.
            program: The compiled policies.
            settings: Sizes of windows and holds.
            fail_mode: What a failed detector means where its rule does not say.
            digest: Keyed digest of a text, hex, for the record.
            grid: False: classifiers see the whole text once, at its end.
        """
        scope = program.scope(stage, channel.kind)
        self.channel = channel
        self.stage = stage
        self.digests: list[FindingDigest] = []
        self.uncounted = 0
        """Findings beyond those that `digests` keeps."""
        self.holdback = Holdback(
            scope.hold,
            scope.watch if len(scope.watch) else None,
            hold_checks=bool(scope.hold_classifiers),
            watch_checks=bool(scope.watch_classifiers),
            settings=settings,
            grid=grid,
        )
        self._scope = scope
        self._program = program
        self._fail_mode = fail_mode
        self._digest = digest
        self._facts = Facts(stage, channel.kind)
        self._fired: set[int] = set()
        self._risk = 0.0
        self._json = JsonText() if channel.kind == "tool_arguments" else None

    @property
    def adds_text(self) -> bool:
        """A rule of this channel may still add text to the answer."""
        rules = (self._program.rules[index] for index in self._scope.active)
        return any(isinstance(action, InjectDisclaimer) for rule in rules for action in rule.actions)

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the classifiers that are asked about this channel."""
        return (*self._scope.hold_classifiers, *self._scope.watch_classifiers)

    def classifiers(self, check: Check) -> tuple[str, ...]:
        """Return the names of the classifiers that `check` asks."""
        return self._scope.hold_classifiers if check.hold else self._scope.watch_classifiers

    def feed(self, text: str) -> list[Check]:
        """Take text of the channel; return the checks that it makes due."""
        if self._json is not None:
            self._json.feed(text)
            if len(self._json.strings) > _MAX_JSON_SPANS:
                self._json.forget(self.holdback.sent)
        return self.holdback.feed(text)

    def advance(self) -> list[Ruling]:
        """Decide all that can be decided now, in the order of the text."""
        rulings: list[Ruling] = []
        while (decision := self.holdback.next_decision()) is not None:
            if isinstance(decision, Cluster):
                ruling = self._judge_findings(decision.findings)
            else:
                ruling = self._judge_check(decision)
            if ruling is not None:
                rulings.append(ruling)
        while (watched := self.holdback.next_watched()) is not None:
            ruling = self._judge_check(watched) if isinstance(watched, Check) else self._judge_findings((watched,))
            if ruling is not None:
                rulings.append(ruling)
        return rulings

    # --- findings

    def _judge_findings(self, findings: Iterable[Finding]) -> Ruling | None:
        firings: list[Firing] = []
        for finding in findings:
            signal = self._program.signals[finding.signal]
            self._keep_digest(finding, signal.title)
            self._facts.seen.add(finding.signal)
            firings += (
                Firing(rule=self._program.rules[index], signal=signal, span=finding.span)
                for index in run(self._program, self._scope, self._facts, finding.signal)
            )
        if not firings:
            return None
        return self._carry_out(resolve(firings, self.stage, self.channel))

    def _keep_digest(self, finding: Finding, detector: str) -> None:
        if len(self.digests) >= _MAX_DIGESTS:
            self.uncounted += 1
            return
        channel = self.channel
        self.digests.append(
            FindingDigest(
                detector=detector,
                channel=f"{channel.kind}/{channel.choice}/{channel.index}",
                span=finding.span,
                view=finding.view,
                digest=self._digest(self.holdback.text(finding.span)),
            )
        )

    def _carry_out(self, outcome: Outcome) -> Ruling:
        halt = outcome.halt
        for edit in outcome.edits:
            if halt is not None and edit.start >= halt.position:
                break
            refused = self._replace(edit)
            if refused and (halt is None or edit.start < halt.position):
                rule = next(v.rule_id for v in outcome.verdicts if v.spans[0].start < edit.end)
                halt = Halt(edit.start, self._rule(rule), "")
        checks = self.holdback.stop(halt.position) if halt is not None else []
        return Ruling(outcome=outcome, checks=tuple(checks), halt=halt)

    def _rule(self, rule_id: str) -> RuleMeta:
        return next(rule for rule in self._program.rules if rule.id == rule_id)

    def _replace(self, edit: Replacement) -> bool:
        """Put the edit in place; return True where it can't be made without breaking what the text is."""
        if self.channel.kind == "tool_name":
            return True
        if self._json is None:
            self.holdback.replace(edit.start, edit.end, edit.text)
            return False
        span = self._json.editable(edit.start, edit.end)
        if span is None:
            return True
        self.holdback.replace(span.start, span.end, inside_json_string(edit.text))
        self._json.forget(self.holdback.sent)
        return False

    # --- scores

    def _judge_check(self, check: Check) -> Ruling | None:
        if check.scores is None:
            return self._judge_failure(check)
        cleared = self.holdback.cleared if check.hold else 0
        span = Span(min(max(check.window.start, cleared), check.position), check.position)
        firings: list[Firing] = []
        fired: set[int] = set()
        for name in sorted(check.scores):
            signal = self._scope.score_signals.get(name)
            if signal is None:
                continue
            score = check.scores[name]
            self._facts.scores[signal] = score
            for index in run(self._program, self._scope, self._facts, signal):
                rule = self._program.rules[index]
                fired.add(index)
                # A rule that only records fires where its score rises, not on every window over the same text.
                if rule.holds or index not in self._fired:
                    described = self._program.signals[signal]
                    firings.append(Firing(rule=rule, signal=described, span=span, confidence=score))
        self._fired = fired
        if check.hold:
            self._risk = max(_RISK_DECAY * self._risk, *check.scores.values())
        ruling = self._carry_out(resolve(firings, self.stage, self.channel)) if firings else None
        if check.hold and (ruling is None or ruling.halt is None):
            if ruling is not None and ruling.outcome.edits:
                self.holdback.scored_through(check.position)
            else:
                self.holdback.clear(check, self._risk)
        return ruling

    def _judge_failure(self, check: Check) -> Ruling:
        """Let the fail mode decide on text that classifiers could not score."""
        asked = self.classifiers(check)
        degraded = f"{'+'.join(asked)}:{check.failed}"
        closed = self._closed_rule(asked) if check.hold else None
        if closed is None:
            if check.hold:
                self.holdback.clear(check, self._risk)
            return Ruling(outcome=Outcome(verdicts=()), degraded=degraded)
        halt = Halt(min(self.holdback.cleared, check.position), closed, "")
        checks = self.holdback.stop(halt.position)
        return Ruling(outcome=Outcome(verdicts=()), checks=tuple(checks), halt=halt, failed=closed, degraded=degraded)

    def _closed_rule(self, classifiers: tuple[str, ...]) -> RuleMeta | None:
        for index in self._scope.active:
            rule = self._program.rules[index]
            mode = rule.fail_mode or self._fail_mode
            asks = any(
                self._program.signals[trigger].classifier in classifiers
                for trigger in rule.triggers
                if self._program.signals[trigger].kind == "classifier"
            )
            if rule.holds and asks and mode == "closed":
                return rule
        return None
