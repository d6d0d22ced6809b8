"""Windows of texts, what they are taught, the checks of a stream, and the figures made of them."""

import json
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from models.training.safety.card import card
from models.training.safety.checks import Checked, checked, whole
from models.training.safety.figures import (
    agreement,
    by_label,
    by_rates,
    flagged,
    of_label,
    pooled,
    separation,
    streaming,
)
from models.training.safety.labels import ANY, LABELS, Float, Text, harmful, known, safe
from models.training.safety.symbols import common_symbols, symbol_rows, with_symbols
from models.training.safety.windows import (
    WINDOW,
    Window,
    ends,
    hard_targets,
    noisy_or,
    sampled,
    soft_targets,
    teacher_texts,
)

WORDS = ["[PAD]", "[UNK]", "bad", *(f"w{number}" for number in range(100))]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    model = WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    found = Tokenizer(model)
    found.pre_tokenizer = Whitespace()
    return found


def words(number: int, bad_at: int | None = None) -> str:
    return " ".join("bad" if at == bad_at else f"w{at % 100}" for at in range(number))


def alarm(windows: Sequence[Sequence[int]]) -> Float:
    """Score a window by whether it holds `bad`."""
    return np.array([[0.9 if 2 in window else 0.1] * len(LABELS) for window in windows], np.float32)


def test_a_window_ends_at_a_word_and_is_never_too_long(tokenizer: Tokenizer) -> None:
    texts = [Text(words(number), safe(), "x", spans=()) for number in (1, 5, 32, 33, 200)]
    found = list(sampled(texts, tokenizer, WINDOW, Random(1)))
    assert {window.origin for window in found} == {0, 1, 2, 3, 4}
    assert all(1 <= len(window.ids) <= WINDOW for window in found)
    for window in found:
        assert window.text in texts[window.origin].text
        assert tokenizer.encode(window.text).ids == list(window.ids)


def test_an_empty_text_has_no_window(tokenizer: Tokenizer) -> None:
    assert list(sampled([Text("", safe(), "x")], tokenizer, WINDOW, Random(1))) == []
    assert ends(tokenizer.encode("")) == []


def test_of_a_marked_text_only_windows_over_the_mark_are_harmful(tokenizer: Tokenizer) -> None:
    text = words(120, bad_at=60)
    start = text.index("bad")
    marked = Text(text, known(toxicity=1.0), "x", spans=((start, start + 3),))
    windows = [window for seed in range(40) for window in sampled([marked], tokenizer, WINDOW, Random(seed))]
    assert {window.marked for window in windows} == {True, False}
    assert all(("bad" in window.text) == window.marked for window in windows)
    targets = soft_targets(windows, [marked], np.full((len(windows), len(LABELS)), 0.5, np.float32))
    hard = hard_targets(windows, [marked])
    for window, soft, sure in zip(windows, targets, hard, strict=True):
        assert (soft[0] > 0.6) == window.marked
        assert (sure[0] > 0.5) == window.marked


def test_the_teacher_reads_no_more_than_it_may_and_no_part_of_a_text_whose_parts_are_unknown_as_harmless(
    tokenizer: Tokenizer,
) -> None:
    texts = [Text(words(500), harmful("violence"), "x"), Text(words(500), safe(), "x", spans=())]
    for cut in teacher_texts(texts, tokenizer, 96, Random(2)):
        assert len(tokenizer.encode(cut.text).ids) <= 96


def test_the_most_suspicious_window_of_a_harmful_text_is_taught_most() -> None:
    texts = [Text("a b", harmful("violence"), "x"), Text("c", safe(), "x")]
    windows = [Window((3,), "a", 0, None), Window((4,), "b", 0, None), Window((5,), "c", 1, None)]
    column = LABELS.index("violence")
    scores = np.full((3, len(LABELS)), 0.02, np.float32)
    scores[0, column], scores[1, column], scores[2, column] = 0.8, 0.1, 0.8
    taught = soft_targets(windows, texts, scores)
    assert taught[0, column] > 0.9
    assert taught[1, column] < 0.2
    assert taught[2, column] < 0.2
    assert not np.isnan(taught).any()


