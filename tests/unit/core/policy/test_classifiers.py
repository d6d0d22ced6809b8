from __future__ import annotations

from checkstream.core.policy.classifiers import ClassifierLabel, resolve

KNOWN = (
    ClassifierLabel("lexicon.toxicity", 0.5),
    ClassifierLabel("lexicon.injection", 0.5),
    ClassifierLabel("tiny.injection"),
)


def test_resolve() -> None:
    assert [label.name for label in resolve("lexicon.injection", KNOWN)] == ["lexicon.injection"]
    assert [label.name for label in resolve("toxicity", KNOWN)] == ["lexicon.toxicity"]
    assert [label.name for label in resolve("tiny", KNOWN)] == ["tiny.injection"]
    assert len(resolve("injection", KNOWN)) == 2
    assert len(resolve("lexicon", KNOWN)) == 2
    assert resolve("nothing", KNOWN) == ()


def test_threshold_keeps_to_the_rate_that_is_asked_for() -> None:
    label = ClassifierLabel("m.l", None, ((0.05, 0.5), (0.001, 0.97), (0.01, 0.9)))
    assert label.threshold_at(0.01) == 0.9
    assert label.threshold_at(0.02) == 0.9
    assert label.threshold_at(1.0) == 0.5
    assert label.threshold_at(0.0005) is None
    assert ClassifierLabel("m.l").threshold_at(0.5) is None


def test_model() -> None:
    assert KNOWN[0].model == "lexicon"
