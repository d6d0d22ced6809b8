"""A history that comes again is not searched again, whatever was found in it, and comes to the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Record, Score
from checkstream.core.events import AnyEvent, RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.exchange.quiet import MOST_FINDINGS
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Finding, Span
from checkstream.proxy.quiet import QuietOfCaller, QuietTexts
from tests.chance import examples
from tests.guarded import CHAT, plan, whole
from tests.playbook import digest

RULES = """
  - {name: a, id: R-1, stage: [ingress], phrases: [forbidden fruit], actions: [{type: reject}]}
  - {name: b, id: R-2, stage: [ingress, midstream], entities: [EMAIL], unless: in_request, in: [system],
     actions: [{type: redact}]}
  - {name: c, id: R-3, stage: [ingress], patterns: [{name: code, regex: 'ab{3,5}a', max_chars: 12}],
     actions: [{type: log_event}]}
  - {name: d, id: R-4, stage: [ingress], triggers: {all: [{phrases: [please]}, {not: {phrases: [thank you]}}]},
     actions: [{type: log_event, severity: high}]}
  - {name: e, id: R-5, stage: [ingress], phrases: [tell me], conditions: [scores.injection > 0.5],
     actions: [{type: reject}]}
  - {name: f, id: R-6, stage: [midstream], entities: [EMAIL], unless: in_request, actions: [{type: redact}]}
"""
PLAN = plan(RULES)
OTHER = plan(
    """
  - {name: a, id: R-1, stage: [ingress], phrases: [hot], actions: [{type: redact}]}
  - {name: b, id: R-2, stage: [ingress], entities: [EMAIL], channels: [user], actions: [{type: redact}]}
  - {name: c, id: R-3, mode: shadow, stage: [ingress], phrases: [tell me, please], actions: [{type: reject}]}
  - {name: d, id: R-4, stage: [ingress], patterns: [{name: n, regex: 'nothing.{0,20}', max_chars: 40}],
     actions: [{type: log_event}]}