def test_what_the_recipe_wrote_to_do_harm_does_it_from_its_first_words_on() -> None:
    text = Text("a b", harmful("violence"), "generated violence", spans=None)
    windows = [Window((3,), "a", 0, None), Window((4,), "b", 0, None), Window((5,), "b", 0, False)]
    column = LABELS.index("violence")
    scores = np.full((3, len(LABELS)), 0.02, np.float32)
    scores[1, column] = 0.8
    taught = soft_targets(windows, [text], scores)
    assert taught[0, column] > 0.7
    assert taught[2, column] < 0.1, "but for the parts that are marked as calm"


def test_a_part_of_a_harmful_text_is_less_sure_without_a_teacher() -> None:
    texts = [Text("a b c d e f g h i j", harmful("violence"), "x")]
    part, all_of_it = hard_targets([Window((3,), "a b", 0, None), Window((3,), texts[0].text, 0, None)], texts)
    column = LABELS.index("violence")
    assert 0.5 < part[column] < all_of_it[column] == 1


def test_any_harm_is_the_noisy_or() -> None:
    assert noisy_or(np.array([[0.5, 0.5] + [0.0] * 7], np.float32)) == pytest.approx([0.75])


def test_checks_come_every_few_words_and_at_the_end(tokenizer: Tokenizer) -> None:
    (found,) = checked([words(21)], tokenizer, alarm, every=8)
    assert found.pieces == (8, 16, 21)
    assert checked([""], tokenizer, alarm)[0].pieces == (1,)


def test_a_check_sees_what_its_window_holds_and_no_more(tokenizer: Tokenizer) -> None:
    (found,) = checked([words(80, bad_at=20)], tokenizer, alarm, every=8)
    seen = [at for at, score in zip(found.pieces, found.scores[:, 0], strict=True) if score > 0.5]
    assert seen == [24, 32, 40, 48]
    assert found.highest[0] == pytest.approx(0.9)


@pytest.mark.parametrize("number", [1, 16, 31, 32, 33, 48, 49, 64, 200])
def test_windows_of_a_whole_text_reach_every_word(tokenizer: Tokenizer, number: int) -> None:
    for at in range(number):
        assert whole([words(number, bad_at=at)], tokenizer, alarm)[0, 0] > 0.5
    assert whole([""], tokenizer, alarm)[0, 0] < 0.5


