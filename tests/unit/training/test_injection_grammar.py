"""Banks of phrases and the texts that are drawn from them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from models.training.injection import grammar
from models.training.injection.generate import DIRECT, INNOCENT, LANGUAGES
from models.training.injection.grammar import Grammar

POOL = {name: ["TEXT"] for name in ("harm", "question", "task", "doc", "encoded")}


def drawn_from(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int = 1) -> set[str]:
    (tmp_path / "small.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(grammar, "BANKS", tmp_path)
    found = Grammar.read("small", pool={"given": ["{not|parsed}"]})
    random = Random(seed)
    return {found.draw("start", random) for _ in range(200)}


def test_a_choice_in_place_may_nest_and_be_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn_from("== start\nx{a|b{c|}|}\n", tmp_path, monkeypatch) == {"xa", "xbc", "xb", "x"}


def test_other_braces_stand_for_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn_from('== start\n{"a": [{1}]}\n', tmp_path, monkeypatch) == {'{"a": [{1}]}'}


def test_texts_of_the_pool_are_taken_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn_from("== start\n<{given}>\n", tmp_path, monkeypatch) == {"<{not|parsed}>"}


def test_a_line_end_is_written_with_a_backslash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn_from("== start\na\\nb\n", tmp_path, monkeypatch) == {"a\nb"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("== start\n{a|b\n", "a brace isn't closed"),
        ("== start\n{nobody}\n", "there is no bank `nobody`"),
        ("== start\n", "bank `start` is empty"),
    ],
)
def test_a_broken_bank_is_refused(text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=complaint):
        drawn_from(text, tmp_path, monkeypatch)


def test_a_bank_that_only_draws_from_itself_ends_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecursionError, match="without end"):
        drawn_from("== start\n{start}!\n", tmp_path, monkeypatch)


def test_every_family_is_drawn_without_a_brace_of_the_grammar_left() -> None:
    attacks = Grammar.read("direct", pool=POOL)
    innocents = Grammar.read("direct", "innocent", "trades", pool=POOL)
    foreign = Grammar.read("direct", "innocent", "trades", "languages", pool=POOL)
    random = Random(3)
    made_elsewhere = {"foreign", "ciphered", "embedded"}
    texts = [attacks.draw(family, random) for family in DIRECT.keys() - made_elsewhere for _ in range(200)]
    texts += [innocents.draw(family, random) for family in INNOCENT.keys() - made_elsewhere for _ in range(200)]
    kinds = ("attack", "innocent")
    texts += [foreign.draw(f"{tongue}_{kind}", random) for tongue in LANGUAGES for kind in kinds for _ in range(50)]
    banks = set(foreign.banks) | set(attacks.banks)
    assert not [text for text in texts for bank in banks if "{" + bank + "}" in text]
    assert all(text.strip() for text in texts)
