"""A scoreboard tells what got worse, gives the same bytes for the same scores, and lets nothing of it become markup."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import FileUnreadable
from checkstream.evaluation.board.described import SetDescribed, files_of, read_described
from checkstream.evaluation.board.measured import Scored, SetOf, of_scores, wilson
from checkstream.evaluation.board.page import markdown, page
from checkstream.evaluation.board.remembered import Remembered
from checkstream.evaluation.board.results import (
    Before,
    Board,
    Figure,
    ModelKept,
    Version,
    compare,
    decode,
    encode,
    not_held,
)
from checkstream.evaluation.board.texts import read_claims, read_texts

OLD, NEW = Version("1.0.0", "aa"), Version("1.1.0", "bb")


def figure(value: float = 0.8, name: str = "AUC", **others: object) -> Figure:
    made = Figure(
        model="m",
        label="l",
        set="s",
        kind="attack",
        learnt="left out",
        harmful=True,
        figure=name,
        good="down" if name.startswith("fires") else "up",
        n=100,
        value=value,
        low=round(value - 0.05, 4),
        high=round(value + 0.05, 4),
        texts="t",
    )
    return msgspec.structs.replace(made, **others)


def board(*figures: Figure, version: Version = OLD) -> Board:
    models = (ModelKept(name="m", now=version),)
    return Board(described="d", rows=300, models=models, thresholds=(), figures=figures)


# compared


@pytest.mark.parametrize(
    ("now", "name", "became"),
    [
        (0.8, "AUC", "same"),
        (0.75, "AUC", "same"),
        (0.85, "AUC", "same"),
        (0.7401, "AUC", "same"),
        (0.7399, "AUC", "worse"),
        (0.8601, "AUC", "better"),
        (0.7399, "fires at 1 %", "better"),
        (0.8601, "fires at 1 %", "worse"),
    ],
)
def test_a_figure_got_worse_beyond_the_bad_end_of_the_interval_before(now: float, name: str, became: str) -> None:
    found = compare(board(figure(now, name), version=NEW), board(figure(0.8, name)))
    (only,) = found.board.figures
    assert only.became == became
    assert only.before == Before(0.8, 0.75, 0.85, "t")
    assert found.board.models[0].before == OLD
    assert [len(found.worse), len(found.better)] == [became == "worse", became == "better"]


def test_without_a_kept_board_nothing_is_worse_and_nothing_before() -> None:
    found = compare(board(figure(0.1)), None)
    assert (found.worse, found.better, found.gone) == ((), (), ())
    assert found.board.figures[0].became == "new"


def test_what_was_measured_on_other_texts_is_not_compared() -> None:
    found = compare(board(figure(0.1, texts="u"), version=NEW), board(figure(0.8)))
    assert found.worse == ()
    assert found.board.figures[0].became == "other texts"


def test_what_is_no_longer_measured_is_told() -> None:
    found = compare(board(figure()), board(figure(), figure(name="recall at 1 % of all")))
    assert found.gone == (("m", "l", "s", "recall at 1 % of all"),)


def test_a_run_again_keeps_the_version_before_and_is_no_news() -> None:
    kept = compare(board(figure(0.5), version=NEW), board(figure(0.8))).board
    again = compare(board(figure(0.5), version=NEW), kept)
    assert again.board == kept
    assert again.worse == ()
    assert again.board.figures[0].became == "worse"
    assert again.board.models[0].before == OLD


def test_code_that_makes_the_same_model_worse_is_seen() -> None:
    found = compare(board(figure(0.5)), board(figure(0.8)))
    assert len(found.worse) == 1


def test_what_is_kept_is_held_to_what_is_there() -> None:
    kept = board(figure())
    assert not_held(kept, "d", {"m": OLD}) == []
    assert "has changed" in not_held(kept, "e", {"m": OLD})[0]
    assert "1.1.0 (bb)" in not_held(kept, "d", {"m": NEW})[0]
    assert "`n` is not on it" in not_held(kept, "d", {"m": OLD, "n": OLD})[0]


# figures


@given(st.integers(1, 2_000), st.data())
def test_wilsons_interval_holds_the_share_and_is_no_point(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    found = wilson(hits, n)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low
    mirrored = wilson(n - hits, n)
    assert math.isclose(mirrored.low, 1 - found.high, abs_tol=1e-12)


def test_wilsons_interval_is_the_published_one() -> None:
    found = wilson(0, 10)
    assert (found.low, round(found.high, 4)) == (0.0, 0.2775)
    found = wilson(5, 10)
    assert (round(found.low, 4), round(found.high, 4)) == (0.2366, 0.7634)
    with pytest.raises(ValueError, match="no texts"):
        wilson(0, 0)


def scored(name: str, scores: list[float], *, harmful: bool) -> Scored:
    of = SetOf(
        model="m",
        name=name,
        described=SetDescribed(file="f", kind="attack"),
        learnt="known",
        harmful=harmful,
        texts=[f"{name} {number}" for number in range(len(scores))],
    )
    values = np.array(scores)
    return Scored(of, values, {"5 %": values >= 0.9})


def test_one_threshold_counts_for_all_innocent_sets_together() -> None:
    calm, loud = [0.1] * 95, [0.2] * 4 + [0.95]
    figures, threshold = of_scores(
        "m",
        "l",
        [scored("a", [0.3, 0.97], harmful=True), scored("b", calm, harmful=False), scored("c", loud, harmful=False)],
    )
    found = {(each.set, each.figure): each for each in figures}
    assert threshold.n == 100
    assert 0.2 <= threshold.threshold < 0.2001
    assert found["a", "recall at 1 % of all"].value == 1
    assert found["a", "fires at 5 %"].value == 0.5
    assert found["a", "fires at 5 %"].good == "up"
    assert found["b", "fires at 1 % of all"].value == 0
    assert found["c", "fires at 1 % of all"].value == 0.2
    assert found["c", "fires at 5 %"].good == "down"
    assert found["b", "fires at 1 % of all"].high > 0
    again, _ = of_scores(
        "m",
        "l",
        [scored("a", [0.3, 0.97], harmful=True), scored("b", calm, harmful=False), scored("c", loud, harmful=False)],
    )
    assert again == figures


# kept and shown


def test_a_board_is_read_back_as_it_was_written() -> None:
    kept = compare(board(figure(0.5), figure(0.2, "fires at 1 %"), version=NEW), board(figure(0.8))).board
    data = encode(kept)
    assert decode(data, "scoreboard.json") == kept
    assert encode(decode(data, "scoreboard.json")) == data
    assert data.count(b"\n") > 2  # one figure a line: a change of one is a change of a line


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"version": 2}', b"[" * 100_000])
def test_what_is_no_board_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(FileUnreadable, match=r"`scoreboard\.json` is no scoreboard"):
        decode(data, "scoreboard.json")


def test_the_pages_show_values_intervals_and_what_was_before_and_no_markup_of_others() -> None:
    evil = figure(0.5, set="<script>|`x`", kind="<b>")
    kept = compare(board(evil, figure(0.5), version=NEW), board(figure(0.8), evil)).board
    text, html = markdown(kept), page(kept)
    assert "0.500 \\[0.450, 0.550\\]<br>before 0.800, **worse**" in text
    assert "<script" not in text.replace("\\<script", "")
    assert "\\<script\\>\\|\\`x\\`" in text
    assert "<script" not in html
    assert '<b class="worse">worse</b>' in html
    assert "before 0.800" in html
    assert "1.1.0 (bb)" in html
    assert "1.0.0 (aa)" in html
    assert not any(word in html for word in ("src=", "href=", "http:", "https:"))
    assert (markdown(kept), page(kept)) == (text, html)


# what is measured

GOOD = """
version: 1
rows: 5
sets:
  bad: {file: a.jsonl, kind: attack, where: {label: ["1"]}}
  calm: {file: a.jsonl, kind: prompts, where: {label: ["0"]}}
