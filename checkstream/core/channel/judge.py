"""One channel under the policy: its text goes through a holdback, its findings and scores through the VM.

`Judge` turns decisions of the holdback into rulings: verdicts, replacements and halts. It knows nothing of the wire
or of other channels. Rules that never hold text (shadow, log, egress) have judges of their own, which follow:
they read text when it has been decided that it is released, so that they see the same text however it was cut.

Which rules fire is the `Decider`'s to say. `Noted` takes what was found, `Answers` what classifiers say, `Execution`
does what rules ask for, and `Insertions` puts texts between sentences.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

import msgspec

from checkstream.core.channel.actions import Exceptions, Firing, Halt, Outcome, Pivot
from checkstream.core.channel.answers import Answers
from checkstream.core.channel.arrivals import Arrivals
from checkstream.core.channel.brief import AS_IT_COMES, Brief, Manner, Place
from checkstream.core.channel.checks import EVERYTHING, Check, Reach
from checkstream.core.channel.decider import Decider
from checkstream.core.channel.execution import Execution
from checkstream.core.channel.fences import Fences
from checkstream.core.channel.following import Following
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.insertions import Insertions
from checkstream.core.channel.json_leaves import JsonLeaves
from checkstream.core.channel.matches import LOOKED_AT, Cluster
from checkstream.core.channel.noted import Noted
from checkstream.core.channel.page import Page
from checkstream.core.channel.restoring import Restoring
from checkstream.core.match.patterns import PatternSet
from checkstream.core.policy.program import RuleMeta, Scope
from checkstream.core.terms import Channel, Finding, Stage, Verdict

_TOGETHER_WORK = 7
"""Of a finding that is decided together with another, besides the ruling (see `match.work`)."""


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


def _searched(scope: Scope, *, leads: bool, restores: bool) -> PatternSet:
    """Return what a text is searched for."""
    if not leads:
        return scope.watch
    return scope.restored if restores and scope.restored is not None else scope.hold


def _first(before: tuple[tuple[Finding, ...], ...] | None) -> tuple[Finding, ...] | None:
    """Return what is known to be found by the first of some judges."""
    return None if before is None else before[0] if before else ()


class Judge:
    """Judges the text of one channel as it comes."""

    __slots__ = (
        "_along", "_answers", "_before", "_execution", "_fences", "_following", "_insertions", "_json", "_kept",
        "_over", "_place", "_restoring", "_scope", "_work", "arrivals", "asked", "behind", "channel", "decider",
        "exceptions", "followers", "holdback", "leads", "manner", "noted", "page", "prelude", "stage",
    )  # fmt: skip

    def __init__(
        self,
        channel: Channel,
        stage: Stage,
        brief: Brief,
        manner: Manner = AS_IT_COMES,
        *,
        leader: Judge | None = None,
        before: str = "",
        prelude: str = "",
    ) -> None:
        """Start with an empty channel.

        Args:
            channel: Which text it is.
            stage: The section of the policy that applies.
            brief: What it shares with the other judges of the exchange.
            manner: How it reads the text.
            leader: None: it decides rules that hold text, and has judges of the other rules as followers. Else it is a
                follower of this one.
            before: The answer's text before it that is only known: spans are recorded from the start of that.
            prelude: Text that has been sent already, of an answer that goes on: it is only read along.
        """
        self.leads = leads = leader is None
        self.channel = channel
        self.stage = stage
        self.prelude = len(prelude)
        """Characters of the text that were sent before it began."""
        self.manner = manner
        self._scope = scope = manner.scope or brief.program.scope(stage, channel.kind)
        self._place = place = Place(
            channel, stage, brief, scope, leads=leads, seams=manner.seams, prelude=len(prelude), base=len(before)
        )
        classifiers = scope.hold_classifiers if leads else scope.watch_classifiers
        self.asked = classifiers if manner.asks and not manner.seams else ()
        """Names of the classifiers that each check asks."""
        restores = leads and not manner.signed and scope.restored is not None and len(brief.register) > 0
        self._json = JsonLeaves() if channel.kind == "tool_arguments" or manner.structured else None
        told = leads and channel.kind == "content" and self._json is None
        self._fences = Fences() if told else None
        self.holdback = Holdback(
            _searched(scope, leads=leads, restores=restores),
            _first(manner.before),
            checks=bool(self.asked),
            settings=brief.settings,
            grid=manner.grid,
            joints=self._json,
            grain=scope.grain if leads else "span",
            late=manner.late or not manner.grid,
        )
        self.arrivals: Arrivals = Arrivals(brief.clock) if leader is None else leader.arrivals
        """When the text came: of one that follows, that of the one it follows."""
        self._before = len(before) - (0 if leader is None else leader.prelude)
        """What stands between the start of the answer and that of the text whose arrival is noted."""
        self._work = 0
        self.page = Page(self.holdback, brief, scope, json=self._json, fences=self._fences)
        placeholders = brief.program.placeholders
        self._restoring = (
            Restoring(placeholders, brief.register, self.page, self.holdback, brief.degrade)
            if restores and placeholders is not None
            else None
        )
        reads_language = bool(brief.settings.by_language and self.asked)
        self.decider = Decider(place, before=before, reads_language=reads_language)
        self._insertions = Insertions(self.holdback) if leads and scope.inserts else None
        readers = (self.decider if self.decider.reads else None, self._restoring, self._insertions)
        self._along = tuple(reader.feed for reader in readers if reader is not None)
        self.noted = Noted(place, self.decider, self.holdback)
        self._answers = Answers(place, self.decider, self.holdback, self.page, asked=self.asked, noted=self.noted)
        self.exceptions: Exceptions = Exceptions() if leader is None else leader.exceptions
        self._execution = Execution(
            place,
            self.page,
            self.holdback,
            insertions=self._insertions,
            json=self._json or self._fences,
            takes_texts=not manner.structured,
            exceptions=self.exceptions,
            shift=0 if leader is None else leader.prelude,
        )
        self.followers: list[Judge] = []
        self.behind = False
        """The last time, more could have been decided, or passed on, than was asked for."""
        self._over = False
        self._kept = 0
        """The decider has forgotten what lies before it."""
        self._following = Following(self.prelude)
        if leader is not None:
            self.decider.follow(leader.decider, leader.prelude)
        if prelude:
            self._read_along(prelude)
            self.holdback.seed(prelude)

    def follow(self, stage: Stage, *, said: str = "") -> None:
        """Add a follower for the rules of `stage` that never hold text, if there are any; `said` has been sent."""
        scope = self._place.program.scope(stage, self.channel.kind)
        if not len(scope.watch) and not scope.watch_classifiers and not scope.bare:
            return
        before = self.manner.before
        left = None if before is None else before[len(self.followers) + 1 :]
        follower = Judge(
            self.channel,
            stage,
            self._place.brief,
            msgspec.structs.replace(self.manner, structured=False, before=left),
            leader=self,
            before=said,
        )
        self.followers.append(follower)
        self.holdback.wanted = 0

    def take_over(self, last: Judge) -> None:
        """Know what the judge knew that has read the answer up to here."""
        self.decider.take_over(last.decider)
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
        return self.leads and not self.manner.grid and not self._answers.apart

    def unmoved(self, scores: Mapping[str, float]) -> bool:
        """Tell whether scores are there and below all that rules here ask for."""
        return self._answers.unmoved(scores)

    def feed(self, text: str) -> list[Check]:
        """Take text of the channel; return the checks that it makes due."""
        if self.leads:
            self.arrivals.note(self.holdback.received)
        self._read_along(text)
        return self.holdback.feed(text)

    def feed_words(self, text: str) -> list[Check] | None:
        """Take text if nothing is found in it by words that are known, as `feed` does; None: nothing was done."""
        start = self.holdback.received
        checks = self.holdback.feed_words(text)
        if checks is not None:
            self.arrivals.note(start)
            self._read_along(text)
        return checks

    def words_in(self, text: str) -> int:
        """Return how many characters of a text, which `feed_words` did not take, it may take."""
        return self.holdback.matches.words_in(text)

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear."""
        return self.holdback.matches.ahead

    @property
    def steady_to(self) -> int:
        """Up to here, at least, nothing is decided however much text comes, unless something is found in it."""
        due = self.holdback.checks.due
        if self.holdback.matches.found or (due and due[0].answered):
            return 0
        return self._following.due if self.followers else EVERYTHING

    def rests(self, releasable: int) -> bool:
        """Tell whether nothing is to be decided now, and nothing to be passed on of the text before `releasable`."""
        holdback = self.holdback
        if self.behind or holdback.ended or ((holdback.matches.found or holdback.checks.due) and holdback.stirs):
            return False
        if self._insertions is not None and self._insertions.waiting:
            return False
        return not (self.followers and releasable >= self._following.due)

    @property
    def unedited(self) -> bool:
        """All of the text that waits leaves as it came, and when the holdback says so."""
        holdback = self.holdback
        return holdback.cut is None and not holdback.replacements.items and not holdback.ended

    def took_s(self, verdict: Verdict) -> float:
        """Return how long ago the text of a verdict was complete, seconds: the last character of its last span.

        Of one without a span, which a rule without triggers takes at the end of a text, all that had come.
        """
        if not verdict.spans:
            return self.arrivals.since(EVERYTHING)
        return self.arrivals.since(max(verdict.spans[-1].end - 1 - self._before, 0))

    def parting(self, *, spaced: bool = False) -> Generator[None, None, None]:
        """Take the end of a part of the text (see `Holdback.parting`)."""
        return self.holdback.parting(spaced=spaced)

    def letting_go(self) -> Generator[None, None, list[Check]]:
        """Hold nothing of what has come for what may follow; return the check that is due now."""
        return self.holdback.letting_go()

    def _read_along(self, text: str) -> None:
        if self._json is not None:
            self._json.feed(text)
            self._json.forget(self.holdback.sent)
        elif self._fences is not None:
            self._fences.feed(text, self.holdback.sent)
        for reader in self._along:
            reader(text)

    @property
    def unread_work(self) -> int:
        """What reading its own text has cost since `take_work` was last asked."""
        return self.holdback.matches.work.done

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked, here and in what follows (see `match.work`)."""
        work, self._work = self._work, 0
        if self._restoring is not None:
            work += self._restoring.take_work()
        return work + self.holdback.take_work() + self._following.take_work()

    def advance(self, most: int | None = None) -> list[Ruling]:
        """Decide all that can be decided now, in the order of the text.

        Args:
            most: Only so many findings and checks, and some of what is to be passed on; `behind` tells whether that was
                all. What overlaps is decided together.
        """
        rulings: list[Ruling] = []
        taken, self.behind = 0, False
        while (decision := self.holdback.next_decision()) is not None:
            if isinstance(decision, Cluster):
                ruling = self._judge_findings(decision.findings)
                if ruling is not None:
                    rulings.append(ruling)
                taken += len(decision.findings) or LOOKED_AT
                self._work += max(len(decision.findings) - 1, 0) * _TOGETHER_WORK
            else:
                rulings += self._judge_check(decision)
                taken += 1
            if most is not None and taken >= most:
                self.behind = True
                break
        self._work += taken  # also where no rule asks for anything
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
        self.decider.forget(kept, min((kept, *followed)))
        if self._restoring is not None:
            self._restoring.forget(kept)

    def _pass_on(self, rulings: list[Ruling], *, bounded: bool) -> None:
        """Give text that is now sure to be released to the followers, and take their decisions."""
        settled = self.holdback.settled
        piece = self._following.piece(self.holdback.releasable, settled=settled, bounded=bounded)
        if piece is None:
            return
        if self._following.behind:
            settled, self.behind = False, True
        text = self.holdback.text(piece)
        self.holdback.wanted = piece.end
        for follower in self.followers:
            checks = list(follower.feed(text)) if text else []
            if settled:
                checks += follower.holdback.end()
            follower.holdback.release(follower.holdback.received)
            if checks:
                rulings.append(Ruling(judge=follower, checks=tuple(checks)))
            rulings += follower.advance()
        self._following.took(len(text), sum(follower.take_work() for follower in self.followers))

    def _fence(self) -> None:
        """Keep the text over what is still to be decided, or to be put in."""
        if self.leads:
            fence = self.decider.fence
            self.holdback.fence = fence if self._insertions is None else min(fence, self._insertions.fence)

    def _judge_end(self) -> list[Ruling]:
        """Decide what asks for the whole text, now that all of it is known."""
        cut = self.holdback.cut
        end = self.holdback.received if cut is None else min(cut, self.holdback.received)
        if self._insertions is not None:
            self._insertions.end()
        firings = self.decider.fired_at_end(end, cut=cut is not None)
        return [self._carry_out(firings)] if firings else []

    # --- findings

    def _judge_findings(self, findings: Iterable[Finding]) -> Ruling | None:
        firings: list[Firing] = []
        found = tuple(finding for finding in findings if finding.span.end > self.prelude)
        if self._restoring is not None:
            restored = self._restoring.take(found)
            self._execution.restore(restored.edits)
            self._answers.cut_around(restored.places)
            found = restored.findings
        counting = self.page.unspared(found)
        self._answers.note(found, counting)
        for finding in counting:
            firings += self.noted.take(finding, 1.0, covered=False)
        return self._carry_out(firings) if firings else None

    def _carry_out(self, firings: list[Firing]) -> Ruling:
        outcome, checks, halt, pivot = self._execution.carry_out(firings)
        return Ruling(judge=self, outcome=outcome, checks=checks, halt=halt, pivot=pivot)

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
            self.holdback.clear(self._answers.reach(check).end)
            return []
        if check.degraded:
            self.holdback.clear(self._answers.reach(check).end)
            return [Ruling(judge=self, degraded=(f"{'+'.join(self.asked)}:degraded",))]
        if check.scores is None or not self._answers.usable(check.scores, check):
            check.failed = check.failed or "garbage"
            return [self._judge_failure(check)]
        scores = self.decider.score(check.position, check.scores)
        reach, whole = self._answers.reach(check), Reach(check.position, check.position)
        named, end = self._answers.named(check, reach)
        rulings = [self._carry_out(named)] if named else []
        if rulings and rulings[-1].ends:
            return rulings
        scored = self._answers.scored(check, scores)
        firings = scored + self.decider.fired_by_check(check.position if self._answers.entities is None else end)
        if firings:
            rulings.append(self._carry_out(firings))
            if rulings[-1].ends:
                return rulings
        edits = rulings[-1].outcome.edits if scored else ()
        if not edits:
            self.holdback.clear(end)
            return rulings
        # The window has been edited for its score: all that was found in it is decided with it.
        firings = self._answers.named(check, whole)[0] + self.decider.fired_by_check(check.position)
        if firings:
            rulings.append(self._carry_out(firings))
            if rulings[-1].ends:
                return rulings
        checks = self.holdback.scored_through(max(check.position, *(edit.end for edit in edits)))
        return [*rulings, Ruling(judge=self, checks=tuple(checks))]

    def _judge_failure(self, check: Check) -> Ruling:
        """Let the fail mode decide on text that classifiers could not read."""
        degraded = (f"{'+'.join(self.asked)}:{check.failed}",)
        closed = self._answers.closed_rule()
        if closed is not None:
            halt = Halt(min(self.holdback.cleared, check.position), closed, "")
            checks = self.holdback.stop(halt.position)
            return Ruling(judge=self, checks=tuple(checks), halt=halt, failed=closed, degraded=degraded)
        self.decider.forget_scores()
        firings = self.decider.fired_by_check(check.position)
        ruling = self._carry_out(firings) if firings else Ruling(judge=self)
        if not ruling.ends:
            self.holdback.clear(self._answers.reach(check).end)
        return msgspec.structs.replace(ruling, degraded=degraded)
