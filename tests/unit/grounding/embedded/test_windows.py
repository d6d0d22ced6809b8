"""The stretches of a passage that a claim is compared with."""

from checkstream.grounding.embedded.lexical import Sentence, prepared
from checkstream.grounding.embedded.reading import words
from checkstream.grounding.embedded.windows import PassageReader


def sentence(text: str) -> Sentence:
    return prepared(text, words(text))


def shown(passage: str, claim: str) -> list[str]:
    stretches = PassageReader(passage).stretches(sentence(claim))
    return [passage[each.read.words[0].start : each.read.words[-1].end] for each in stretches]


def test_a_short_passage_is_read_in_every_run_of_up_to_three_sentences() -> None:
    assert shown("Anna ran. Ben sat. Carl ate. Dora hid.", "Ben sat") == [
        "Anna ran",
        "Anna ran. Ben sat",
        "Anna ran. Ben sat. Carl ate",
        "Ben sat",
        "Ben sat. Carl ate",
        "Ben sat. Carl ate. Dora hid",
        "Carl ate",
        "Carl ate. Dora hid",
        "Dora hid",
    ]


def test_of_a_long_passage_only_what_shares_words_is_read() -> None:
    filler = " ".join(f"Nothing number {number} matters here." for number in range(300))
    passage = f"{filler} The refund takes thirty days. {filler}"
    found = shown(passage, "Refunds take thirty days.")
    assert "The refund takes thirty days" in found
    assert len(found) <= 45


def test_a_passage_without_words_has_no_stretch() -> None:
    assert not shown("...", "Ben sat")
    assert not shown("", "Ben sat")


def test_a_claim_that_shares_nothing_with_a_long_passage_has_no_stretch() -> None:
    assert not shown("Anna ran home. " * 50, "Quarterly zebras")


def test_every_stretch_keeps_its_place_in_the_passage() -> None:
    passage = "  Anna ran.\n\nBen sat in Rome.  "
    for stretch in PassageReader(passage).stretches(sentence("Ben sat")):
        for word in stretch.read.words:
            assert passage[word.start : word.end].lower().startswith(word.form[:2])
