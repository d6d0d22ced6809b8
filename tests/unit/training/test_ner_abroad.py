# ruff: noqa: RUF001 - letters of other scripts are what this is about
"""Texts of other languages mark what stands in them, and Russian names are declined as people decline them."""

from random import Random

import pytest

from tests.train_packages import TRAIN

pytest.importorskip("faker", reason=TRAIN)

from models.training.ner import abroad, russian
from models.training.ner.generate import filled

LANGUAGES = (*abroad.HOMES, *abroad.UNLEARNT)
SLOTS = ("PERSON", "FIRST", "LAST", "LOC", "ORG", "ADDRESS", "DOB", "CONDITION", "ACCOUNT")


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_stand_where_the_text_has_them(language: str) -> None:
    for text in abroad.documents(language, 60, Random(1), left_out=language in abroad.UNLEARNT):
        at = 0
        for span in text.spans:
            assert at <= span.start < span.end <= len(text.text)
            name = text.text[span.start : span.end]
            assert name == name.strip()
            at = span.end
        assert not any("{" + slot in text.text for slot in SLOTS)


@pytest.mark.parametrize("language", abroad.HOMES)
def test_every_sentence_of_a_bank_has_a_text(language: str) -> None:
    bank = abroad.bank(language)
    cast = abroad.Abroad(language, Random(2))
    for form in (*bank.sentences, *bank.left_out, *bank.nameless):
        text = filled(form, cast, abroad.HOMES[language])
        assert len(text.spans) == sum(form.count("{" + slot) for slot in SLOTS), form
    assert not set(bank.left_out) & set(bank.sentences)
    assert len(bank.places) > 40
    assert len(bank.organizations) > 20


def test_what_is_left_out_is_never_in_what_is_learnt() -> None:
    learnt = " ".join(text.text for text in abroad.documents("de", 300, Random(3)))
    assert "Mein Chef" not in learnt
    assert any("Mein Chef" in text.text for text in abroad.documents("de", 60, Random(3), left_out=True))


def test_texts_repeat_from_their_seed() -> None:
    assert list(abroad.documents("ja", 20, Random(3))) == list(abroad.documents("ja", 20, Random(3)))
    assert list(abroad.documents("ja", 20, Random(3))) != list(abroad.documents("ja", 20, Random(4)))


def test_an_unknown_case_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="asks for case `voc`"):
        abroad.Abroad("ru", Random(1)).entity("PERSON.voc", None)


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("Иван", "Ивана Ивану Ивана Иваном Иване"),
        ("Игорь", "Игоря Игорю Игоря Игорем Игоре"),
        ("Андрей", "Андрея Андрею Андрея Андреем Андрее"),
        ("Юрий", "Юрия Юрию Юрия Юрием Юрии"),
        ("Анна", "Анны Анне Анну Анной Анне"),
        ("Мария", "Марии Марии Марию Марией Марии"),
        ("Ольга", "Ольги Ольге Ольгу Ольгой Ольге"),
        ("Саша", "Саши Саше Сашу Сашей Саше"),
        ("Любовь", "Любови Любови Любовь Любовью Любови"),
        ("Сергеевич", "Сергеевича Сергеевичу Сергеевича Сергеевичем Сергеевиче"),
        ("Мэри", "Мэри Мэри Мэри Мэри Мэри"),
    ],
)
def test_given_names_in_their_cases(name: str, cases: str) -> None:
    assert [russian.given(name, case) for case in russian.CASES] == cases.split()


@pytest.mark.parametrize(
    ("name", "female", "cases"),
    [
        ("Петров", False, "Петрова Петрову Петрова Петровым Петрове"),
        ("Петрова", True, "Петровой Петровой Петрову Петровой Петровой"),
        ("Чайковский", False, "Чайковского Чайковскому Чайковского Чайковским Чайковском"),
        ("Чайковская", True, "Чайковской Чайковской Чайковскую Чайковской Чайковской"),
        ("Толстой", False, "Толстого Толстому Толстого Толстым Толстом"),
        ("Смит", False, "Смита Смиту Смита Смитом Смите"),
        ("Смит", True, "Смит Смит Смит Смит Смит"),
        ("Белых", False, "Белых Белых Белых Белых Белых"),
        ("Шевченко", True, "Шевченко Шевченко Шевченко Шевченко Шевченко"),
    ],
)
def test_family_names_in_their_cases(name: str, female: bool, cases: str) -> None:
    assert [russian.family(name, case, female=female) for case in russian.CASES] == cases.split()


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("Москва", "Москвы|Москве|Москву|Москвой|Москве"),
        ("Лондон", "Лондона|Лондону|Лондон|Лондоном|Лондоне"),
        ("Россия", "России|России|Россию|Россией|России"),
        ("Казань", "Казани|Казани|Казань|Казанью|Казани"),
        ("Сочи", "Сочи|Сочи|Сочи|Сочи|Сочи"),
        ("США", "США|США|США|США|США"),
        ("Нижний Новгород", "Нижнего Новгорода|Нижнему Новгороду|Нижний Новгород|Нижним Новгородом|Нижнем Новгороде"),
        ("Южная Корея", "Южной Кореи|Южной Корее|Южную Корею|Южной Кореей|Южной Корее"),
    ],
)
def test_places_in_their_cases(name: str, cases: str) -> None:
    assert [russian.place(name, case) for case in russian.CASES] == cases.split("|")
