"""What firings come to: the strictest per span, exceptions, styles and scopes of edits, ends and turns of an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from checkstream.core.channel.actions import (
    STRICTNESS,
    Exceptions,
    Firing,
    Outcome,
    behind_sentence,
    refused_call,
    resolve,
    strictest,
)
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.grain import Scope
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.patterns import PatternSet
from checkstream.core.policy.action import (
    Action,
    AdaptTone,
    Allow,
    AnyAction,
    ConstrainTools,
    InjectDisclaimer,
    LogEvent,
    LowerTemp,
    Redact,
    Reject,
    RequireConfirmation,
    RewriteSpan,
    SafeMode,
    Stop,
)
from checkstream.core.policy.program import RuleMeta, Signal
from checkstream.core.terms import Channel, Span, Stage

CONTENT = Channel("content")
EMAIL = Signal(kind="entity", name="EMAIL")
PHRASE = Signal(kind="phrase", name="guaranteed")


class Sheet:
    """A page of one text that has come whole."""

    def __init__(self, text: str, *, bad: Sequence[str] = (), edits: Sequence[Replacement] = ()) -> None:
        self._holdback = Holdback(PatternSet([]), checks=False, settings=HoldSettings(), grain="sentence")
        self._holdback.feed(text)
        self._holdback.end()
        for edit in edits:
            self._holdback.replacements.add(edit, 0)
        self._bad = bad
        self.shown: list[str] = []
        """Texts that were scanned again."""

    def text(self, span: Span) -> str:
        return self._holdback.text(span)

    def edits(self, span: Span) -> Sequence[Replacement]:
        return self._holdback.replacements.within(span)

    def digest(self, text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    def fill(self, template: str, firing: Firing) -> str:
        return template.replace("{rule_id}", firing.rule.id)

    def widen(self, span: Span, scope: Scope) -> Span:
        return self._holdback.widen(span, scope)

    def restored(self, text: str) -> str:
        return text

    def objectionable(self, text: str) -> bool:
        self.shown.append(text)
        return any(bad in text for bad in self._bad)

    def after(self, outcome: Outcome) -> str:
        """Return the text as it is sent after the edits."""
        for edit in outcome.edits:
            self._holdback.replacements.add(edit, 0)
        return self._holdback.render(0, self._holdback.received)

    def find(self, part: str) -> Span:
        start = self.text(Span(0, self._holdback.received)).index(part)
        return Span(start, start + len(part))


def rule(*actions: AnyAction, **fields: Any) -> RuleMeta:
    given: dict[str, Any] = {
        "id": "R-1",
        "name": "r",
        "pack": "p",
        "version": "1.0.0",
        "stages": frozenset({Stage.MIDSTREAM}),
        "channels": frozenset({"content"}),
        "triggers": (0,),
        "thresholds": (None,),
    }
    return RuleMeta(**given | fields, actions=actions)


def fires(
    span: Span,
    *actions: AnyAction,
    signal: Signal | None = PHRASE,
    mode: Literal["enforce", "shadow"] = "enforce",
    **fields: Any,
) -> Firing:
    return Firing(rule=rule(*actions, **fields), signal=signal, span=span, mode=mode)


def midstream(sheet: Sheet, *firings: Firing) -> Outcome:
    return resolve(firings, Stage.MIDSTREAM, CONTENT, sheet)


# --- verdicts


def test_every_action_has_its_place_in_the_order_of_strictness() -> None:
    assert sorted(STRICTNESS) == sorted(kind.name for kind in Action.__subclasses__())
    assert strictest(["redact", "reject", "safe_mode"]) == "reject"
    assert strictest(["log_event", "inject_disclaimer"]) == "inject_disclaimer"
    assert strictest([]) == "allow"


def test_a_verdict_says_what_the_rule_says_of_itself_and_how_it_counts_here() -> None:
    meta = rule(Redact(), LogEvent(), regulation="GDPR", citation="Art. 5", severity="high", mode="enforce")
    firing = Firing(rule=meta, signal=EMAIL, span=Span(0, 4), mode="shadow", confidence=0.5, undecided=True)
    outcome = midstream(Sheet("text"), firing)
    (verdict,) = outcome.verdicts
    assert (verdict.regulation, verdict.citation, verdict.severity) == ("GDPR", "Art. 5", "high")
    assert (verdict.action, verdict.mode, verdict.undecided, verdict.confidence) == ("redact", "shadow", True, 0.5)
    assert (verdict.triggers, verdict.spans, verdict.policy) == (("entity:EMAIL",), (Span(0, 4),), "p")
    assert not outcome.edits, "a shadow firing changes nothing, whatever the rule's own mode"


def test_a_rule_without_triggers_has_a_verdict_without_detectors() -> None:
    outcome = resolve([fires(Span(0, 0), LowerTemp(), signal=None)], Stage.INGRESS, Channel("request"), Sheet(""))
    assert outcome.verdicts[0].triggers == ()
    assert [ask.action for ask in outcome.asks] == [LowerTemp()]


def test_an_exception_sets_aside_milder_and_stricter_rules_of_lower_priority_over_its_span() -> None:
    sheet = Sheet("call 0800 now")
    number = sheet.find("0800")
    allow = fires(number, Allow(), id="A-1", priority=5)
    stop = fires(number, Stop(), id="S-1")
    more = fires(Span(0, 9), Redact(), id="R-2")
    above = fires(number, Redact(), id="R-3", priority=5)
    outcome = midstream(sheet, allow, stop, more, above)
    assert [verdict.excepted_by for verdict in outcome.verdicts] == [None, "A-1", None, None]
    assert outcome.halt is None
    assert sheet.after(outcome) == "[REDACTED] now"
    shadow = fires(number, Allow(), id="A-1", priority=5, mode="shadow")
    assert midstream(Sheet("call 0800 now"), shadow, stop).halt is not None, "a shadow exception makes none"


def test_a_refused_call_is_a_verdict_of_the_rule_that_limits_the_tools() -> None:
    verdict = refused_call(rule(ConstrainTools(allow=()), severity="low"), Channel("tool_name"), Span(0, 3))
    assert (verdict.rule_id, verdict.severity, verdict.mode, verdict.triggers) == ("R-1", "low", "enforce", ())


# --- redactions


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Redact(), "Mail [EMAIL], or call. Bye"),
        (Redact(style="text", text="<{rule_id}>"), "Mail <R-1>, or call. Bye"),
        (Redact(style="mask"), "Mail ******, or call. Bye"),
        (Redact(style="mask", scope="sentence"), "**** ******* ** ***** Bye"),
        (Redact(scope="word"), "Mail [EMAIL] or call. Bye"),
        (Redact(scope="sentence"), "[EMAIL] Bye"),
    ],
)
def test_a_redaction_has_the_style_and_the_scope_that_its_rule_asks_for(action: Redact, text: str) -> None:
    sheet = Sheet("Mail a@b.io, or call. Bye")
    outcome = midstream(sheet, fires(sheet.find("a@b.io"), action, signal=EMAIL))
    assert sheet.after(outcome) == text


@pytest.mark.parametrize("scope", ["span", "word", "sentence"])
def test_equal_texts_have_equal_hashes_whatever_the_scope(scope: Scope) -> None:
    sheet = Sheet("Mail a@b.io, or call. Bye")
    outcome = midstream(sheet, fires(sheet.find("a@b.io"), Redact(style="hash", scope=scope), signal=EMAIL))
    digest = hashlib.sha256(b"a@b.io").hexdigest()[:8]
    assert [edit.text for edit in outcome.edits] == [f"[EMAIL:{digest}]"]


def test_redactions_that_overlap_are_one_in_the_style_of_the_longest() -> None:
    sheet = Sheet("0123456789 x")
    short = fires(Span(0, 4), Redact(style="text", text="S"), id="R-1")
    long = fires(Span(2, 9), Redact(style="mask"), id="R-2")
    apart = fires(Span(9, 10), Redact(style="text", text="A"), id="R-3")
    assert sheet.after(midstream(sheet, short, long, apart)) == "*********A x"
    equal = fires(Span(4, 8), Redact(style="text", text="E"), id="R-2")
    first = fires(Span(2, 6), Redact(style="text", text="F"), id="R-1")
    sheet = Sheet("0123456789 x")
    assert sheet.after(midstream(sheet, first, equal)) == "01F89 x"


def test_a_span_of_which_nothing_is_left_is_not_edited() -> None:
    sheet = Sheet("One. Two.")
    assert not midstream(sheet, fires(Span(2, 2), Redact(scope="sentence"))).edits


# --- rewrites

SOFTEN = RewriteSpan(words=(("guaranteed", "expected"),))


def test_a_rewrite_takes_the_sentence_and_keeps_the_rest_of_it() -> None:
    sheet = Sheet("Hi. Profits are Guaranteed here. Bye.", bad=["uaranteed"])
    outcome = midstream(sheet, fires(sheet.find("Guaranteed"), SOFTEN))
    assert sheet.shown == ["Profits are Expected here."]
    assert sheet.after(outcome) == "Hi. Profits are Expected here. Bye."
    assert outcome.edits[0].rewritten


@pytest.mark.parametrize(
    ("words", "bad"),
    [
        ((("other", "words"),), []),
        ((("guaranteed", "assured"),), ["assured"]),
        ((("profits", "gains"),), ["guaranteed"]),
    ],
)
def test_g04_what_an_editor_leaves_objectionable_or_unchanged_is_redacted(
    words: tuple[tuple[str, str], ...], bad: list[str]
) -> None:
    sheet = Sheet("Hi. Our profits are guaranteed here.", bad=bad)
    outcome = midstream(sheet, fires(sheet.find("guaranteed"), RewriteSpan(words=words)))
    assert sheet.after(outcome) == "Hi. Our profits are [REDACTED] here."


def test_g04_an_editor_never_sees_what_is_redacted() -> None:
    text = "Ask a@b.io, profits are guaranteed. Bye."
    seen = Sheet(text)
    redact = fires(seen.find("a@b.io"), Redact(), signal=EMAIL, id="PII-1")
    outcome = midstream(seen, redact, fires(seen.find("guaranteed"), SOFTEN))
    assert seen.shown == ["Ask [EMAIL], profits are expected."]
    assert seen.after(outcome) == "Ask [EMAIL], profits are expected. Bye."
    refused = Sheet(text, bad=["profits"])
    assert refused.after(midstream(refused, redact, fires(refused.find("guaranteed"), SOFTEN))) == (
        "Ask [EMAIL], profits are [REDACTED]. Bye."
    )


def test_g04_an_editor_sees_the_edits_of_earlier_decisions_carried_out() -> None:
    text = "Ask a@b.io, profits are guaranteed. Bye."
    sheet = Sheet(text, edits=[Replacement(4, 10, "[EMAIL]"), Replacement(11, 11, "+")])
    assert sheet.after(midstream(sheet, fires(sheet.find("guaranteed"), SOFTEN))) == (
        "Ask [EMAIL], profits are expected.+ Bye."
    )
    over = Sheet("One a. Two guaranteed.", edits=[Replacement(4, 10, "X")])
    assert over.after(midstream(over, fires(over.find("guaranteed"), SOFTEN))) == "One X expected."


def test_a_redaction_over_all_that_a_rewrite_is_for_is_the_stricter() -> None:
    sheet = Sheet("Profits are guaranteed here.")
    outcome = midstream(sheet, fires(sheet.find("are guaranteed"), Redact()), fires(sheet.find("guaranteed"), SOFTEN))
    assert sheet.after(outcome) == "Profits [REDACTED] here."
    assert not sheet.shown


def test_rewrites_of_one_sentence_are_made_one_after_the_other() -> None:
    sheet = Sheet("Profits are guaranteed, you must buy, guaranteed.")
    also = RewriteSpan(words=(("you must", "you may"),))
    outcome = midstream(
        sheet,
        fires(sheet.find("guaranteed"), SOFTEN),
        fires(sheet.find("you must"), also, id="R-2"),
        fires(Span(38, 48), SOFTEN),
    )
    assert sheet.after(outcome) == "Profits are expected, you may buy, expected."


def test_g04_a_later_redaction_of_a_part_takes_all_of_what_was_only_rewritten() -> None:
    sheet = Sheet("Profits are guaranteed to Ann.")
    sheet.after(midstream(sheet, fires(sheet.find("guaranteed"), SOFTEN)))
    assert sheet.after(midstream(sheet, fires(sheet.find("Ann"), Redact()))) == "[REDACTED]"


# --- ends and turns


def test_an_answer_ends_before_the_first_stop_and_before_any_edit_that_runs_into_it() -> None:
    sheet = Sheet("One. Two three four. Five.")
    late = fires(sheet.find("Five"), Stop(message="late"), id="S-2", priority=9)
    stop = fires(sheet.find("three"), Stop(message="by {rule_id}", status=451), id="S-1")
    outcome = midstream(sheet, late, stop)
    assert outcome.halt is not None
    assert (outcome.halt.position, outcome.halt.message, outcome.halt.status) == (9, "by S-1", 451)
    word = fires(sheet.find("wo th"), Redact(), id="R-1")
    assert midstream(sheet, word, stop).halt.position == 6  # type: ignore[union-attr]
    sentence = midstream(sheet, fires(sheet.find("four"), Redact(scope="sentence")), stop)
    assert sentence.halt is not None
    assert sentence.halt.position == 5
    assert not sentence.edits, "nothing is edited that is never sent"


def test_g04_an_answer_ends_before_text_that_an_earlier_decision_has_only_rewritten() -> None:
    edits = [Replacement(3, 8, "red"), Replacement(8, 20, "rewritten", rewritten=True)]
    sheet = Sheet("One two three four five", edits=edits)
    outcome = midstream(sheet, fires(Span(10, 12), Stop()))
    assert outcome.halt is not None
    assert outcome.halt.position == 8
    assert midstream(Sheet("One two three", edits=edits[:1]), fires(Span(5, 7), Stop())).halt.position == 5  # type: ignore[union-attr]


def test_a_turn_stands_midstream_only_and_a_stop_over_its_text_is_the_stricter() -> None:
    sheet = Sheet("One two three four.")
    safe = SafeMode(message="no {rule_id}", instruction="as {rule_id}")
    turn = fires(sheet.find("two three"), safe, id="T-1")
    outcome = midstream(sheet, turn)
    assert outcome.pivot is not None
    assert (outcome.pivot.position, outcome.pivot.rule.id) == (4, "T-1")
    assert (outcome.pivot.action.message, outcome.pivot.action.instruction) == ("no T-1", "as T-1")
    ingress = resolve([turn], Stage.INGRESS, Channel("user"), sheet)
    assert ingress.pivot is None
    assert [(ask.rule.id, ask.action, ask.span) for ask in ingress.asks] == [("T-1", safe, Span(4, 13))]
    stopped = midstream(sheet, turn, fires(sheet.find("three"), Stop(), id="S-1"))
    assert stopped.pivot is None
    assert stopped.halt is not None
    assert (stopped.halt.position, stopped.halt.rule.id) == (4, "S-1"), "what is to be turned away is not sent either"
    behind = midstream(sheet, turn, fires(sheet.find("four"), Stop(), id="S-1"))
    assert behind.halt is None, "the text that it would stop at is dropped"
    assert behind.pivot is not None
    before = midstream(sheet, fires(Span(0, 3), Stop(), id="S-1"), turn)
    assert before.pivot is None
    assert before.halt is not None
    assert before.halt.position == 0


def test_refusals_of_a_request_are_all_told_and_say_why_and_the_rest_composes() -> None:
    sheet = Sheet("a prompt")
    span = Span(0, 8)
    firings = [
        fires(span, Reject(message="by {rule_id}"), LogEvent(), id="R-1"),
        fires(span, RequireConfirmation(message="ask {rule_id}"), Redact(), id="R-2"),
        fires(span, Reject(status=403), id="R-3"),
        fires(span, AdaptTone(instruction="be {rule_id}"), InjectDisclaimer(text="{model}"), id="R-4"),
    ]
    outcome = resolve(firings, Stage.INGRESS, Channel("user"), sheet)
    assert [(each.rule.id, each.action.message, each.span) for each in outcome.refusing] == [
        ("R-1", "by R-1", span),
        ("R-2", "ask R-2", span),
        ("R-3", Reject().message, span),
    ]
    assert [edit.text for edit in outcome.edits] == ["[REDACTED]"]
    assert [ask.action for ask in outcome.asks] == [
        AdaptTone(instruction="be {rule_id}"),
        InjectDisclaimer(text="{model}"),
    ], "who carries them out fills them"


def test_text_behind_a_sentence_stands_on_a_line_of_its_own_where_the_sentence_ends_one() -> None:
    assert behind_sentence("At risk.", " More") == " At risk."
    assert behind_sentence("At risk.", "\r\n") == "\nAt risk."
    assert behind_sentence("At risk.", "") == " At risk."


def test_g22_of_very_many_exceptions_the_last_are_kept() -> None:
    def over(number: int, priority: int, at: int) -> Firing:
        made = RuleMeta(
            id=f"R-{number}",
            name="r",
            pack="p",
            version="1",
            stages=frozenset({Stage.MIDSTREAM}),
            channels=frozenset({"content"}),
            priority=priority,
            actions=(Allow(),),
            triggers=(0,),
            thresholds=(None,),
        )
        return Firing(rule=made, signal=PHRASE, span=Span(at, at + 2), mode="enforce")

    exceptions = Exceptions()
    for at in range(25_000):
        exceptions.note([over(1, 5, at)])
    assert exceptions.over(over(2, 0, 0), 0) is None
    kept = exceptions.over(over(2, 0, 24_999), 0)
    assert kept is not None
    assert kept.span == Span(24_999, 25_001)