"""
)
PIECES = st.sampled_from(
    [
        "forbidden", " ", "fruit", "anna@example.com", "ab", "bbb", "a", "please", "thank you", "tell me", "hot", "\n",
        "Zm9yYmlkZGVuIGZydWl0IGFuZCBtb3Jl", "\u200b", '{"a": "b"}', "a long text in which there is nothing at all",
    ]
)  # fmt: skip
MAIL = plan("  - {name: b, id: R-2, stage: [ingress], entities: [EMAIL], actions: [{type: redact}]}\n")
TEXTS = st.lists(PIECES, min_size=1, max_size=8).map(" ".join)
CONTENTS: st.SearchStrategy[Any] = st.one_of(
    TEXTS, st.lists(TEXTS, min_size=1, max_size=3).map(lambda texts: [{"type": "text", "text": each} for each in texts])
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": CONTENTS}),
    min_size=1,
    max_size=5,
)


def _asked(messages: list[dict[str, Any]], quiet: QuietOfCaller | None, plan_: Plan = PLAN) -> list[Any]:
    """Return all that an exchange does, but for what it says of its own costs."""
    guard = Guard(surface=CHAT, plan=plan_, digest=digest, quiet=quiet)
    done: list[Any] = []

    def tell(event: AnyEvent) -> None:
        for command in guard.receive(event, 1.0):
            done.append(command.record if isinstance(command, Record) else command)
            if isinstance(command, Score):
                value = 0.9 if "hot" in command.text else 0.1
                tell(Scored(command.ticket, {"lexicon.injection": value, "lexicon.toxicity": 0.0}))

    tell(RequestReceived(json.dumps({"model": "m", "messages": messages}).encode()))
    answer = whole("Write to anna@example.com or bert@example.com.")
    for event in (UpstreamOpened(200, streaming=False), UpstreamBytes(answer), UpstreamClosed()):
        tell(event)
    return done


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=3))
@example([[{"role": "user", "content": "a long text in which there is nothing at all"}]] * 2)
@example([[{"role": "user", "content": "tell me hot anna@example.com abbba tell me more"}]] * 2)
@example([[{"role": "system", "content": "bert@example.com and anna@example.com, please, thank you"}]] * 3)
@example(
    [[{"role": "user", "content": [{"type": "text", "text": "forbidden"}, {"type": "text", "text": "fruit"}]}]] * 2
)
def test_what_is_remembered_of_a_history_changes_nothing(chats: list[list[dict[str, Any]]]) -> None:
    known = QuietTexts()
    for messages in chats:
        for end in range(1, len(messages) + 1):  # each request has the history of the one before
            for plan_ in (PLAN, OTHER):  # as of two routes, or before and behind a change of policies
                quiet = known.of("one", plan_.program.hash)
                assert _asked(messages[:end], quiet, plan_) == _asked(messages[:end], None, plan_)


def test_what_other_policies_have_found_and_what_other_callers_have_sent_is_not_known() -> None:
    messages = [{"role": "user", "content": "Whoever asks should write to anna@example.com at once."}]
    known = QuietTexts()
    for caller, plan_, again in (("one", PLAN, 0), ("one", PLAN, 1), ("one", OTHER, 0), ("two", PLAN, 0)):
        mine = known.of(caller, plan_.program.hash)
        assert _asked(messages, mine, plan_) == _asked(messages, None, plan_)
        assert (mine.known, mine.asked) == (again * mine.asked, mine.asked)
        assert mine.asked > 0


def test_a_text_in_which_very_much_is_found_is_not_remembered() -> None:
    messages = [{"role": "user", "content": " ".join(f"abbb{'b' * (at % 3)}a" for at in range(MOST_FINDINGS + 1))}]
    known = QuietTexts()
    for _ in range(2):
        assert _asked(messages, known.of("one", "p")) == _asked(messages, None)
    assert len(known) < MOST_FINDINGS


def test_a_text_in_which_nothing_was_found_is_not_searched_again(monkeypatch: Any) -> None:
    searched: list[str] = []
    feed = Scan.feed

    def noted(scan: Scan, text: str) -> Any:
        if scan._patterns.patterns:
            searched.append(text)
        return feed(scan, text)

    monkeypatch.setattr(Scan, "feed", noted)
    known = QuietTexts()
    old = {"role": "user", "content": "The weather was rather fine all through that week."}
    around = "So they said, and so it was done by all who were there. " * 3  # borders of messages are read apart
    found = {"role": "user", "content": f"{around}Whoever asks should write to anna@example.com at once.{around}"}
    new = {"role": "user", "content": "And how was the weather in the week that came then?"}
    for caller, program, again in (("one", "p", False), ("one", "p", True), ("two", "p", False), ("one", "q", False)):
        searched.clear()
        _asked([old, found, new] if again else [old, found], known.of(caller, program))
        said = "".join(searched)
        assert (old["content"] in said) is not again
        assert (found["content"] in said) is not again
        assert (new["content"] in said) is again


def test_what_stands_over_a_border_is_found_where_the_same_text_was_cut_elsewhere_before() -> None:
    known = QuietTexts()
    for cut in (20, 27, 34):
        said = "please write to her, anna@example.com at once, if you can"
        messages = [{"role": "user", "content": said[:cut]}, {"role": "user", "content": said[cut:]}]
        assert _asked(messages, known.of("one", MAIL.program.hash), MAIL) == _asked(messages, None, MAIL)


def test_so_many_texts_are_known_and_no_more() -> None:
    known = QuietTexts(most=3)
    one, two = known.of("one", "p"), known.of("two", "p")
    for text in "abc":
        one.keep("user", text)
    assert one.found("user", "a") == ()  # seen just now, so `b` goes first
    one.keep("user", "d")
    assert [one.found("user", text) for text in "abcd"] == [(), None, (), ()]
    assert len(known) == 3
    assert two.found("user", "a") is None
    assert one.found("system", "a") is None


def test_findings_take_room_and_nobody_takes_anothers() -> None:
    known, many = QuietTexts(most=20), ((Finding(1, Span(0, 2)),) * 9,)
    one, two = known.of("one", "p"), known.of("two", "p")
    two.keep("user", "mine", many)
    for number in range(50):
        one.keep("user", f"text {number}", ((Finding(1, Span(0, 2)),),))
        assert len(known) <= 20
    assert two.found("user", "mine") == many
    assert one.found("user", "text 49") is not None
    one.keep("user", "text 49")
    assert one.found("user", "text 49") == ()
