"""Sentences: what ends one and what does not, in many scripts."""

from __future__ import annotations

import pytest

from checkstream.grounding.sentences import sentences


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    "one",
    [
        "Revenue rose 4.2% to $1,234.50 in total.",
        "The decision of 15.03.2023 stands.",
        "See https://example.org/a.b?c=d&e=f!x for it.",
        "Version 2.0.1 replaces 1.9.",
        "Dr. Smith and Prof. Lee met Mr. J. R. Doe.",
        "It works, e.g. with Node.js or ASP.NET, i.e. on servers.",
        "The U.S. Government said so.",
        "See Fig. 3, No. 5 and p. 12 of vol. 2.",
        "Smith et al. (2020) found it.",
        "Am 3. Oktober war z.B. der 2. Platz frei.",
        "Das gilt z. B. für Kinder, d. h. bis 14, u. a. in Wien.",
        "El Sr. García vive aquí.",
        "M. Dupont est là.",
        "Yahoo! has grown.",
        "Wait... what was it",
        'He called it "a mess" (and more) in 2019.',
        "1. First item of a list",
        "Acme Inc. was founded in 1990.",
        "In the period of the last ten years, the programme that I mean was\nextended twice.",
        "[S0] says that it is so.",
    ],
)
def test_one_sentence_stays_whole(one: str) -> None:
    assert cut(one) == [one]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left at 5 p.m. The shop closed.", ["He left at 5 p.m.", "The shop closed."]),
        ("He lives in the U.S. The end.", ["He lives in the U.S.", "The end."]),
        ("Take vitamin C. It helps.", ["Take vitamin C.", "It helps."]),
        ("It was founded in 1990. Later it grew.", ["It was founded in 1990.", "Later it grew."]),
        ("The answer is no. The rest is noise.", ["The answer is no.", "The rest is noise."]),
        ("It is art. Really?! Yes!", ["It is art.", "Really?!", "Yes!"]),
        ('"Really?" she asked. "Yes."', ['"Really?" she asked.', '"Yes."']),
        ("it works fine. it is free.", ["it works fine.", "it is free."]),
        ("It is closed.The next one is not.", ["It is closed.", "The next one is not."]),
        ("The end... And then?", ["The end...", "And then?"]),
        ('הערעור נדחה. הפיצוי הוא 75,000 ש"ח. סוף', ["הערעור נדחה.", 'הפיצוי הוא 75,000 ש"ח.', "סוף"]),
        ("今天天气很好。我们去公园吧！你呢？好", ["今天天气很好。", "我们去公园吧！", "你呢？", "好"]),
        ("यह एक वाक्य है। दूसरा वाक्य।", ["यह एक वाक्य है।", "दूसरा वाक्य।"]),
        ("هل هذا صحيح؟ نعم هذا صحيح.", ["هل هذا صحيح؟", "نعم هذا صحيح."]),
        ("Սա նախադասություն է։ Սա երկրորդն է։", ["Սա նախադասություն է։", "Սա երկրորդն է։"]),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("ይህ ዓረፍተ ነገር ነው። ሌላ።", ["ይህ ዓረፍተ ነገር ነው።", "ሌላ።"]),
    ],
)
def test_terminators_of_all_scripts_end_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Claim. [S0] Next one.", ["Claim. [S0]", "Next one."]),
        ("Claim.[S0] Next one.", ["Claim.[S0]", "Next one."]),
        ("Claim. [S0][S1]. Next one.", ["Claim. [S0][S1].", "Next one."]),
        ("Claim. (Source: 1) Next one.", ["Claim. (Source: 1)", "Next one."]),
        ("Claim one. [S0] says that.", ["Claim one.", "[S0] says that."]),
        ("It rose [Source: Acme Inc. 10-K] then.", ["It rose [Source: Acme Inc. 10-K] then."]),
        ("טענה ראשונה. [S0] טענה שנייה. [S1]", ["טענה ראשונה. [S0]", "טענה שנייה. [S1]"]),
    ],
)
def test_a_citation_behind_the_terminator_belongs_to_the_sentence_before(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_items_headings_and_short_lines_end_sentences() -> None:
    text = "# Title\n\n- First item\n- Second item\n1. One. Two.\n2. Three\nName: Acme\nFounded: 2001\n| a | b |\n"
    assert cut(text) == [
        *("# Title", "- First item", "- Second item", "1. One.", "Two.", "2. Three", "Name: Acme", "Founded: 2001"),
        "| a | b |",
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\u200a \t"])
def test_white_space_has_no_sentence(text: str) -> None:
    assert cut(text) == []


@pytest.mark.parametrize("text", ["...", "?", "[S0] [S1]", "\ud800. \udfff", "\x00.\x00", "." * 1000])
def test_odd_text_is_kept(text: str) -> None:
    assert "".join(cut(text)).replace(" ", "") == text.replace(" ", "")
