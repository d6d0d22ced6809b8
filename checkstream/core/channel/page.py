"""One channel as edits see it: its text, and how what rules write into it is made.

What comes from outside is scanned before it is written: a value that a rule condemns on this channel is not put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from checkstream.core.channel.actions import Firing
from checkstream.core.channel.brief import Brief
from checkstream.core.channel.fences import Fences
from checkstream.core.channel.grain import Scope
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.json_leaves import JsonLeaves, outside_json_string
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.placeholders import Label
from checkstream.core.match.scan import scanning
from checkstream.core.policy import templates
from checkstream.core.policy.program import RuleMeta
from checkstream.core.policy.program import Scope as RuleScope
from checkstream.core.policy.spares import covers, spared_with
from checkstream.core.policy.vm import Machine
from checkstream.core.pseudonyms.runs import parts_of
from checkstream.core.terms import Facts, Finding, Span

_CONDEMNED = "[REDACTED]"


class Page:
    """What the edits of one channel may know of it."""

    __slots__ = ("_brief", "_condemned", "_fences", "_holdback", "_json", "_scope", "digest")

    def __init__(
        self,
        holdback: Holdback | None,
        brief: Brief,
        scope: RuleScope,
        *,
        json: JsonLeaves | None = None,
        fences: Fences | None = None,
    ) -> None:
        """Take what the channel is made of.

        Args:
            holdback: Holds the text; None: a page for texts of which none has come yet.
            brief: What the judges of the exchange share.
            scope: What the channel needs of the policies.
            json: Where its leaves are, if the text may be JSON.
            fences: Where JSON stands in it, if it may be Markdown.
        """
        self._holdback = holdback
        self._brief = brief
        self._scope = scope
        self._json = json
        self._fences = fences
        self._condemned: dict[str, bool] = {}
        """Values of texts that have been scanned: a policy has few, and a text may be written at every finding."""
        self.digest = brief.digest

    def text(self, span: Span) -> str:
        """Return the original text of a span that is still kept, as it says: in a JSON string, without its escapes."""
        text = self._holdback.text(span) if self._holdback is not None else ""
        return outside_json_string(text) if self.is_json(span.start) else text

    def is_json(self, position: int) -> bool:
        """Tell whether the text has to keep the form of JSON at a place, and begins so."""
        if self._fences is not None:
            return self._fences.is_json(position)
        return self._json is not None and bool(self._json.json)

    def spares(self, finding: Finding, text: str | None = None) -> bool:
        """Tell whether what was found counts for nothing; `text` is what it says, None: what stands here."""
        return bool(self._let_pass(finding, text))

    def _let_pass(self, finding: Finding, text: str | None = None) -> str:
        """Return why what was found counts for nothing; empty: it counts."""
        signal = self._brief.program.signals[finding.signal]
        if signal.spares is None or not finding.exact:
            return ""
        said = self.text(finding.span) if text is None else text
        return signal.lets_pass(said, self._brief.exchange.told)

    def unspared(self, findings: Iterable[Finding]) -> Sequence[Finding]:
        """Return what of some findings counts: not what is spared, nor what a trigger that spares finds within that."""
        found, signals = tuple(findings), self._brief.program.signals
        if all(signals[finding.signal].spares is None for finding in found):
            return found
        why = [self._let_pass(finding) for finding in found]
        known = [finding.span for finding, reason in zip(found, why, strict=True) if covers(reason)]
        return [
            finding
            for finding, reason in zip(found, why, strict=True)
            if not reason and (signals[finding.signal].spares is None or spared_with(finding.span, known) is None)
        ]

    def widen(self, span: Span, scope: Scope) -> Span:
        """Return the span widened to whole words or sentences."""
        return (self._holdback.widen(span, scope) if self._holdback is not None else None) or span

    def edits(self, span: Span) -> Sequence[Replacement]:
        """Return the edits that have been made in a span or over its bounds, in order."""
        made = self._holdback.replacements.within(span) if self._holdback is not None else []
        if not any(self.is_json(edit.start) for edit in made):
            return made
        return [
            msgspec.structs.replace(
                edit,
                text=outside_json_string(edit.text),
                hidden=None if edit.hidden is None else outside_json_string(edit.hidden),
            )
            if self.is_json(edit.start)
            else edit
            for edit in made
        ]

    def restored(self, text: str) -> str:
        """Return a text with the caller's own values in place of the placeholders that it has."""
        placeholders, register = self._brief.program.placeholders, self._brief.register
        if self._scope.restored is None or placeholders is None or not len(register):
            return text
        search = placeholders.search()
        parts, at = list[str](), 0
        for span in (*search.feed(text), *search.end()):
            label = placeholders.read(text[span.start : span.end])
            found: Sequence[tuple[int, int, Label | str]] = ()
            if label is not None and register.is_given(label):
                found = ((0, span.end - span.start, label),)
            elif isinstance(label, str):
                found = parts_of(text[span.start : span.end], label, register)
            for start, end, key in found:
                value = register.value(key)
                if value is not None and span.start + start >= at:
                    parts += (text[at : span.start + start], value)
                    at = span.start + end
        return "".join([*parts, text[at:]])

    def fill(self, template: str, firing: Firing) -> str:
        """Return a rule's text with its variables put in."""
        return self.written(template, firing.rule, firing.signal.title if firing.signal is not None else "")

    def written(self, template: str, rule: RuleMeta, detector: str = "", sources: str | None = None) -> str:
        """Return a rule's text with its variables put in; that a value is missing is noted."""
        if "{" not in template and "}" not in template:
            return template

        def value(path: tuple[str, ...]) -> object:
            found = self._value(path, rule, detector, sources)
            clean = templates.clean(found, templates.most_chars(path))  # as it is written: a cut can make a match
            return _CONDEMNED if clean is not None and self._condemns(clean) else found

        text, missing = templates.render(_parsed(template), value)
        if missing:
            self._brief.degrade(f"text_variable_missing:{rule.id}")
        return text

    def _value(self, path: tuple[str, ...], rule: RuleMeta, detector: str, sources: str | None) -> object:
        match path:
            case ("context", *fields):
                found: object = self._brief.exchange.context
                for field in fields:
                    found = found.get(field) if isinstance(found, dict) else None
                return found
            case ("rule_id",):
                return rule.id
            case ("policy",):
                return f"{rule.pack}@{rule.version}"
            case ("detector",):
                return detector
            case ("sources",):
                return sources
            case (name,):
                return self._brief.exchange.request.get(name)
            case _:
                return None

    def _condemns(self, value: str) -> bool:
        if value not in self._condemned:
            self._condemned[value] = self.objectionable(value)
        return self._condemned[value]

    def objectionable(self, text: str) -> bool:
        """Tell whether a rule that holds text on this channel would fire on `text`, were it part of it."""
        scope = self._scope
        if not len(scope.hold):
            return False
        scan = scanning(scope.hold)
        findings = [
            finding
            for finding in (*scan.feed(text), *scan.end())
            if not self.spares(finding, text[finding.span.start : finding.span.end])
        ]
        facts = Facts(scope.stage, scope.channel, self._brief.exchange)
        for finding in findings:
            facts.counts[finding.signal] = facts.counts.get(finding.signal, 0) + 1
        machine = Machine(self._brief.program, facts)
        shadowed = self._brief.exchange.shadowed
        return any(
            self._brief.program.rules[entry.rule].condemns
            and entry.rule not in shadowed
            and machine.decide(entry) is not False
            for finding in findings
            for entry in scope.rules.get(finding.signal, ())
        )


@lru_cache(maxsize=4096)
def _parsed(template: str) -> templates.Template:
    return templates.parse(template, (*templates.NAMES, templates.SOURCES))
