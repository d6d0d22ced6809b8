"""One channel under the policy: its text goes through a holdback, its findings and scores through the VM.

`Judge` turns decisions of the holdback into verdicts, replacements and halts. It knows nothing of the wire
or of other channels. Rules that never hold text (shadow, log, egress) have judges of their own, which follow:
they read text when it has been decided that it is released, so that they see the same text however it was cut.

Which rules fire is the `Decider`'s to say; texts between sentences are put in by `Insertions`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Literal

import msgspec

from checkstream.core.channel.actions import Exceptions, Firing, Halt, Outcome, Pivot, resolve
from checkstream.core.channel.checks import EVERYTHING, Check, HoldSettings, Reach
from checkstream.core.channel.decider import Decider
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.insertions import Insertions
from checkstream.core.channel.json_leaves import JsonLeaves
from checkstream.core.channel.matches import Cluster
from checkstream.core.channel.page import Page
from checkstream.core.channel.replacements import Replacement
from checkstream.core.commands import FindingDigest
from checkstream.core.match.model_entities import Found, ModelEntities
from checkstream.core.policy.action import InjectDisclaimer
from checkstream.core.policy.program import Program, RuleMeta, Waits
from checkstream.core.steps import Pace
from checkstream.core.terms import Channel, ExchangeFacts, Finding, Span, Stage, Verdict

FailMode = Literal["open", "closed"]

_MAX_DIGESTS = 32
"""Findings of one channel that the record keeps one by one; more are only counted."""
NOT_ADDED = "text_not_added:structured_answer"
"""Degradation: a rule's text would have broken the form that the answer is to have."""
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
    pivot: Pivot | None = None
    """The answer goes on from here under stricter parameters."""
    failed: RuleMeta | None = None
    """A detector of this rule failed and its fail mode is closed."""
    degraded: tuple[str, ...] = ()
    """What was checked less than it should have been."""

    @property
    def ends(self) -> bool:
        """The text ends here, or turns."""
        return self.halt is not None or self.pivot is not None


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


