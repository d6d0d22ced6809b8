from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Score
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    Draining,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.transcript import Header, Line, Transcript, digest_of
from checkstream.errors import WireError
from checkstream.trial.exchange import Exchange
from checkstream.trial.installed import InstalledModels
from checkstream.trial.replay import Comparing, Comparison, replay
from tests.chance import examples
from tests.recordings import CHAT, delta, masked, recording, request, say, streamed

MAIL = "joe@example.com"
LABELS = (ClassifierLabel("lexicon.toxicity", 0.5), ClassifierLabel("toy.alpha"))


def program(*rules: str) -> Program:
    text = "pack: {name: t, version: 1.0.0}\npolicies:\n" + "".join(f"  - {rule}\n" for rule in rules)
    return compile_sources([("t", text.encode())], LABELS)


MAILS = "{name: mail, id: MAIL, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}"
SHADE = "{name: shade, id: SHADE, mode: shadow, stage: [midstream], phrases: [today], actions: [{type: redact}]}"
TOXIC = (
    "{name: tox, id: TOX, stage: [midstream], channels: [content],"
    " classifiers: [{name: toy.alpha, threshold: 0.5}], actions: [{type: stop, message: Enough.}]}"
)
LEXICON = TOXIC.replace("toy.alpha", "lexicon.toxicity").replace("TOX", "LEX")
NOTHING = "{name: none, id: NONE, stage: [midstream], phrases: [zzzz], actions: [{type: redact}]}"
WRITE = (request("Hi"), *streamed(say(["Write to joe@", "example.com today."])))


def windows(transcript: Transcript) -> list[Score]:
    """Return what is asked of classifiers in a run of calm scores."""
    asked: list[Score] = []

    def answer(score: Score) -> Scored:
        asked.append(score)
        return Scored(score.ticket, {"toy.alpha": 0.0})

    exchange = Exchange(CHAT, Plan(program=program(TOXIC)), answer)
    for line in transcript.lines:
        exchange.send(line.event, line.at)
    return asked


def answered(transcript: Transcript, answer: Callable[[Score], AnyEvent], *, named: bool = True) -> Transcript:
    """Return a transcript with answers to all that is asked, under numbers of their own when texts are named."""
    lines = [
        Line(at=place / 1000, event=answer(score), asked=digest_of(score) if named else None)
        for place, score in enumerate(windows(transcript))
    ]
    return Transcript(header=transcript.header, lines=(*transcript.lines[:-1], *lines, transcript.lines[-1]))


def test_a_recording_runs_under_another_policy() -> None:
    done = replay(recording(WRITE), program(MAILS, SHADE), InstalledModels())
    assert done.fired == {"MAIL": 1, "SHADE (shadow)": 1}
    assert "caller: content/0/0" in done.shown
    assert "  Write to [EMAIL] today." in done.shown
    assert "  Hi" in done.shown
    assert (done.status, done.closed) == (200, True)


def test_a_check_gets_what_was_recorded_of_the_same_text_whatever_its_number() -> None:
    ran = recording((request(), *streamed(say(["Fine ", "words."]))))
    ran = answered(ran, lambda score: Scored(score.ticket + 90, {"toy.alpha": 0.9 if "." in score.text else 0.1}))
    models = InstalledModels()
    done = replay(ran, program(TOXIC), models)
    assert done.fired == {"TOX": 1}
    assert (models.computed, models.unanswered) == (0, 0)


def test_a_failed_check_fails_again() -> None:
    ran = recording((request(), *streamed(say(["Fine words."]))))
    models = InstalledModels()
    done = replay(answered(ran, lambda score: ScoringFailed(score.ticket, "deadline")), program(TOXIC), models)
    assert (models.computed, models.unanswered) == (0, 0)
    assert done.record is not None
    assert done.record.outcome == "detector_failed"
    assert done.record.degradations


def test_without_what_was_asked_a_check_gets_what_was_recorded_under_its_number() -> None:
    ran = recording((request(), *streamed(say(["Fine words."]))))
    ran = answered(ran, lambda score: Scored(score.ticket, {"toy.alpha": 0.9}), named=False)
    models = InstalledModels()
    assert replay(ran, program(TOXIC), models).fired == {"TOX": 1}
    assert (models.computed, models.unanswered) == (0, 0)


def test_a_check_that_was_not_recorded_is_computed_and_never_silently_zero() -> None:
    insult = recording((request(), *streamed(say(["You are a worthless idiot, kill yourself."]))))
    models = InstalledModels()
    assert replay(insult, program(LEXICON), models).fired == {"LEX": 1}
    assert models.computed > 0