def test_a_stream_leaks_what_was_sent_before_the_cut_less_what_is_held() -> None:
    low, high = [0.1] * len(LABELS), [0.9] * len(LABELS)
    answers = [
        Checked((10, 20, 100), np.array([low, high, high], np.float32)),
        Checked((10, 20, 30), np.array([low, low, high], np.float32)),
        Checked((10,), np.array([low], np.float32)),
    ]
    found = streaming(answers, {"x": 0.5})["x"]
    assert found["caught"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["decided_by_30_percent"] == 0.5
    assert found["leak"]["0"]["mean"] == 25
    assert found["leak"]["16"] == {"nothing": 0.0, "median": 9.0, "mean": 9.0}
    assert found["leak"]["32"]["nothing"] == 1


def test_pools_share_one_threshold() -> None:
    texts = [Text("a", harmful("hate"), "one"), Text("b", safe(), "two"), Text("c", known(hate=0.1), "two")] * 50
    scores = np.zeros((150, len(LABELS)), np.float32)
    scores[0::3, 1] = 0.8
    found = pooled(texts, scores)
    assert found["auc"][0] == 1
    assert (found["positives"], found["negatives"]) == (50, 50)
    assert found["sources"]["one"]["recall"] == {"0.05": 1.0, "0.01": 1.0}
    assert by_label(texts, scores)["hate"]["auc"][0] == 1


def test_each_label_decides_by_its_own_threshold() -> None:
    scores = np.zeros((4, len(LABELS)), np.float32)
    scores[0, 0], scores[1, 1], scores[2, 2] = 0.8, 0.3, 0.9
    rates = [{"label": "toxicity", "fpr": 0.01, "threshold": 0.9}, {"label": "hate", "fpr": 0.01, "threshold": 0.2}]
    assert by_rates({"x": scores}, rates)["x"] == {"texts": 4, "1.0%": 0.25}


def symbol_tokenizer() -> str:
    return json.dumps({"model": {"vocab": {"[PAD]": 0, "a": 1}}})


def test_symbols_that_a_vocabulary_lacks_get_pieces_after_its_own() -> None:
    found = common_symbols(["a \U0001f602\U0001f602 \U0001f32d", "x \u00e9 ="], symbol_tokenizer(), 5)
    assert found == ["\U0001f602", "\U0001f32d"]
    vocabulary = json.loads(with_symbols(symbol_tokenizer(), found))["model"]["vocab"]
    assert vocabulary == {"[PAD]": 0, "a": 1, "\U0001f602": 2, "\U0001f32d": 3}


def test_a_symbol_starts_as_the_mean_of_its_name() -> None:
    base = Tokenizer(WordLevel({"[UNK]": 0, "hot": 1, "dog": 2}, unk_token="[UNK]"))
    base.pre_tokenizer = Whitespace()
    table = np.array([[9, 9], [1, 0], [0, 1]], np.float32)
    assert symbol_rows(["\U0001f32d"], base, table).tolist() == [[0.5, 0.5]]


def test_a_card_has_every_figure_and_no_empty_place() -> None:
    rng = np.random.default_rng(1)
    good = np.asarray(rng.random(60) / 2, np.float32)
    bad = np.asarray(0.4 + rng.random(60) / 2, np.float32)
    texts = [Text("b", harmful("hate"), "one")] * 60 + [Text("g", safe(), "two")] * 60
    scores = np.repeat(np.concatenate([bad, good])[:, None], len(LABELS), axis=1)
    flow = streaming([Checked((4, 20), scores[:2])], {"5%": 0.5, "1%": 0.99})
    answers = {**separation(bad, good), "streaming": flow}
    own = {
        "natural": pooled(texts, scores),
        "labels": by_label(texts, scores),
        "hard": {"generated quoted": flagged(scores, {"5%": 0.5})},
        "probe": flagged(scores, {"5%": 0.5}),
        "probe_harmful": flagged(scores, {"5%": 0.5}),
        "answers": answers,
        "policy": by_rates({"p": scores}, [{"label": "hate", "fpr": 0.01, "threshold": 0.5}]),
        "promotions": of_label({"p": scores}, "promotional", [{"label": "promotional", "fpr": 0.01, "threshold": 0.5}]),
        "whole": agreement(scores, scores),
        "measures": {"m": {"flagged": {"5%": 0.04}, **separation(bad, good)}, "n": {"flagged": {"5%": 0.01}}},
    }
    export = {
        "rates": [{"label": "hate", "fpr": 0.01, "threshold": 0.7}],
        "parity": {"windows": 9, "mean": 0.001, "p99": 0.01, "flips": 0.002},
        "bytes": {"model.onnx": 6_000_000},
        "gate": {"windows": 4321, "threshold": 0.2, "doubted": 0.125, "checks": 777, "lost": {"1.0%": 0.009}},
        "benign_dev_texts": 1234,
    }
    text = card({"export": export, "figures": own})
    assert "{" not in text.replace("{train,", "")
    assert "0.20%" in text
    assert "1234 benign dev texts" in text
    assert "| 4321 | 0.2000 | 12.5 % | 777 | 0.9 % |" in text
    assert len(LABELS) == ANY
