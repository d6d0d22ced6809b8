"""What classifiers say of one channel, under the rules that ask them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from checkstream.core.channel.actions import Firing
from checkstream.core.channel.brief import Place
from checkstream.core.channel.checks import Check, Reach
from checkstream.core.channel.decider import Decider
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.noted import Noted
from checkstream.core.channel.page import Page
from checkstream.core.conversation import FLOOR
from checkstream.core.match.model_entities import Found, ModelEntities
from checkstream.core.policy.program import RuleMeta, Waits
from checkstream.core.policy.spares import spared_with
from checkstream.core.terms import Finding, Span

_ANY = math.inf
"""No score is as high."""


class Answers:
    """Turns the answers to checks into firings of rules."""

    __slots__ = (
        "_asked",
        "_decider",
        "_fired",
        "_holdback",
        "_labels",
        "_noted",
        "_page",
        "_place",
        "_spared",
        "entities",
    )

    def __init__(
        self, place: Place, decider: Decider, holdback: Holdback, page: Page, *, asked: tuple[str, ...], noted: Noted
    ) -> None:
        """Start before the first check.

        Args:
            place: Which text it is, under which rules.
            decider: Says which rules a score fires.
            holdback: Holds the text.
            page: The text as edits see it.
            asked: Names of the classifiers that each check asks.
            noted: Takes findings.
        """
        self._asked = asked
        self._place = place
        self._decider = decider
        self._holdback = holdback
        self._page = page
        self._noted = noted
        self._labels: tuple[str, ...] | None = None
        """Those of the asked that rules read; None: nobody has answered."""
        self._fired: set[int] = set()
        """Rules that the scores of the last check have fired."""
        self._spared: list[Span] = []
        """What validators have found and counts for nothing, as far as models may still say something of it."""
        self.entities = ModelEntities(holdback.text, place.prelude) if self._asks_for_entities() else None

    def _asks_for_entities(self) -> bool:
        """Tell whether a classifier that finds entities is asked."""
        numbers = (number for known in self._place.scope.entity_signals.values() for number in known)
        return any(self._place.program.signals[number].classifier in self._asked for number in numbers)

    def note(self, found: Iterable[Finding], counting: Iterable[Finding]) -> None:
        """Note what validators have found, of which models may say something, too, and what of it counts."""
        if self.entities is None:
            return
        counts = frozenset(counting)
        for finding in found:
            signal = self._place.program.signals[finding.signal]
            if finding not in counts:
                self._spared.append(finding.span)
            elif signal.kind == "entity":
                self.entities.note(finding.span, signal.name)

    def cut_around(self, places: Iterable[Span]) -> None:
        """Leave nothing of some places to models: what stands there is known."""
        if self.entities is not None:
            for place in places:
                self.entities.note(place, "")

    def reach(self, check: Check) -> Reach:
        """Return how far a check lets go of text, if nothing fires."""
        risk, language = self._decider.risk, self._decider.language(check.position)
        return self._holdback.reach(check, risk, language, entities=self.entities is not None)

    def scored(self, check: Check, scores: Iterable[tuple[int, float]]) -> list[Firing]:
        """Return the firings of rules that scores of a check reach."""
        start = max(check.window.start, self._holdback.cleared if self._place.leads else 0)
        span = Span(min(start, check.position), check.position)
        scored: list[Firing] = []
        fired, least = set[int](), self._place.scope.least
        for signal, score in scores:
            if score < least.get(signal, _ANY):  # nearly always
                continue
            for number, firing in self._decider.fired(signal, span, score, covered=True).items():
                fired.add(number)
                # A rule that only records fires where its score rises, not on every window over the same text.
                if firing.rule.holds or number not in self._fired:
                    scored.append(firing)
        self._fired = fired
        return scored

    def named(self, check: Check, reach: Reach) -> tuple[list[Firing], int]:
        """Return the firings of rules for entities that a check decides, and how far it lets go of text."""
        if self.entities is None:
            return [], reach.end
        signals, of, by = self._place.program.signals, self._place.scope.entity_signals, check.window.start
        found = [
            Found(each.entity, Span(each.start, each.end).moved(by), each.score)
            for each in check.entities
            if any(each.score >= (signals[n].threshold or 0) for n in of.get(each.entity, ()))
        ]
        self._spared = [span for span in self._spared if span.end > self._holdback.cleared]
        decided, end = self.entities.decide(found, self._holdback.cleared, reach.end, reach.begun)
        firings: list[Firing] = []
        for item in decided:
            for number in of[item.name]:
                finding = Finding(number, item.span)
                if item.score >= (signals[number].threshold or 0) and not self._spares(finding):
                    firings += self._noted.take(finding, item.score, covered=True)
        return firings, end

    def _spares(self, finding: Finding) -> bool:
        """Tell whether what a model has found counts for nothing, by itself or within what a validator has found."""
        if self._place.program.signals[finding.signal].spares is None:
            return False
        return self._page.spares(finding) or spared_with(finding.span, self._spared) is not None

    def usable(self, scores: dict[str, float], check: Check) -> bool:
        """Tell whether every label that a rule reads has a score from 0 to 1, and entities stand within the window."""
        size = check.window.end - check.window.start
        if self._labels is None:
            known, signals = self._place.scope.score_signals, self._place.program.signals
            self._labels = tuple(name for name in known if signals[known[name]].classifier in self._asked)
        for name in self._labels:
            if not 0.0 <= scores.get(name, -1.0) <= 1.0:
                return False
        return all(each.end <= size and 0.0 <= each.score <= 1.0 for each in check.entities)

    def closed_rule(self) -> RuleMeta | None:
        """Return the first rule that a failed classifier might have fired and whose fail mode is closed.

        A rule whose conditions alone read it is undecided where it was triggered, and nowhere else.
        """
        if not self._place.leads:
            return None
        brief = self._place.brief
        for index in self._place.scope.active:
            rule = self._place.program.rules[index]
            signals = (self._place.program.signals[signal] for signal in rule.triggers)
            asks = any(signal.classifier in self._asked for signal in signals)
            out = index in brief.exchange.off or index in brief.exchange.shadowed
            if rule.holds and asks and not out and (rule.fail_mode or brief.fail_mode) == "closed":
                return rule
        return None

    @property
    def apart(self) -> bool:
        """What is said depends on what is read together: there are entities, or conditions that read scores."""
        scope, rules = self._place.scope, self._place.program.rules
        waits = scope.reads_stream or any(rules[index].waits is Waits.CHECK for index in scope.active)
        return self.entities is not None or waits

    def unmoved(self, scores: Mapping[str, float]) -> bool:
        """Tell whether scores are there and below all that rules here ask for."""
        if any(scores.get(name, -1.0) > FLOOR for name in self._place.scope.accumulates):
            return False
        return all(
            entry.floor is not None and 0.0 <= scores.get(name, -1.0) < entry.floor
            for name, signal in self._place.scope.score_signals.items()
            if self._place.program.signals[signal].classifier in self._asked
            for entry in self._place.scope.rules.get(signal, ())
        )