def test_a_classifier_that_is_not_shipped_meets_the_fail_mode() -> None:
    ran = recording((request(), *streamed(say(["Fine words."]))))
    models = InstalledModels()
    closed = replay(ran, program(TOXIC), models)
    assert models.unanswered > 0
    assert closed.record is not None
    assert closed.record.outcome == "detector_failed"
    opened = Transcript(header=Header(surface="openai.chat", fail_mode="open"), lines=ran.lines)
    assert "  Fine words." in replay(opened, program(TOXIC), InstalledModels()).shown


def test_a_masked_recording_fires_what_the_original_fired() -> None:
    pay = (request(f"I am {MAIL}"), *streamed(say(["Pay 4242 4242", " 4242 4242 to ", MAIL])))
    cards = program(
        MAILS, "{name: card, id: CARD, stage: [midstream], entities: [CREDIT_CARD], actions: [{type: redact}]}"
    )
    assert replay(recording(pay), cards, InstalledModels()).fired == {"MAIL": 1, "CARD": 1}
    assert replay(masked(*pay), cards, InstalledModels()).fired == {"MAIL": 1, "CARD": 1}


def test_a_surface_that_is_not_known_is_refused() -> None:
    with pytest.raises(WireError, match="no surface `nope`"):
        replay(Transcript(header=Header(surface="nope"), lines=()), program(MAILS), InstalledModels())


def compared(after: Program, before: Program | None, *transcripts: Transcript) -> Comparison:
    comparing = Comparing(after, before, InstalledModels())
    for place, transcript in enumerate(transcripts):
        comparing.take(f"run-{place}", transcript)
    return comparing.outcome


def test_two_policies_are_compared_by_rule_and_by_text() -> None:
    fine = recording((request(), *streamed(say(["Nothing here."]))))
    outcome = compared(program(MAILS), program(SHADE), recording(WRITE), fine)
    assert outcome.transcripts == 2
    assert {rule: (counts.before, counts.after) for rule, counts in outcome.rules.items()} == {
        "MAIL": (0, 1),
        "SHADE (shadow)": (1, 0),
    }
    (change,) = outcome.changed
    assert change.file == "run-0"
    assert change.why == ("action allow -> redact", "MAIL 0 -> 1", "SHADE (shadow) 1 -> 0")
    assert "-  Write to joe@example.com today." in change.diff
    assert "+  Write to [EMAIL] today." in change.diff


def test_the_same_policy_changes_nothing() -> None:
    assert compared(program(MAILS), program(MAILS), recording(WRITE)).changed == ()


def test_without_another_policy_the_comparison_is_with_what_was_recorded() -> None:
    same = recording(WRITE, action="redact", outcome="complete", fired={"MAIL": 1})
    other = recording(WRITE, action="allow", outcome="complete")
    unknown = recording(WRITE)
    outcome = compared(program(MAILS, SHADE), None, same, other, unknown)
    assert [change.file for change in outcome.changed] == ["run-1"]
    assert (outcome.rules["MAIL"].before, outcome.rules["MAIL"].after) == (1, 3)


def test_an_exchange_that_was_cut_off_and_would_now_go_on_is_unfinished() -> None:
    cut_off = recording((request(), UpstreamOpened(200, streaming=True), UpstreamBytes(delta({"content": "Hi"}))))
    outcome = compared(program(NOTHING), None, cut_off)
    assert outcome.unfinished == ("run-0",)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    request("Hi"),
                    request(),
                    UpstreamOpened(200, streaming=True),
                    UpstreamOpened(-1, streaming=False),
                    UpstreamOpened(10**30, streaming=False),
                    UpstreamBytes(delta({"content": MAIL})),
                    UpstreamBytes(b"\xff data"),
                    UpstreamClosed(),
                    UpstreamFailed("reset", "x"),
                    Scored(1, {"toy.alpha": 1e308}),
                    Scored(-(10**40), {}),
                    ScoringFailed(2, "crash"),
                    TimerFired("stall"),
                    TimerFired("budget"),
                    DownstreamClosed(),
                    Draining(),
                ]
            ),
            st.builds(UpstreamBytes, st.binary(max_size=20)),
        ),
        max_size=12,
    ),
    st.lists(st.floats(-1e9, 1e9), min_size=12, max_size=12),
)
def test_any_order_of_events_replays(events: list[AnyEvent], times: list[float]) -> None:
    lines = tuple(Line(at=at, event=event) for at, event in zip(times, events, strict=False))
    done = replay(
        Transcript(header=Header(surface="openai.chat"), lines=lines), program(MAILS, TOXIC), InstalledModels()
    )
    assert done.shown
