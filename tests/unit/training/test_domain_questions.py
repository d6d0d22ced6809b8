"""Generated questions and cases name their domain, repeat from their seed, and weigh as they should."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from models.training.domain.data import CLASSES, Text, generated, weights
from models.training.domain.questions import questions
from models.training.domain.topics import TOPICS
from models.training.domain.vignettes import vignettes


@pytest.mark.parametrize("domain", sorted(TOPICS))
@pytest.mark.parametrize("kind", [questions, vignettes])
def test_no_slot_stays_open_and_texts_vary(domain: str, kind: Callable[[str, int, Random], Iterator[str]]) -> None:
    texts = list(kind(domain, 400, Random(1)))
    assert len(texts) == 400
    assert not [text for text in texts if "{" in text or "}" in text or not text.strip()]
    assert len(set(texts)) > 350


def test_the_classes_share_no_topic() -> None:
    every = [topic for topics in TOPICS.values() for topic in topics]
    assert [topic for topic, count in Counter(every).items() if count > 1] == []
    assert all(len(topics) > 150 for topics in TOPICS.values())


def test_texts_repeat_from_their_seed() -> None:
    assert generated(20, 1) == generated(20, 1)
    assert generated(20, 1) != generated(20, 2)
    assert Counter(text.label for text in generated(20, 1)) == dict.fromkeys(CLASSES, 30)


def test_classes_weigh_their_share_whatever_their_number_of_texts() -> None:
    texts = [Text("a", "none", "questions")] * 300 + [Text("b", "medical", "domain_medquad")] * 7
    texts += [Text("c", "legal", "domain_mmlu")] * 30 + [Text("d", "financial", "domain_banking77")] * 3
    found = weights(texts)
    shares = dict.fromkeys(CLASSES, 0.0)
    for text, weight in zip(texts, found, strict=True):
        shares[text.label] += weight / len(texts)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["none"] > shares["medical"] == pytest.approx(shares["legal"])
    assert shares["legal"] == pytest.approx(shares["financial"])


def test_a_small_source_weighs_as_much_as_a_large_one_of_its_class() -> None:
    texts = [Text("a", "medical", "domain_medquad")] * 90 + [Text("b", "medical", "harm_prompts")] * 10
    found = weights(texts)
    assert sum(found[:90]) == pytest.approx(sum(found[90:]))
