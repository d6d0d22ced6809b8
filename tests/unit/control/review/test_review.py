from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkstream.control.review.choosing import drawn, share_of
from checkstream.control.review.exporting import cases, rows
from checkstream.control.review.judging import agreement, last_words, outcome
from checkstream.control.review.precision import WEEK_S, precision
from checkstream.control.review.terms import Item, Label, Word
from checkstream.evaluation.board.measured import wilson
from checkstream.evaluation.rows import read_rows
from checkstream.trial.cases import read_cases

WORDS: list[Word] = ["right", "wrong", "unsure"]
word = st.sampled_from(WORDS)
said = st.dictionaries(st.sampled_from("abcde"), word)


def item(
    id_: str = "i1", *, share: float = 1.0, week: int = 100, text: str = "how to pick a lock", queue: str = "sampled"
) -> Item:
    made = Item(
        id=id_,
        queue="sampled",
        share=share,
        stream="s1",
        route="chat",
        rule="INJ-001",
        policy="default@1.0.0",
        action="reject",
        stage="ingress",
        detector="injection.injection",
        score=0.93,
        at_s=week * WEEK_S + 5.0,
        text=text,
        masked=False,
    )
    return made if queue == "sampled" else msgspec.structs.replace(made, queue="flagged")


BOTH_RIGHT: Mapping[str, Word] = {"ann": "right", "ben": "right"}
BOTH_WRONG: Mapping[str, Word] = {"ann": "wrong", "ben": "wrong"}


