"""Carries out on one channel what the rules that fired ask for: edits, texts between sentences, its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from checkstream.core.channel.actions import Exceptions, Firing, Halt, Outcome, Pivot, resolve
from checkstream.core.channel.brief import Place
from checkstream.core.channel.checks import EVERYTHING, Check
from checkstream.core.channel.fences import Fences
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.insertions import Insertions
from checkstream.core.channel.json_leaves import JsonLeaves
from checkstream.core.channel.page import Page
from checkstream.core.channel.replacements import Replacement
from checkstream.core.policy.action import InjectDisclaimer
from checkstream.core.policy.program import RuleMeta
from checkstream.core.terms import Verdict

NOT_ADDED = "text_not_added:structured_answer"
"""Degradation: a rule's text would have broken the form that the answer is to have."""


class Carried(NamedTuple):
    """What has been done at one place of the text."""

    outcome: Outcome
    checks: tuple[Check, ...]
    """Checks that are due because of it."""
    halt: Halt | None
    pivot: Pivot | None


class Execution:
    """Does what rules ask for, as far as the text allows."""

    __slots__ = ("_exceptions", "_holdback", "_insertions", "_json", "_page", "_place", "_shift", "_takes_texts")

    def __init__(
        self,
        place: Place,
        page: Page,
        holdback: Holdback,
        *,
        insertions: Insertions | None,
        json: JsonLeaves | Fences | None,
        takes_texts: bool,
        exceptions: Exceptions,
        shift: int,
    ) -> None:
        """Start before the first rule.

        Args:
            place: Which text it is, under which rules.
            page: The text as edits see it.
            holdback: Holds the text.
            insertions: Puts texts between sentences, None: none are.
            json: Where leaves are in a text that must stay JSON, or in the parts of one that are.
            takes_texts: Texts may be put in; else the form of the answer would break.
            exceptions: What `allow` rules have excepted, for all judges of the text.
            shift: How far the text starts behind that of the judge that leads.
        """
        self._place = place
        self._page = page
        self._holdback = holdback
        self._insertions = insertions
        self._json = json
        self._takes_texts = takes_texts
        self._exceptions = exceptions
        self._shift = shift

    def carry_out(self, firings: list[Firing]) -> Carried:
        """Do what rules that fired at one place ask for."""
        place = self._place
        outcome = resolve(firings, place.stage, place.channel, self._page, self._exceptions, shift=self._shift)
        if place.base:
            outcome = msgspec.structs.replace(outcome, verdicts=tuple(self._in_answer(v) for v in outcome.verdicts))
        halt, pivot = outcome.halt, outcome.pivot
        end = min((place.position for place in (halt, pivot) if place is not None), default=EVERYTHING)
        for edit in outcome.edits:
            if edit.start >= end:
                break
            if self._replace(edit):
                rule = next(v.rule_id for v in outcome.verdicts if v.spans and v.spans[0].start - place.base < edit.end)
                halt, end = Halt(edit.start, self._rule(rule), ""), edit.start
        if pivot is not None and halt is not None and halt.position <= pivot.position:
            pivot = None
        for ask in outcome.asks:
            if isinstance(ask.action, InjectDisclaimer) and ask.action.position == "after_sentence":
                if not self._takes_texts:
                    self._place.brief.degrade(NOT_ADDED)
                elif self._insertions is not None:
                    self._insertions.add(ask.span.end, self._page.fill(ask.action.text, ask.firing))
        checks = self._holdback.stop(end) if end < EVERYTHING else []
        return Carried(outcome, tuple(checks), halt, pivot)

    def restore(self, edits: Iterable[Replacement]) -> None:
        """Put the caller's own values back; where that can't be, what stands for them stays."""
        for edit in edits:
            self._put(edit)

    def _in_answer(self, verdict: Verdict) -> Verdict:
        """Return a verdict whose spans count from the start of the answer."""
        return msgspec.structs.replace(verdict, spans=tuple(span.moved(self._place.base) for span in verdict.spans))

    def _rule(self, rule_id: str) -> RuleMeta:
        return next(rule for rule in self._place.program.rules if rule.id == rule_id)

    def _replace(self, edit: Replacement) -> bool:
        """Put the edit in place; return True where it can't be made without breaking what the text is."""
        return self._place.channel.kind == "tool_name" or not self._put(edit)

    def _put(self, edit: Replacement) -> bool:
        """Put the edit in place; return False where the text has no place for it."""
        made = [edit] if self._json is None else self._json.written(edit)
        for each in made:
            self._holdback.replacements.add(each, self._holdback.sent)
        return bool(made)
