from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.match.language import UNDETERMINED, language_of

SENTENCES = {
    "cs": "Myslím, že se to stane, protože to je pro nás důležité a které věci nejsou.",
    "da": "Det er ikke noget, jeg har hørt af dem, og hvad skal de være?",
    "de": "Das Haus ist nicht groß, und die Kinder spielen auch mit dem Hund.",
    "en": "The house is not large, and the children are playing with their dog.",
    "es": "La casa no es grande, pero los niños están con el perro y por eso son felices.",
    "fi": "Talo ei ole suuri, mutta lapset ovat iloisia ja koira on myös siellä.",
    "fr": "La maison n'est pas grande et les enfants sont dans le jardin avec un chien qui joue.",
    "hu": "A ház nem nagy, de a gyerekek és az emberek már csak azt mondják, hogy ez van.",
    "it": "La casa non è grande, ma i bambini sono contenti anche per il cane della vicina.",
    "nl": "Het huis is niet groot, maar de kinderen zijn blij met een hond en dat wordt leuk.",
    "no": "Det er ikke stort, men jeg har hørt av dem at det skal være bra, og hvordan?",
    "pl": "Dom nie jest duży, ale dzieci są szczęśliwe, że pies jest z nimi przez cały dzień.",
    "pt": "A casa não é grande, mas os meninos também estão com o cão e isso é muito bom para você.",
    "ro": "Casa nu este mare, dar copiii sunt fericiți pentru că au un câine și o pisică la ei.",
    "sv": "Huset är inte stort, men barnen är glada och det är för att de har en hund som leker.",
    "tr": "Bu ev çok büyük değil ama çocuklar için ne güzel bir yer, daha ne olarak istesin.",
    "ja": "これは日本語の文章です。漢字もあります。",
    "ko": "이것은 한국어 문장입니다.",
    "zh": "这是一个中文句子。",
    "ru": "Это русское предложение.",
    "uk": "Це українське речення, воно їм подобається.",
    "el": "Αυτή είναι μια πρόταση.",
    "ar": "هذه جملة عربية.",
    "fa": "این یک جمله فارسی است که گربه و پدر دارد.",
    "he": "זהו משפט בעברית.",
    "hi": "यह एक वाक्य है।",
    "th": "นี่คือประโยค",
}


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_a_sentence_is_in_its_language(language: str) -> None:
    assert language_of(SENTENCES[language]) == language
    assert language_of(SENTENCES[language].upper()) == language


@pytest.mark.parametrize("text", ["", "   ", "12345 67890", "x", "Zürich", "qwrt zxcv", "!!! ??? ...", "🐱🐱🐱"])
def test_what_says_nothing_is_undetermined(text: str) -> None:
    assert language_of(text) == UNDETERMINED


def test_a_few_foreign_words_do_not_tell() -> None:
    text = "The word Москва is the name of a city, and that is what it is for you and your friends."
    assert language_of(text) == "en"


@given(st.text(max_size=300))
def test_every_text_has_a_language_or_none(text: str) -> None:
    found = language_of(text)
    assert found == UNDETERMINED or (found.isascii() and len(found) == 2)
    assert found == language_of(text)
