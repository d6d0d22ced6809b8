"""A history that comes again is not searched again where nothing was found in it, and comes to the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import Record, Score
from checkstream.core.events import AnyEvent, RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.match.scan import Scan
from checkstream.proxy.quiet import QuietOfCaller, QuietTexts
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
PIECES = st.sampled_from(
    [
        "forbidden", " ", "fruit", "anna@example.com", "ab", "bbb", "a", "please", "thank you", "tell me", "hot", "\n",
        "Zm9yYmlkZGVuIGZydWl0IGFuZCBtb3Jl", "\u200b", '{"a": "b"}', "a long text in which there is nothing at all",
    ]
)  # fmt: skip
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


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=3))
@example([[{"role": "user", "content": "a long text in which there is nothing at all"}]] * 2)
@example(
    [[{"role": "user", "content": [{"type": "text", "text": "forbidden"}, {"type": "text", "text": "fruit"}]}]] * 2
)
def test_what_is_remembered_of_a_history_changes_nothing(chats: list[list[dict[str, Any]]]) -> None:
    quiet = QuietTexts().of("one", PLAN.program.hash)
    for messages in chats:
        for end in range(1, len(messages) + 1):  # each request has the history of the one before
            assert _asked(messages[:end], quiet) == _asked(messages[:end], None)


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
    found = {"role": "user", "content": "Whoever asks should write to anna@example.com at once."}
    new = {"role": "user", "content": "And how was the weather in the week that came then?"}
    for caller, program, again in (("one", "p", False), ("one", "p", True), ("two", "p", False), ("one", "q", False)):
        searched.clear()
        _asked([old, found, new] if again else [old, found], known.of(caller, program))
        said = "".join(searched)
        assert (old["content"] in said) is not again
        assert found["content"] in said
        assert (new["content"] in said) is again


def test_so_many_texts_are_known_and_no_more() -> None:
    known = QuietTexts(most=3)
    one, two = known.of("one", "p"), known.of("two", "p")
    for text in "abc":
        one.keep("user", text)
    assert one.knows("user", "a")  # seen just now, so `b` goes first
    one.keep("user", "d")
    assert [one.knows("user", text) for text in "abcd"] == [True, False, True, True]
    assert len(known) == 3
    assert not two.knows("user", "a")
    assert not one.knows("system", "a")
