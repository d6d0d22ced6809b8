"""One channel under the policy: its text goes through a holdback, its findings and scores through the VM.

`Judge` turns decisions of the holdback into verdicts, replacements and halts. It knows nothing of the wire
or of other channels. Rules that never hold text (shadow, log, egress) have judges of their own, which follow:
they read text when it has been decided that it is released, so that they see the same text however it was cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from checkstream.core.actions import Firing, Halt, JsonStrings, Outcome, inside_json_string, resolve
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
_FOLLOW_CHARS = 256
"""Followers hold nothing, so they read the text in pieces of this size: a scan costs per piece, not per character."""


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge decided at one place of the text."""

    judge: Judge
    outcome: Outcome = Outcome(verdicts=())
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
        "_decided",
        "_digest",
        "_facts",
        "_fail_mode",
        "_fired",
        "_json",
        "_program",
        "_risk",
        "_scope",
        "asked",
        "channel",
        "digests",
        "followers",
        "holdback",
        "leads",
        "seams",
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
        leads: bool = True,
        grid: bool = True,
        seams: tuple[int, ...] = (),
    ) -> None:
        """Start with an empty channel.

        Args:
            channel: Which text it is.
            stage: The section of the policy that applies.
            program: The compiled policies.
            settings: Sizes of windows and holds.
            fail_mode: What a failed detector means where its rule does not say.
            digest: Keyed digest of a text, hex, for the record.
            leads: Rules that hold text, with the judges of the other rules as followers; False: a follower.
            grid: False: classifiers see the whole text once, at its end.
            seams: Where texts have been put together that other judges see apart, in order: only findings over a
                seam count, and no classifier is asked.
        """
        scope = program.scope(stage, channel.kind)
        self.channel = channel
        self.stage = stage
        self.leads = leads
        self.digests: list[FindingDigest] = []
        self.uncounted = 0
        """Findings beyond those that `digests` keeps."""
        self.seams = seams
        self.asked = () if seams else scope.hold_classifiers if leads else scope.watch_classifiers
        """Names of the classifiers that each check asks."""
        self._json = JsonStrings() if channel.kind == "tool_arguments" else None
        self.holdback = Holdback(
            scope.hold if leads else scope.watch,
            checks=bool(self.asked),
            settings=settings,
            grid=grid,
            joints=self._json,
        )
        self.followers: list[Judge] = []
        self._scope = scope
        self._program = program
        self._fail_mode: FailMode = fail_mode
        self._digest = digest
        self._facts = Facts(stage, channel.kind)
        self._fired: set[int] = set()
        self._risk = 0.0
        self._decided = 0

    def follow(self, stage: Stage, settings: HoldSettings, *, grid: bool) -> None:
        """Add a follower for the rules of `stage` that never hold text, if there are any."""
        scope = self._program.scope(stage, self.channel.kind)
        if not len(scope.watch) and not scope.watch_classifiers:
            return
        follower = Judge(
            self.channel,
            stage,
            program=self._program,
            settings=settings,
            fail_mode=self._fail_mode,
            digest=self._digest,
            leads=False,
            grid=grid,
            seams=self.seams,
        )
        self.followers.append(follower)
        self.holdback.wanted = 0

    @property
    def complete(self) -> bool:
        """Nothing of this channel waits for a decision that could still change what is sent."""
        return self.holdback.settled and all(
            follower.holdback.settled or not follower.adds_text for follower in self.followers
        )

    @property
    def adds_text(self) -> bool:
        """A rule of this judge may add text to the answer."""
        rules = (self._program.rules[index] for index in self._scope.active)
        return any(isinstance(action, InjectDisclaimer) for rule in rules for action in rule.actions)

    @property
    def degradable(self) -> bool:
        """What waits for a classifier here can be decided by a cheaper detector alone."""
        return self.leads and self._scope.degradable

    def feed(self, text: str) -> list[Check]:
        """Take text of the channel; return the checks that it makes due."""
        if self._json is not None:
            self._json.feed(text)
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
        if self.followers:
            self._pass_on(rulings)
        return rulings

    def _pass_on(self, rulings: list[Ruling]) -> None:
        """Give text that is now sure to be released to the followers, and take their decisions."""
        end = self.holdback.releasable
        settled = self.holdback.settled
        if end - self._decided < _FOLLOW_CHARS and not settled:
            return
        text = self.holdback.text(Span(self._decided, end))
        self.holdback.wanted = self._decided = max(self._decided, end)
        for follower in self.followers:
            checks = list(follower.feed(text)) if text else []
            if settled:
                checks += follower.holdback.end()
            follower.holdback.release(follower.holdback.received)
            if checks:
                rulings.append(Ruling(judge=follower, checks=tuple(checks)))
            rulings += follower.advance()

    # --- findings

    def _judge_findings(self, findings: Iterable[Finding]) -> Ruling | None:
        firings: list[Firing] = []
        for finding in findings:
            signal = self._program.signals[finding.signal]
            if self.seams and not self._over_seam(finding.span):
                self._facts.seen.add(finding.signal)
                continue
            if self.leads or finding.signal not in self._scope.held:  # else the one that leads has it
                self._keep_digest(finding, signal.title)
            self._facts.seen.add(finding.signal)
            firings += (
                Firing(rule=self._program.rules[index], signal=signal, span=finding.span)
                for index in self._fires(finding.signal)
            )
        if not firings:
            return None
        return self._carry_out(resolve(firings, self.stage, self.channel))

    def _over_seam(self, span: Span) -> bool:
        place = bisect_right(self.seams, span.start)
        return place < len(self.seams) and self.seams[place] < span.end

    def _fires(self, signal: int) -> Iterator[int]:
        """Yield the rules that a signal fires and that this judge decides on."""
        for index in run(self._program, self._scope, self._facts, signal):
            if self._scope.decides(index, signal, leads=self.leads):
                yield index

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
        return Ruling(judge=self, outcome=outcome, checks=tuple(checks), halt=halt)

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
        return False

    # --- scores

    def _judge_check(self, check: Check) -> Ruling | None:
        if check.degraded:
            self.holdback.clear(check, self._risk)
            return Ruling(judge=self, degraded=f"{'+'.join(self.asked)}:degraded")
        if check.scores is None or not self._usable(check.scores):
            check.failed = check.failed or "garbage"
            return self._judge_failure(check)
        start = max(check.window.start, self.holdback.cleared if self.leads else 0)
        span = Span(min(start, check.position), check.position)
        firings: list[Firing] = []
        fired: set[int] = set()
        for name in sorted(check.scores):
            signal = self._scope.score_signals.get(name)
            if signal is None:
                continue
            score = check.scores[name]
            self._facts.scores[signal] = score
            for index in self._fires(signal):
                rule = self._program.rules[index]
                fired.add(index)
                # A rule that only records fires where its score rises, not on every window over the same text.
                if rule.holds or index not in self._fired:
                    described = self._program.signals[signal]
                    firings.append(Firing(rule=rule, signal=described, span=span, confidence=score))
        self._fired = fired
        self._risk = max(_RISK_DECAY * self._risk, *check.scores.values(), 0.0)
        ruling = self._carry_out(resolve(firings, self.stage, self.channel)) if firings else None
        if ruling is None or ruling.halt is None:
            if ruling is not None and ruling.outcome.edits:
                checks = self.holdback.scored_through(check.position)
                ruling = msgspec.structs.replace(ruling, checks=(*ruling.checks, *checks))
            else:
                self.holdback.clear(check, self._risk)
        return ruling

    def _usable(self, scores: dict[str, float]) -> bool:
        """Tell whether every label that a rule here reads of the classifiers asked has a score from 0 to 1."""
        return all(
            0.0 <= scores.get(name, -1.0) <= 1.0
            for name, signal in self._scope.score_signals.items()
            if self._program.signals[signal].classifier in self.asked
        )

    def _judge_failure(self, check: Check) -> Ruling:
        """Let the fail mode decide on text that classifiers could not score."""
        degraded = f"{'+'.join(self.asked)}:{check.failed}"
        closed = self._closed_rule()
        if closed is None:
            self.holdback.clear(check, self._risk)
            return Ruling(judge=self, degraded=degraded)
        halt = Halt(min(self.holdback.cleared, check.position), closed, "")
        checks = self.holdback.stop(halt.position)
        return Ruling(judge=self, checks=tuple(checks), halt=halt, failed=closed, degraded=degraded)

    def _closed_rule(self) -> RuleMeta | None:
        """Return the first rule that a failed classifier leaves undecided and whose fail mode is closed."""
        if not self.leads:
            return None
        for index in self._scope.active:
            rule = self._program.rules[index]
            signals = (self._program.signals[trigger] for trigger in rule.triggers)
            asks = any(signal.kind == "classifier" and signal.classifier in self.asked for signal in signals)
            if rule.holds and asks and (rule.fail_mode or self._fail_mode) == "closed":
                return rule
        return None