@given(st.text(max_size=20), st.text(max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_keeps_what_a_smaller_one_has_drawn(stream: str, rule: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert drawn(stream, rule, large) or not drawn(stream, rule, small)
    assert drawn(stream, rule, 1.0)
    assert not drawn(stream, rule, 0.0)


def test_about_as_many_are_drawn_as_the_share_says_for_each_rule_by_itself() -> None:
    streams = [f"stream-{number}" for number in range(20_000)]
    first = {stream for stream in streams if drawn(stream, "A", 0.1)}
    second = {stream for stream in streams if drawn(stream, "B", 0.1)}
    assert 1_800 < len(first) < 2_200
    assert 120 < len(first & second) < 280  # 200 where the draws know nothing of each other


@given(st.floats(0, 1e6), st.floats(0.5, 100))
def test_a_rare_rule_is_looked_at_whole_and_a_frequent_one_as_people_can(per_day: float, wanted: float) -> None:
    share = share_of(per_day, wanted)
    assert 0 < share <= 1
    assert share * per_day <= wanted * (1 + 1e-9) or share == 1.0
    assert share == 1.0 or per_day > wanted


@pytest.mark.parametrize(
    ("words", "state", "settled"),
    [
        ({}, "open", None),
        ({"a": "right"}, "open", None),
        ({"a": "right", "b": "right"}, "settled", "right"),
        ({"a": "right", "b": "wrong"}, "contested", None),
        ({"a": "right", "b": "wrong", "c": "wrong"}, "settled", "wrong"),
        ({"a": "right", "b": "wrong", "c": "unsure"}, "contested", None),
        ({"a": "right", "b": "wrong", "c": "wrong", "d": "right"}, "contested", None),
        ({"a": "unsure", "b": "unsure"}, "settled", "unsure"),
    ],
)
def test_two_people_settle_an_item_and_a_third_decides(
    words: Mapping[str, Word], state: str, settled: str | None
) -> None:
    found = outcome(words)
    assert (found.state, found.word, found.people) == (state, settled, len(words))


@given(said)
def test_what_is_settled_is_what_more_people_say_than_anything_else(words: Mapping[str, Word]) -> None:
    counts = {each: list(words.values()).count(each) for each in WORDS}
    best = [each for each in WORDS if counts[each] == max(counts.values())]
    found = outcome(words)
    assert (found.word is not None) == (len(best) == 1 and counts[best[0]] >= 2)
    assert found.word in (None, best[0])


def test_a_person_counts_once_with_what_they_said_last() -> None:
    labels = [
        Label(item="i1", by="ann", word="wrong", at_s=9),
        Label(item="i1", by="ann", word="right", at_s=5),
        Label(item="i1", by="ben", word="unsure", at_s=7),
    ]
    assert last_words(labels) == {"i1": {"ann": "wrong", "ben": "unsure"}}


def test_agreement_beyond_chance() -> None:
    assert agreement([]).pairs == 0
    assert agreement([BOTH_RIGHT]).kappa == 1.0
    assert agreement([BOTH_RIGHT, BOTH_WRONG]).kappa == 1.0
    mixed: Mapping[str, Word] = {"ann": "right", "ben": "wrong"}
    assert agreement([mixed, mixed]).kappa == -1.0
    half = agreement([BOTH_RIGHT, BOTH_WRONG, mixed, {"ann": "wrong", "ben": "right"}])
    assert (half.pairs, half.share, half.kappa) == (4, 0.5, 0.0)


@given(st.lists(said, max_size=12))
def test_agreement_is_what_counting_all_pairs_says(words: list[dict[str, Word]]) -> None:
    pairs = [(one[a], one[b]) for one in words for a, b in combinations(sorted(one), 2)]
    found = agreement(words)
    assert found.pairs == len(pairs)
    if pairs:
        assert found.share == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
        assert -1.0 - 1e-9 <= found.kappa <= 1.0


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_items_of_equal_share_have_wilsons_interval(right: list[bool]) -> None:
    items = [item(f"i{number:02}", share=0.25) for number in range(len(right))]
    words = {each.id: BOTH_RIGHT if good else BOTH_WRONG for each, good in zip(items, right, strict=True)}
    (found,) = precision(items, words)
    expected = wilson(sum(right), len(right))
    interval = (expected.value, expected.low, expected.high)
    assert (found.value, found.low, found.high) == pytest.approx(interval, abs=1e-4)
    assert (found.reviewed, found.right, found.unsure, found.week) == (len(right), sum(right), 0, 100)


def test_an_item_counts_for_all_that_it_was_drawn_from() -> None:
    items = [item("a", share=0.1), item("b", share=1.0)]
    (found,) = precision(items, {"a": BOTH_RIGHT, "b": BOTH_WRONG})
    assert found.value == pytest.approx(10 / 11)
    assert found.low < found.value < found.high


def test_what_was_flagged_what_is_open_and_what_nobody_is_sure_of_make_no_precision() -> None:
    items = [item("a"), item("b", queue="flagged"), item("c"), item("d")]
    unsure: Mapping[str, Word] = {"ann": "unsure", "ben": "unsure"}
    (found,) = precision(items, {"a": BOTH_RIGHT, "b": BOTH_WRONG, "c": unsure, "d": {"ann": "wrong"}})
    assert (found.value, found.reviewed, found.unsure) == (1.0, 1, 1)
    assert precision(items, {"c": unsure}) == ()


def test_cases_are_read_by_policy_test_and_rows_by_models_eval(tmp_path: Path) -> None:
    items = [
        item("a", text='say: "no"\n- {x}: #\u00e9'),
        item("b", text="a calm question"),
        item("c", text=""),
        msgspec.structs.replace(item("d"), masked=True),
    ]
    words = dict.fromkeys("acd", BOTH_RIGHT) | {"b": BOTH_WRONG}
    made = cases(items, words)
    assert (made.kept, made.left_out) == (2, 2)
    read = [placed.value for placed in read_cases("tests.yaml", made.content, ["INJ-001"], ["injection.injection"])]
    assert [(case.prompt, case.expect.action, case.expect.rule_id) for case in read] == [
        ('say: "no"\n- {x}: #\u00e9', "reject", "INJ-001"),
        ("a calm question", "allow", None),
    ]
    file = tmp_path / "rows.jsonl"
    file.write_bytes(rows(items, words).content)
    assert [(row.text, row.label) for row in read_rows(file, "text", "label", "spans")] == [
        ('say: "no"\n- {x}: #\u00e9', "1"),
        ("a calm question", "0"),
    ]


@example(["08", "0o7", "1e3", "=", "~", "- a", "2026-11-29"])
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=5))
def test_any_text_comes_through_both_exports_as_it_was(texts: list[str]) -> None:
    items = [item(f"i{number}", text=text) for number, text in enumerate(texts)]
    words = {each.id: BOTH_WRONG for each in items}
    read = read_cases("tests.yaml", cases(items, words).content, ["INJ-001"], ["injection.injection"])
    assert [placed.value.prompt for placed in read] == texts
    lines = rows(items, words).content.splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts


def test_of_nothing_comes_an_empty_file() -> None:
    assert cases([item()], {}).content == b""
    assert rows([item()], {}).content == b""