asked:
  - {model: lexicon, label: injection, harmful: {left_out: [bad]}, innocent: {known: [calm]}}
"""


def described(tmp_path: Path, text: str) -> Path:
    (tmp_path / "scoreboard.yaml").write_text(text)
    return tmp_path / "scoreboard.yaml"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1", "version: 2", "version"),
        ("rows: 5", "rows: 0", "rows"),
        ("kind: attack, ", "", "kind"),
        ("[bad]}", "[none]}", "`bad` is asked of no model"),
        ("known: [calm]", "known: [other]", "`calm` is asked of no model"),
        ("innocent: {known: [calm]}", "", "needs `harmful` and `innocent`"),
        ("label: injection, ", "", "needs a `label`"),
        ("model: lexicon", "model: verifier:embedded", "needs `claims` alone"),
        ("known: [calm]", "known: [calm, calm]", "names a set twice"),
        ("known: [calm]", "knwon: [calm]", "knwon"),
        ('["1"]', "[]", "length"),
        ("asked:", "asked: 3 #", ""),
        ("version: 1", "\0", ""),
    ],
)
def test_a_description_that_can_not_be_meant_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert read_described(described(tmp_path, GOOD)).most("bad") == 5
    with pytest.raises(FileUnreadable, match="no description of a scoreboard") as refused:
        read_described(described(tmp_path, GOOD.replace(old, new, 1)))
    assert said in str(refused.value)


def test_a_label_that_is_asked_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match=r"`lexicon\.injection` is asked twice"):
        read_described(described(tmp_path, GOOD + GOOD.splitlines()[-1] + "\n"))


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match=r"lacks `a\.jsonl`"):
        files_of(read_described(described(tmp_path, GOOD)), tmp_path)
    with pytest.raises(FileUnreadable, match="no such file"):
        read_described(tmp_path / "none.yaml")


SET = SetDescribed(file="a.jsonl", kind="attack", where={"label": ("1",)})


def test_rows_are_chosen_by_their_texts_wherever_they_stand(tmp_path: Path) -> None:
    lines = [f'{{"text": "text {number}", "label": {number % 2}}}' for number in range(40)]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines))
    first = read_texts(file, SET, 7)
    file.write_text("\n".join([*lines[::-1], *lines, '{"label": 0}', '{"text": " ", "label": 1}']))
    assert read_texts(file, SET, 7) == first
    assert len({row.text for row in first}) == 7
    assert {row.label for row in first} == {"1"}
    assert len(read_texts(file, SET, 1_000)) == 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no row with `label` 1; there `label` is nothing"),
        ('{"text": "a", "label": 0}\n{"text": "b", "label": "bad"}', "there `label` is 0, bad"),
        ('{"text": "a"}', "there `label` is nothing"),
        ('{"text": "a", "label": 1}\n{"text"', "a.jsonl:2: no JSON"),
        ('{"text": 1, "label": 1}', "a.jsonl:1: `text`"),
        ("[]", "no JSON object"),
        ('{"text": " ", "label": 1}', "has no row"),
    ],
)
def test_a_set_without_what_is_meant_says_what_is_there(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(FileUnreadable) as refused:
        read_texts(tmp_path / "a.jsonl", SET, 5)
    assert said in str(refused.value)


def test_claims_are_chosen_with_their_evidence(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"premise": "p", "claim": "c", "label": 1}\n' * 2 + '{"premise": "q", "claim": "c", "label": 1}')
    assert len(read_claims(file, SET, 5)) == 2
    with pytest.raises(FileUnreadable, match="has no row"):
        read_claims(file, msgspec.structs.replace(SET, where={"label": ("2",)}), 5)


# remembered


def test_what_was_said_is_not_asked_again_nor_taken_for_another(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(model: str, text: str) -> float:
        def fresh() -> float:
            asked.append(f"{model} {text}")
            return 0.1 + 0.2

        with Remembered.open(tmp_path / "scores") as remembered:
            return remembered.ask(model, text, float, fresh)

    assert [ask("m", "t"), ask("m", "t"), ask("n", "t"), ask("m", "u")] == [0.1 + 0.2] * 4
    assert asked == ["m t", "n t", "m u"]


def test_a_value_of_another_form_is_asked_anew(tmp_path: Path) -> None:
    with Remembered.open(tmp_path / "scores") as remembered:
        assert remembered.ask("m", "t", str, lambda: "x") == "x"
        assert remembered.ask("m", "t", float, lambda: 0.5) == 0.5
        assert remembered.ask("m", "t", float, lambda: 0.7) == 0.5


def test_a_file_that_is_no_cache_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "scores").write_bytes(b"no database, but long enough to be looked at" * 100)
    for path in (tmp_path / "scores", tmp_path, tmp_path / "none" / "scores"):
        with pytest.raises(FileUnreadable, match="can't be used to remember scores"), Remembered.open(path):
            pass
