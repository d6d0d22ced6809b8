"""Which rules fire over one text, now or later.

What has come is decided where it stands, unless its rule waits: for the first check that covers it when conditions
read scores, for the end of the text when the rule asks what does not stand in it. Text over what waits is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from checkstream.core.channel.actions import Firing
from checkstream.core.channel.brief import Place
from checkstream.core.channel.checks import EVERYTHING
from checkstream.core.channel.reading import Reading, Risks
from checkstream.core.match.language import UNDETERMINED
from checkstream.core.policy.program import Entry, Waits
from checkstream.core.policy.vm import Machine, counts_undecided
from checkstream.core.terms import Facts, Recited, Span

_MAX_POSTPONED = 1000
"""Findings of one rule that a follower keeps for later; more of the same would decide nothing new."""


class _Postponed(msgspec.Struct, frozen=True):
    """What was found, and is decided later."""

    entry: Entry
    span: Span
    confidence: float
    tokens: int
    """What was known of the stream at its end: places that lie far back are forgotten."""
    language: str
    leading: tuple[float, float]
    """The risk of the text that leads, and its change."""
    recited: Recited | None


class Decider:
    """Knows the facts of one text, and asks the program which rules they fire."""

    __slots__ = (
        "_degrade",
        "_facts",
        "_fail_mode",
        "_kept",
        "_leader",
        "_leading",
        "_leads",
        "_left",
        "_machine",
        "_postponed",
        "_program",
        "_reading",
        "_scope",
        "_shift",
        "_to_end_from",
        "risks",
    )

    def __init__(self, place: Place, *, before: str = "", reads_language: bool = False) -> None:
        """Start with nothing found.

        Args:
            place: Which text it is, under which rules. Those that hold no text are decided behind the release.
            before: Text before this one that is only known.
            reads_language: `language` is asked for, whether or not a rule reads it.
        """
        brief, scope = place.brief, place.scope
        self._program = brief.program
        self._scope = scope
        self._fail_mode = brief.fail_mode
        self._degrade = brief.degrade
        self._leads = place.leads
        self._facts = Facts(scope.stage, scope.channel, brief.exchange)
        self._machine = Machine(brief.program, self._facts)
        self._reading = Reading(before) if scope.reads_stream or reads_language else None
        self._left = brief.settings.left
        self.risks = Risks(self._left)
        self._leader: Decider | None = None
        self._leading = (0.0, 0.0)
        """The risk of the text that leads, and its change, at the place that is being read."""
        self._shift = 0
        self._postponed: dict[Waits, list[_Postponed]] = {Waits.CHECK: [], Waits.END: []}
        self._kept: Counter[int] = Counter()
        """How many of them each rule has."""
        self._to_end_from = EVERYTHING
        """Text from here on waits for the end."""

    # --- what is known

    @property
    def risk(self) -> float:
        """The risk of the text, 0..1."""
        return self._facts.stream.risk

    def language(self, position: int) -> str:
        """Return the language of the text before `position`; `und` when it can't be told, or nobody reads it."""
        return UNDETERMINED if self._reading is None else self._reading.language(position)

    def follow(self, leader: Decider, shift: int) -> None:
        """Know the scores of the decider that leads, whose text starts `shift` before this one."""
        if self._scope.reads_stream:
            self._leader, self._shift = leader, shift

    def take_over(self, last: Decider) -> None:
        """Know what was known of the text that this one goes on."""
        facts, known = self._facts, last._facts
        facts.counts.update(known.counts)
        facts.scores.update(known.scores)
        facts.peaks.update(known.peaks)
        self.risks = Risks(self._left, last.risks.latest)
        facts.stream.risk, facts.stream.trend = self.risks.latest

    @property
    def reads(self) -> bool:
        """Conditions ask something about the text as a stream."""
        return self._reading is not None

    def feed(self, text: str) -> None:
        """Read along."""
        if self._reading is not None:
            self._reading.feed(text)

    def count(self, signal: int, hits: int = 1) -> None:
        """Note that something has been found, so often."""
        self._facts.counts[signal] = self._facts.counts.get(signal, 0) + hits

    def score(self, position: int, scores: Mapping[str, float]) -> list[tuple[int, float]]:
        """Note the scores of the check at `position`; return those that rules read, in a fixed order."""
        facts, labels = self._facts, self._scope.risk_labels
        latest, peaks, risk = facts.scores, facts.peaks, 0.0
        known: list[tuple[int, float]] = []
        for name, signal in self._scope.score_signals.items():
            score = scores.get(name)
            if score is None:
                continue
            known.append((signal, score))
            latest[signal] = score
            if score >= peaks.get(signal, 0.0):
                peaks[signal] = score
            if score > risk and name in labels:
                risk = score
        self.risks.take(position, risk)
        facts.stream.risk, facts.stream.trend = self.risks.latest
        return known

    def peaks(self, labels: Mapping[str, int]) -> dict[str, float]:
        """Return the highest scores so far of some labels; of one that nobody could give there is none.

        Args:
            labels: Name -> signal.
        """
        known = self._facts.peaks
        return {name: known[signal] for name, signal in labels.items() if signal in known}

    def forget_scores(self) -> None:
        """Know no scores: what an earlier check said is not about the text that comes."""
        self._facts.scores.clear()

    def _read(self, position: int) -> None:
        """Bring what conditions may know of the stream up to `position`."""
        stream = self._facts.stream
        if self._reading is not None:
            stream.tokens = self._reading.tokens(position)
            if self._scope.reads_language:
                stream.language = self._reading.language(position)
        if self._leader is not None:
            self._leading = self._leader.risks.at(position + self._shift)
            stream.risk, stream.trend = max(self._leading, self.risks.latest)

    def _read_again(self, found: _Postponed) -> None:
        """Bring what conditions may know of the stream back to where something was found."""
        stream = self._facts.stream
        stream.tokens, stream.language = found.tokens, found.language
        if self._leader is not None:
            stream.risk, stream.trend = max(found.leading, self.risks.latest)

    def forget(self, position: int, leading: int) -> None:
        """Forget what nobody will ask for.

        Args:
            position: Nothing will be found any more that ends before it.
            leading: Nor, in this text and those that follow it, before it; counted in this text.
        """
        if self._reading is not None:
            self._reading.forget(position)
        self.risks.forget(leading)

    # --- what fires

    def fired(
        self,
        signal: int,
        span: Span,
        confidence: float,
        *,
        covered: bool,
        exact: bool = True,
        recited: Recited | None = None,
    ) -> dict[int, Firing]:
        """Return, by number, the rules that a signal fires and that are decided here; those that wait are kept.

        Args:
            signal: What has come.
            span: Where.
            confidence: The score, 1.0 for what was found.
            covered: A check has just covered the span, so that the scores speak of it.
            exact: The span is no wider than what has come; else it makes no exception.
            recited: What is known of a recital.
        """
        firings: dict[int, Firing] = {}
        self._read(span.end)
        for entry in self._scope.rules.get(signal, ()):
            if entry.rule in firings or not self._scope.decides(entry.rule, signal, leads=self._leads):
                continue
            if not exact and self._program.rules[entry.rule].excepts:
                continue
            waits = self._program.rules[entry.rule].waits
            if waits is Waits.NO or (waits is Waits.CHECK and covered):
                firing = self._decide(entry, span, confidence, recited)
                if firing is not None:
                    firings[entry.rule] = firing
            else:
                self._postpone(waits, entry, span, confidence, recited)
        return firings

    def fired_by_check(self, position: int) -> list[Firing]:
        """Return the rules that fire over what has waited for the check at `position`."""
        return self._take(Waits.CHECK, position)

    def fired_at_end(self, end: int, *, cut: bool) -> list[Firing]:
        """Return the rules that fire now that the whole text is known; what lies behind a cut is forgotten."""
        if cut:
            for waits, waiting in self._postponed.items():
                self._postponed[waits] = [found for found in waiting if found.span.end <= end]
        firings = self._take(Waits.CHECK, end) + self._take(Waits.END, end)
        if not self._leads:
            self._read(end)
            alone = (self._decide(entry, Span(end, end)) for entry in self._scope.bare)
            firings += (firing for firing in alone if firing is not None)
        self._postponed = {Waits.CHECK: [], Waits.END: []}
        self._to_end_from = EVERYTHING
        return firings

    def _decide(
        self, entry: Entry, span: Span, confidence: float = 1.0, recited: Recited | None = None
    ) -> Firing | None:
        """Return the firing of a rule, if it fires; the fail mode decides where the rule can't be decided."""
        rule = self._program.rules[entry.rule]
        fires = self._machine.decide(entry)
        if fires is None:
            self._degrade(f"rule_undecided:{rule.id}")
            if not counts_undecided(rule, self._fail_mode):
                return None
        elif not fires:
            return None
        return Firing(
            rule=rule,
            signal=self._program.signals[entry.signal] if entry.signal >= 0 else None,
            span=span,
            confidence=confidence,
            mode="enforce" if rule.mode == "enforce" and entry.rule not in self._facts.exchange.shadowed else "shadow",
            undecided=fires is None,
            recited=recited,
        )

    # --- what waits

    @property
    def fence(self) -> int:
        """Start of the text over what waits."""
        waiting = self._postponed[Waits.CHECK]
        return min(self._to_end_from, *(found.span.start for found in waiting)) if waiting else self._to_end_from

    def _postpone(self, waits: Waits, entry: Entry, span: Span, confidence: float, recited: Recited | None) -> None:
        """Keep what has just been found and read up to."""
        rule, stream = entry.rule, self._facts.stream
        if not self._leads and self._kept[rule] >= _MAX_POSTPONED:
            self._degrade("findings_not_decided")
            return
        self._kept[rule] += 1
        found = _Postponed(entry, span, confidence, stream.tokens, stream.language, self._leading, recited)
        self._postponed[waits].append(found)
        if waits is Waits.END:
            self._to_end_from = min(self._to_end_from, span.start)

    def _take(self, waits: Waits, position: int) -> list[Firing]:
        """Decide what waited and ends at or before `position`."""
        due = [found for found in self._postponed[waits] if found.span.end <= position]
        if not due:
            return []
        self._postponed[waits] = [found for found in self._postponed[waits] if found.span.end > position]
        self._kept.subtract(found.entry.rule for found in due)
        firings: dict[tuple[str, Span, int], Firing] = {}
        for found in due:
            self._read_again(found)
            firing = self._decide(found.entry, found.span, found.confidence, found.recited)
            if firing is not None:
                firings.setdefault((firing.rule.id, found.span, found.entry.signal), firing)
        return list(firings.values())
