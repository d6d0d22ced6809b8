"""Generated and silver texts mark what stands in them, and repeat from their seed."""

from pathlib import Path
from random import Random

import pytest

from tests.train_packages import TRAIN

pytest.importorskip("faker", reason=TRAIN)

from models.training.ner.data import cleaned, past_titles, recased, renamed
from models.training.ner.encode import ENTITIES
from models.training.ner.generate import Cast, documents, filled, joined
from models.training.ner.marked import Marked, Span, read_marked, write_marked
from models.training.ner.prose import ENGLISH, OTHERS


def words(text: Marked) -> list[tuple[str, str]]:
    return [(text.text[span.start : span.end], span.entity) for span in text.spans]


def test_every_sentence_with_slots_can_be_filled_and_leaves_no_brace_of_a_slot() -> None:
    cast = Cast(Random(1))
    forms_of = [("en_US", forms) for forms in ENGLISH.values()] + list(OTHERS.items())
    for home, sentences in forms_of:
        for form in sentences:
            text = filled(form, cast, None if home == "en_US" else home)
            slots = sum(form.count("{" + slot + "}") for slot in ("PERSON", "FIRST", "LAST", "LOC", "ORG"))
            slots += sum(form.count("{" + slot + "}") for slot in ("ADDRESS", "DOB", "CONDITION", "ACCOUNT"))
            assert len(text.spans) == slots, form
            assert "{PERSON}" not in text.text


def test_spans_of_generated_texts_are_in_order_inside_the_text_and_begin_and_end_with_no_space() -> None:
    seen = set()
    for text in documents(150, Random(2)):
        at = 0
        for span in text.spans:
            assert at <= span.start < span.end <= len(text.text)
            name = text.text[span.start : span.end]
            assert name == name.strip()
            at = span.end
            seen.add(span.entity)
    assert seen == set(ENTITIES)


def test_generated_texts_repeat_from_their_seed_and_differ_with_another() -> None:
    assert list(documents(20, Random(3))) == list(documents(20, Random(3)))
    assert list(documents(20, Random(3))) != list(documents(20, Random(4)))


def test_joining_keeps_what_spans_say() -> None:
    first = Marked("Ann left.", (Span(0, 3, "PERSON"),))
    second = Marked("In Rome", (Span(3, 7, "LOCATION"),))
    assert words(joined([first, second], "\n\n")) == [("Ann", "PERSON"), ("Rome", "LOCATION")]


def test_replaced_names_are_marked_where_they_stand() -> None:
    text = Marked("Mr. Braun of Acme, Paris.", (Span(4, 9, "PERSON"), Span(13, 17, "ORGANIZATION")))
    cast = Cast(Random(5))
    for seed in range(30):
        changed = renamed(text, cast, Random(seed), share=0.7)
        assert changed.text.startswith("Mr. ")
        assert changed.text.endswith(", Paris.")
        (person, _), (organization, _) = words(changed)
        assert changed.text == f"Mr. {person} of {organization}, Paris."


def test_what_the_teacher_gets_wrong_is_corrected() -> None:
    text = "the Nile, Julia, F-22, Dr. Moss and Paris's"
    spans = (
        Span(0, 8, "PERSON"),
        Span(10, 15, "ORGANIZATION"),
        Span(17, 21, "ORGANIZATION"),
        Span(23, 31, "PERSON"),
        Span(36, 43, "PERSON"),
    )
    result = cleaned(Marked(text, spans), frozenset({"Julia"}), frozenset({"Nile", "Paris"}))
    assert words(result) == [("Nile", "LOCATION"), ("Julia", "PERSON"), ("Moss", "PERSON"), ("Paris", "LOCATION")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Dr. Prof. Ann Lee", "Ann Lee"),
        ("mr lee", "lee"),
        ("Dr.", "Dr."),
        ("Drew Lee", "Drew Lee"),
        ("Mr. ", "Mr. "),
    ],
)
def test_titles_are_no_part_of_a_name(text: str, name: str) -> None:
    assert text[past_titles(text, 0, len(text)) :] == name


def test_another_case_keeps_every_offset() -> None:
    text = Marked("Straße 5, İzmir, Ann", (Span(17, 20, "PERSON"),))
    results = {recased(text, Random(seed)).text for seed in range(60)}
    assert "straße 5, İzmir, ann".lower() not in results  # lower case is longer than the text there
    plain = Marked("Ann in Rome", (Span(0, 3, "PERSON"),))
    assert {recased(plain, Random(seed)).text for seed in range(80)} == {
        "Ann in Rome",
        "ann in rome",
        "ANN IN ROME",
        "Ann In Rome",
    }


def test_marked_texts_are_read_as_they_were_written(tmp_path: Path) -> None:
    texts = list(documents(10, Random(6)))
    write_marked(tmp_path / "deep" / "texts.jsonl", texts)
    assert list(read_marked(tmp_path / "deep" / "texts.jsonl")) == texts
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["texts.jsonl"]
