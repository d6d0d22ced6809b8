"""Many short messages are asked about together, and come to what each would come to alone (G33)."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, Scored, ScoringFailed
from tests.guarded import CHAT, INJ, plan
from tests.playbook import Played, by_words, play

WORDS = st.lists(st.sampled_from(["hello", "there is more", "evil", "x" * 150]), max_size=4).map(" ".join)


def chat(texts: list[str], kind: str = "user") -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": kind, "content": text} for text in texts]}).encode()


class Counted:
    """Finds `evil`, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Score] = []

    def __call__(self, score: Score) -> AnyEvent:
        self.asked.append(score)
        return by_words("lexicon.injection", ["evil"])(score)


def played(texts: list[str], scorer: Counted, rules: str = INJ) -> Played:
    return play(CHAT, plan(rules), chat(texts), [], scorer=scorer)


def test_g33_thousands_of_short_messages_are_few_questions() -> None:
    scorer = Counted()
    assert played([f"number {i}" for i in range(2000)], scorer).forwarded is not None
    chars = sum(len(f"number {i}\n") for i in range(2000))
    assert len(scorer.asked) <= chars // 300
    assert all(len(score.text) <= 400 for score in scorer.asked)


def test_the_message_that_is_refused_is_named_though_others_were_asked_about_with_it() -> None:
    scorer = Counted()
    texts = [f"number {i}" for i in range(300)]
    texts[157] = "evil"
    reply = played(texts, scorer).reply
    assert reply is not None
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["param"], error["rule_id"]) == (400, "messages[157]", "INJ-1")
    assert "evil" in [score.text for score in scorer.asked]


@given(texts=st.lists(WORDS, min_size=1, max_size=6), more=st.integers(0, 130))
def test_what_many_come_to_is_what_each_comes_to(texts: list[str], more: int) -> None:
    many = [*(["calm"] * more), *texts]
    reply = played(many, Counted()).reply
    bad = {f"messages[{at}]" for at, text in enumerate(many) if "evil" in text}
    assert (reply is None) == (not bad)
    # the first answer that condemns one refuses the prompt: those asked about together are asked about once more
    assert reply is None or json.loads(reply.body)["error"]["param"] in bad


def test_a_few_messages_are_asked_about_one_by_one() -> None:
    scorer = Counted()
    played([f"number {i}" for i in range(50)], scorer)
    assert len(scorer.asked) == 50


def test_where_rules_read_more_of_a_score_each_text_is_asked_about_alone() -> None:
    read = (
        "  - {name: e, id: E-1, stage: [ingress], entities: [EMAIL], conditions: [scores.lexicon.injection < 0.9], "
        "actions: [{type: redact}]}\n"
    )
    scorer = Counted()
    out = played([f"number {i}" for i in range(300)], scorer, read)
    assert out.forwarded is not None
    assert len(scorer.asked) == 300


def test_a_question_that_fails_fails_all_that_it_was_about() -> None:
    for mode, status in (("closed", 503), ("open", None)):
        out = play(CHAT, plan(INJ, fail_mode=mode), chat(["hello"] * 200), [],
                   scorer=lambda score: ScoringFailed(score.ticket, "crash"))  # fmt: skip
        assert (out.reply.status if out.reply else None) == status


def test_scores_that_say_nothing_of_a_text_are_asked_for_anew() -> None:
    def without(score: Score) -> AnyEvent:
        return Scored(score.ticket, {} if "\n" in score.text else {"lexicon.injection": 0.1})

    assert play(CHAT, plan(INJ), chat(["hello"] * 200), [], scorer=without).forwarded is not None


SUM = (
    "  - {name: r, id: SUM-1, stage: [ingress], "
    "conditions: [conversation.risk.injection > 0.3 && conversation.recent.injection > 0.9], "
    "actions: [{type: reject}]}\n"
)


@given(last=st.lists(st.sampled_from(["hello", "there is more", "x" * 150]), min_size=3, max_size=6))
def test_g32_what_was_said_last_is_asked_about_at_once_though_there_are_many_texts(last: list[str]) -> None:
    def borderline(score: Score) -> AnyEvent:
        return Scored(score.ticket, {"lexicon.injection": 0.5})

    texts = [*(f"number {i}" for i in range(130)), *last]
    exchange = play(CHAT, plan(INJ + SUM), chat(texts), [], scorer=borderline)
    assert exchange.forwarded is not None  # nothing is left that would wait for the timer
    assert any(command.text == "\n".join(texts[-3:]) for command in exchange.commands if isinstance(command, Score))
