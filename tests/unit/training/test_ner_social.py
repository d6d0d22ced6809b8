"""Posts made of marked prose mark the same names where they now stand, and nothing that was added."""

from random import Random

import pytest

from tests.train_packages import TRAIN

pytest.importorskip("faker", reason=TRAIN)

from models.training.ner.data import plain
from models.training.ner.generate import documents
from models.training.ner.marked import Marked, Span
from models.training.ner.social import posted, posts


def squeezed(text: str) -> str:
    return "".join(text.split()).casefold()


def test_a_post_keeps_the_names_of_its_sentences_whatever_is_done_to_them() -> None:
    text = "We met Ann O'Hara (of Acme, Inc.) in St. Ives. It rained."
    spans = tuple(
        Span(text.index(name), text.index(name) + len(name), entity)
        for name, entity in (("Ann O'Hara", "PERSON"), ("Acme, Inc.", "ORGANIZATION"), ("St. Ives", "LOCATION"))
    )
    seen = set()
    for seed in range(300):
        post = posted(Marked(text, spans), Random(seed))
        named = [(squeezed(post.text[span.start : span.end]), span.entity) for span in post.spans]
        assert named in (
            [("anno'hara", "PERSON"), ("acme,inc.", "ORGANIZATION"), ("st.ives", "LOCATION")],
            [],
        )
        seen.add(post.text)
        at = 0
        for span in post.spans:
            assert at <= span.start < span.end <= len(post.text)
            assert post.text[span.start : span.end].strip() == post.text[span.start : span.end]
            at = span.end
    assert len(seen) > 250


def test_posts_are_short_lines_repeat_from_their_seed_and_some_name_nobody() -> None:
    prose = list(documents(30, Random(1)))
    made = list(posts(prose, 200, Random(2)))
    assert made == list(posts(prose, 200, Random(2)))
    assert len(made) == 200
    assert not [post for post in made if "\n" in post.text or len(post.text) > 280]
    assert 10 < sum(not post.spans for post in made) < 150
    names = [post.text[span.start : span.end] for post in made for span in post.spans]
    assert not [name for name in names if name.startswith(("@", "#", "http"))]
    assert any("@" in post.text for post in made)


def test_what_a_teacher_of_prose_takes_for_names_in_posts_is_left_out() -> None:
    text = "RT @Ann: Nigea @bob #Paris Trump \U0001f609 http://t.co/Xy in Rome"
    marks = ("RT @Ann", "Ann", "Nigea @bob", "Paris", "Trump", "\U0001f609", "http://t.co/Xy", "Rome")
    spans = tuple(Span(text.index(mark), text.index(mark) + len(mark), "PERSON") for mark in marks)
    kept = plain(Marked(text, spans))
    assert [text[span.start : span.end] for span in kept.spans] == ["Trump", "Rome"]