class Judge:
    """Judges the text of one channel as it comes."""

    __slots__ = (
        "_asks",
        "_base",
        "_brief",
        "_decider",
        "_entities",
        "_exceptions",
        "_fired",
        "_followed",
        "_insertions",
        "_json",
        "_kept",
        "_over",
        "_pace",
        "_passed_on",
        "_program",
        "_scope",
        "_shift",
        "_takes_texts",
        "asked",
        "behind",
        "channel",
        "digests",
        "followers",
        "holdback",
        "leads",
        "on_grid",
        "page",
        "prelude",
        "seams",
        "stage",
        "uncounted",
    )

    def __init__(
        self,
        channel: Channel,
        stage: Stage,
        brief: Brief,
        *,
        leads: bool = True,
        grid: bool = True,
        asks: bool = True,
        seams: tuple[int, ...] = (),
        structured: bool = False,
        before: str = "",
        prelude: str = "",
    ) -> None:
        """Start with an empty channel.

        Args:
            channel: Which text it is.
            stage: The section of the policy that applies.
            brief: What it shares with the other judges of the exchange.
            leads: Rules that hold text, with the judges of the other rules as followers; False: a follower.
            grid: False: classifiers see the whole text once, at its end.
            asks: False: no classifier is asked.
            seams: Where texts have been put together that other judges see apart, in order: only findings over a
                seam count, and no classifier is asked.
            structured: The text has a form that edits must keep, and that no text may be put into.
            before: The answer's text before it that is only known: spans are recorded from the start of that.
            prelude: Text that has been sent already, of an answer that goes on: it is only read along.
        """
        program = brief.program
        scope = program.scope(stage, channel.kind)
        self.channel = channel
        self.stage = stage
        self.leads = leads
        self.digests: list[FindingDigest] = []
        self.uncounted = 0
        """Findings beyond those that `digests` keeps."""
        self.seams = seams
        self.asked = () if seams or not asks else scope.hold_classifiers if leads else scope.watch_classifiers
        """Names of the classifiers that each check asks."""
        self._asks = asks
        self.on_grid = grid
        """Checks come as the text does, each with what is new; False: one, of all of it."""
        self._json = JsonLeaves() if channel.kind == "tool_arguments" or structured else None
        self.holdback = Holdback(
            scope.hold if leads else scope.watch,
            checks=bool(self.asked),
            settings=brief.settings,
            grid=grid,
            joints=self._json,
            grain=scope.grain if leads else "span",
        )
        self.page = Page(
            self.holdback,
            program=program,
            scope=scope,
            exchange=brief.exchange,
            digest=brief.digest,
            degrade=brief.degrade,
            json=self._json,
        )
        self.followers: list[Judge] = []
        self.behind = False
        """The last time, more could have been decided, or passed on, than was asked for."""
        self._takes_texts = not structured
        self._scope = scope
        self._program = program
        self._brief = brief
        self._decider = Decider(
            program,
            scope,
            brief.exchange,
            fail_mode=brief.fail_mode,
            degrade=brief.degrade,
            leads=leads,
            before=before,
            reads_language=bool(brief.settings.by_language and self.asked),
        )
        self._entities = ModelEntities(self.holdback.text, len(prelude)) if self._asks_for_entities() else None
        self._insertions = Insertions(self.holdback) if leads and scope.inserts else None
        self._fired: set[int] = set()
        self._over = False
        self._kept = 0
        """The decider has forgotten what lies before it."""
        self._passed_on = len(prelude)
        self._pace = Pace(_FOLLOW_CHARS // 4)
        self._followed = 0
        """What reading has cost followers."""
        self._base = len(before)
        self._exceptions = Exceptions()
        self._shift = 0
        """How far the text starts behind that of the judge that leads."""
        self.prelude = len(prelude)
        """Characters of the text that were sent before it began."""
        if prelude:
            self._read_along(prelude)
            self.holdback.seed(prelude)

    def _asks_for_entities(self) -> bool:
        """Tell whether a classifier that finds entities is asked."""
        numbers = (number for known in self._scope.entity_signals.values() for number in known)
        return any(self._program.signals[number].classifier in self.asked for number in numbers)

    def follow(self, stage: Stage, *, said: str = "") -> None:
        """Add a follower for the rules of `stage` that never hold text, if there are any; `said` has been sent."""
        scope = self._program.scope(stage, self.channel.kind)
        if not len(scope.watch) and not scope.watch_classifiers and not scope.bare:
            return
        follower = Judge(
            self.channel,
            stage,
            self._brief,
            leads=False,
            grid=self.on_grid,
            asks=self._asks,
            seams=self.seams,
            before=said,
        )
        follower._exceptions, follower._shift = self._exceptions, self.prelude
        follower._decider.follow(self._decider, self.prelude)
        self.followers.append(follower)
        self.holdback.wanted = 0

    def take_over(self, last: Judge) -> None:
        """Know what the judge knew that has read the answer up to here."""
        self._decider.take_over(last._decider)
        for follower in self.followers:
            for other in last.followers:
                if other.stage is follower.stage:
                    follower.take_over(other)

    @property
    def is_json(self) -> bool:
        """Its text has to keep the form of JSON, and begins so."""
        return self._json is not None and bool(self._json.json)

    @property
    def complete(self) -> bool:
        """Nothing of this channel waits for a decision that could still change what is sent."""
        return self.holdback.settled and all(
            follower.holdback.settled or not follower.changes for follower in self.followers
        )

    @property
    def changes(self) -> bool:
        """A rule of this judge may change the request or add to the answer."""
        return self._scope.changes

    @property
    def degradable(self) -> bool:
        """What waits for a classifier here can be decided by a cheaper detector alone."""
        return self.leads and self._scope.degradable

    @property
    def joinable(self) -> bool:
        """Classifiers may be asked about this text and others together: rules ask only whether scores are high."""
        scope, rules = self._scope, self._program.rules
        waits = scope.reads_stream or any(rules[index].waits is Waits.CHECK for index in scope.active)
        return self.leads and not self.on_grid and self._entities is None and not waits

    def unmoved(self, scores: Mapping[str, float]) -> bool:
        """Tell whether scores are there and below all that rules here ask for."""
        return all(
            entry.floor is not None and 0.0 <= scores.get(name, -1.0) < entry.floor
            for name, signal in self._scope.score_signals.items()
            if self._program.signals[signal].classifier in self.asked
            for entry in self._scope.rules.get(signal, ())
        )

    def feed(self, text: str) -> list[Check]:
        """Take text of the channel; return the checks that it makes due."""
        self._read_along(text)
        return self.holdback.feed(text)

    def parting(self) -> Generator[None, None, None]:
        """Take the end of a part of the text: what comes is another one, which readers may join to it or not."""
        return self.holdback.parting()

    def letting_go(self) -> Generator[None, None, list[Check]]:
        """Hold nothing of what has come for what may follow; return the check that is due now."""
        return self.holdback.letting_go()

    def _read_along(self, text: str) -> None:
        if self._json is not None:
            self._json.feed(text)
            self._json.forget(self.holdback.sent)
        self._decider.feed(text)
        if self._insertions is not None:
            self._insertions.feed(text)

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked, here and in what follows (see `match.work`)."""
        followed, self._followed = self._followed, 0
        return self.holdback.take_work() + followed

    def advance(self, most: int | None = None) -> list[Ruling]:
        """Decide all that can be decided now, in the order of the text.

        Args:
            most: Only so many decisions, and some of what is to be passed on; `behind` tells whether that was all.
        """
        rulings: list[Ruling] = []
        taken, self.behind = 0, False
        while (decision := self.holdback.next_decision()) is not None:
            if isinstance(decision, Cluster):
                ruling = self._judge_findings(decision.findings)
                if ruling is not None:
                    rulings.append(ruling)
            else:
                rulings += self._judge_check(decision)
            taken += 1
            if taken == most:
                self.behind = True
                break
        if not self._over and self.holdback.decided:
            self._over = True
            rulings += self._judge_end()
        if self._insertions is not None:
            self._insertions.place()
        self._fence()
        if self.followers:
            self._pass_on(rulings, bounded=most is not None)
        if self.holdback.kept > self._kept:
            self._forget()
        return rulings

    def _forget(self) -> None:
        """Forget what was known of places where nothing will be decided any more."""
        self._kept = kept = self.holdback.kept
        followed = (follower.holdback.kept + self.prelude for follower in self.followers)
        self._decider.forget(kept, min((kept, *followed)))

    def _pass_on(self, rulings: list[Ruling], *, bounded: bool) -> None:
        """Give text that is now sure to be released to the followers, and take their decisions."""
        end = self.holdback.releasable
        settled = self.holdback.settled
        if end - self._passed_on < _FOLLOW_CHARS and not settled:
            return
        most = self._pace.chars
        if bounded and end - self._passed_on > most:
            end, settled, self.behind = self._passed_on + most, False, True
        text = self.holdback.text(Span(self._passed_on, end))
        self.holdback.wanted = self._passed_on = max(self._passed_on, end)
        for follower in self.followers:
            checks = list(follower.feed(text)) if text else []
            if settled:
                checks += follower.holdback.end()
            follower.holdback.release(follower.holdback.received)
            if checks:
                rulings.append(Ruling(judge=follower, checks=tuple(checks)))
            rulings += follower.advance()
        work = sum(follower.take_work() for follower in self.followers)
        self._followed += work
        self._pace.took(len(text), work)

    def _fence(self) -> None:
        """Keep the text over what is still to be decided, or to be put in."""
        if self.leads:
            fence = self._decider.fence
            self.holdback.fence = fence if self._insertions is None else min(fence, self._insertions.fence)

    def _judge_end(self) -> list[Ruling]:
        """Decide what asks for the whole text, now that all of it is known."""
        cut = self.holdback.cut
        end = self.holdback.received if cut is None else min(cut, self.holdback.received)
        if self._insertions is not None:
            self._insertions.end()
        firings = self._decider.fired_at_end(end, cut=cut is not None)
        return [self._carry_out(firings)] if firings else []

    # --- findings

    def _judge_findings(self, findings: Iterable[Finding]) -> Ruling | None:
        firings: list[Firing] = []
        for finding in self.page.unspared(findings):
            if finding.span.end <= self.prelude:
                continue
            signal = finding.signal
            if self._entities is not None and self._program.signals[signal].kind == "entity":
                self._entities.note(finding.span, self._program.signals[signal].name)
            firings += self._found(finding, 1.0, covered=False)
        return self._carry_out(firings) if firings else None

    def _found(self, finding: Finding, confidence: float, *, covered: bool) -> Iterable[Firing]:
        """Note that something has been found; return the firings of the rules that it decides."""
        signal = finding.signal
        self._decider.count(signal)
        if self.seams and not self._over_seam(finding.span):
            return ()
        if self.leads or signal not in self._scope.held:  # else the one that leads has it
            self._keep_digest(finding, self._program.signals[signal].title)
        span = Span(max(finding.span.start, self.prelude), finding.span.end)
        return self._decider.fired(signal, span, confidence, covered=covered).values()

    def _over_seam(self, span: Span) -> bool:
        place = bisect_right(self.seams, span.start)
        return place < len(self.seams) and self.seams[place] < span.end

    def _keep_digest(self, finding: Finding, detector: str) -> None:
        if len(self.digests) >= _MAX_DIGESTS:
            self.uncounted += 1
            return
        channel = self.channel
        self.digests.append(
            FindingDigest(
                detector=detector,
                channel=f"{channel.kind}/{channel.choice}/{channel.index}",
                span=_moved(finding.span, self._base),
                view=finding.view,
                digest=self._brief.digest(self.holdback.text(finding.span)),
            )
        )

    # --- what follows

    def _carry_out(self, firings: list[Firing]) -> Ruling:
        outcome = resolve(firings, self.stage, self.channel, self.page, self._exceptions, shift=self._shift)
        if self._base:
            outcome = msgspec.structs.replace(outcome, verdicts=tuple(self._in_answer(v) for v in outcome.verdicts))
        halt, pivot = outcome.halt, outcome.pivot
        end = min((place.position for place in (halt, pivot) if place is not None), default=EVERYTHING)
        for edit in outcome.edits:
            if edit.start >= end:
                break
            if self._replace(edit):
                rule = next(v.rule_id for v in outcome.verdicts if v.spans and v.spans[0].start - self._base < edit.end)
                halt, end = Halt(edit.start, self._rule(rule), ""), edit.start
        if pivot is not None and halt is not None and halt.position <= pivot.position:
            pivot = None
        for ask in outcome.asks:
            if isinstance(ask.action, InjectDisclaimer) and ask.action.position == "after_sentence":
                if not self._takes_texts:
                    self._brief.degrade(NOT_ADDED)
                elif self._insertions is not None:
                    self._insertions.add(ask.span.end, self.page.fill(ask.action.text, ask.firing))
        checks = self.holdback.stop(end) if end < EVERYTHING else []
        return Ruling(judge=self, outcome=outcome, checks=tuple(checks), halt=halt, pivot=pivot)

    def _in_answer(self, verdict: Verdict) -> Verdict:
        """Return a verdict whose spans count from the start of the answer."""
        return msgspec.structs.replace(verdict, spans=tuple(_moved(span, self._base) for span in verdict.spans))

    def _rule(self, rule_id: str) -> RuleMeta:
        return next(rule for rule in self._program.rules if rule.id == rule_id)

    def _replace(self, edit: Replacement) -> bool:
        """Put the edit in place; return True where it can't be made without breaking what the text is."""
        if self.channel.kind == "tool_name":
            return True
        made = [edit] if self._json is None else self._json.written(edit)
        for each in made:
            self.holdback.replacements.add(each, self.holdback.sent)
        return not made

    def share_insertions(self, done: set[str]) -> None:
        """Put in no text that is in `done`, and add those that are put in here: each comes once in a choice."""
        if self._insertions is not None:
            self._insertions.done = done

    def take_trailing(self) -> list[str]:
        """Return the texts that stand behind the last sentence: no text is left that could carry them."""
        return self._insertions.take_trailing() if self._insertions is not None else []

    # --- scores

    def _judge_check(self, check: Check) -> list[Ruling]:
        if check.spared:
            self.holdback.clear(self._reach(check).end)
            return []
        if check.degraded:
            self.holdback.clear(self._reach(check).end)
            return [Ruling(judge=self, degraded=(f"{'+'.join(self.asked)}:degraded",))]
        if check.scores is None or not self._usable(check.scores, check):
            check.failed = check.failed or "garbage"
            return [self._judge_failure(check)]
        scores = self._decider.score(check.position, check.scores)
        reach, whole = self._reach(check), Reach(check.position, check.position)
        named, end = self._found_by_models(check, reach)
        rulings = [self._carry_out(named)] if named else []
        if rulings and rulings[-1].ends:
            return rulings
        scored = self._fired_by_scores(check, scores)
        firings = scored + self._decider.fired_by_check(check.position if self._entities is None else end)
        if firings:
            rulings.append(self._carry_out(firings))
            if rulings[-1].ends:
                return rulings
        edits = rulings[-1].outcome.edits if scored else ()
        if not edits:
            self.holdback.clear(end)
            return rulings
        # The window has been edited for its score: all that was found in it is decided with it.
        firings = self._found_by_models(check, whole)[0] + self._decider.fired_by_check(check.position)
        if firings:
            rulings.append(self._carry_out(firings))
            if rulings[-1].ends:
                return rulings
        checks = self.holdback.scored_through(max(check.position, *(edit.end for edit in edits)))
        return [*rulings, Ruling(judge=self, checks=tuple(checks))]

    def _reach(self, check: Check) -> Reach:
        return self.holdback.reach(check, self._decider.risk, self._decider.language(check.position))

    def _fired_by_scores(self, check: Check, scores: Iterable[tuple[int, float]]) -> list[Firing]:
        """Return the firings of rules that scores of a check reach."""
        start = max(check.window.start, self.holdback.cleared if self.leads else 0)
        span = Span(min(start, check.position), check.position)
        scored: list[Firing] = []
        fired: set[int] = set()
        for signal, score in scores:
            for number, firing in self._decider.fired(signal, span, score, covered=True).items():
                fired.add(number)
                # A rule that only records fires where its score rises, not on every window over the same text.
                if firing.rule.holds or number not in self._fired:
                    scored.append(firing)
        self._fired = fired
        return scored

    def _found_by_models(self, check: Check, reach: Reach) -> tuple[list[Firing], int]:
        """Return the firings of rules for entities that a check decides, and how far it lets go of text."""
        if self._entities is None:
            return [], reach.end
        signals, by = self._program.signals, check.window.start
        found = [
            Found(each.entity, _moved(Span(each.start, each.end), by), each.score)
            for each in check.entities
            if any(each.score >= (signals[n].threshold or 0) for n in self._scope.entity_signals.get(each.entity, ()))
        ]
        decided, end = self._entities.decide(found, self.holdback.cleared, reach.end, reach.begun)
        firings: list[Firing] = []
        for item in decided:
            for number in self._scope.entity_signals[item.name]:
                finding = Finding(number, item.span)
                if item.score >= (signals[number].threshold or 0) and not self.page.spares(finding):
                    firings += self._found(finding, item.score, covered=True)
        return firings, end

    def _usable(self, scores: dict[str, float], check: Check) -> bool:
        """Tell whether every label that a rule reads has a score from 0 to 1, and entities stand within the window."""
        size = check.window.end - check.window.start
        return all(
            0.0 <= scores.get(name, -1.0) <= 1.0
            for name, signal in self._scope.score_signals.items()
            if self._program.signals[signal].classifier in self.asked
        ) and all(each.end <= size and 0.0 <= each.score <= 1.0 for each in check.entities)

    def _judge_failure(self, check: Check) -> Ruling:
        """Let the fail mode decide on text that classifiers could not read."""
        degraded = (f"{'+'.join(self.asked)}:{check.failed}",)
        closed = self._closed_rule()
        if closed is not None:
            halt = Halt(min(self.holdback.cleared, check.position), closed, "")
            checks = self.holdback.stop(halt.position)
            return Ruling(judge=self, checks=tuple(checks), halt=halt, failed=closed, degraded=degraded)
        self._decider.forget_scores()
        firings = self._decider.fired_by_check(check.position)
        ruling = self._carry_out(firings) if firings else Ruling(judge=self)
        if not ruling.ends:
            self.holdback.clear(self._reach(check).end)
        return msgspec.structs.replace(ruling, degraded=degraded)

    def _closed_rule(self) -> RuleMeta | None:
        """Return the first rule that a failed classifier might have fired and whose fail mode is closed.

        A rule whose conditions alone read it is undecided where it was triggered, and nowhere else.
        """
        if not self.leads:
            return None
        for index in self._scope.active:
            rule = self._program.rules[index]
            signals = (self._program.signals[signal] for signal in rule.triggers)
            asks = any(signal.classifier in self.asked for signal in signals)
            out = index in self._brief.exchange.off or index in self._brief.exchange.shadowed
            if rule.holds and asks and not out and (rule.fail_mode or self._brief.fail_mode) == "closed":
                return rule
        return None


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by) if by else span
