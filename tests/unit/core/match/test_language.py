# ruff: noqa: RUF001 - letters of other scripts are what this is about
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.match.language import LANGUAGES, UNDETERMINED, language_of

PAGE = (Path(__file__).parents[4] / "policies" / "LANGUAGE.md").read_text(encoding="utf-8")
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
TEXTS = {
    "cs": "Ráno jsem šel do obchodu a koupil chleba, mléko a pár jablek. Venku pršelo, takže jsem si vzal "
    "deštník. Když jsem se vrátil domů, uvařil jsem si kávu a dlouho jsem četl knihu, kterou mi loni "
    "půjčila sestra. Večer přišli přátelé a hráli jsme karty.",
    "da": "I morges gik jeg hen i butikken og købte brød, mælk og nogle æbler. Det regnede udenfor, så jeg tog "
    "en paraply med. Da jeg kom hjem igen, lavede jeg kaffe og læste længe i den bog, som min søster "
    "lånte mig sidste år. Om aftenen kom vennerne, og vi spillede kort.",
    "de": "Heute Morgen ging ich in den Laden und kaufte Brot, Milch und ein paar Äpfel. Draußen regnete es, "
    "also nahm ich einen Schirm mit. Als ich wieder zu Hause war, kochte ich Kaffee und las lange in dem "
    "Buch, das mir meine Schwester voriges Jahr geliehen hat.",
    "en": "This morning I walked to the shop and bought bread, milk and a few apples. It was raining outside, "
    "so I took an umbrella with me. When I came home again I made some coffee and read for a long time "
    "in the book that my sister had lent me last year.",
    "es": "Esta mañana fui a la tienda y compré pan, leche y unas manzanas. Llovía en la calle, así que me "
    "llevé un paraguas. Cuando volví a casa preparé café y leí durante mucho tiempo el libro que mi "
    "hermana me prestó el año pasado. Por la noche vinieron los amigos.",
    "et": "Hommikul läksin ma poodi ja ostsin leiba, piima ning mõne õuna. Väljas sadas vihma, seega võtsin "
    "vihmavarju kaasa. Kui ma jälle koju jõudsin, keetsin kohvi ja lugesin kaua raamatut, mille õde "
    "mulle eelmisel aastal laenas. Õhtul tulid sõbrad ja me mängisime kaarte.",
    "fi": "Aamulla kävelin kauppaan ja ostin leipää, maitoa sekä muutaman omenan. Ulkona satoi, joten otin "
    "sateenvarjon mukaan. Kun tulin takaisin kotiin, keitin kahvia ja luin pitkään kirjaa, jonka "
    "sisareni lainasi minulle viime vuonna. Illalla ystävät tulivat käymään.",
    "fr": "Ce matin je suis allé au magasin et j'ai acheté du pain, du lait et quelques pommes. Il pleuvait "
    "dehors, alors j'ai pris un parapluie. Quand je suis rentré à la maison, j'ai fait du café et j'ai "
    "lu longtemps le livre que ma soeur m'avait prêté.",
    "hu": "Ma reggel elmentem a boltba, és vettem kenyeret, tejet meg néhány almát. Odakint esett az eső, "
    "ezért vittem magammal egy esernyőt. Amikor hazaértem, kávét főztem, és sokáig olvastam azt a "
    "könyvet, amelyet a nővérem adott kölcsön tavaly. Este barátok jöttek.",
    "it": "Stamattina sono andato al negozio e ho comprato il pane, il latte e qualche mela. Fuori pioveva, "
    "perciò ho preso un ombrello. Quando sono tornato a casa ho preparato il caffè e ho letto a lungo il "
    "libro che mia sorella mi aveva prestato l'anno scorso.",
    "nl": "Vanmorgen liep ik naar de winkel en kocht brood, melk en een paar appels. Buiten regende het, dus "
    "nam ik een paraplu mee. Toen ik weer thuis was, zette ik koffie en las ik lang in het boek dat mijn "
    "zus mij vorig jaar had geleend. Daarna kwamen er vrienden.",
    "pl": "Dziś rano poszedłem do sklepu i kupiłem chleb, mleko oraz kilka jabłek. Na dworze padał deszcz, "
    "więc wziąłem ze sobą parasol. Kiedy wróciłem do domu, zaparzyłem kawę i długo czytałem książkę, "
    "którą siostra pożyczyła mi w zeszłym roku. Wieczorem przyszli znajomi.",
    "pt": "Hoje de manhã fui à loja e comprei pão, leite e algumas maçãs. Estava a chover lá fora, por isso "
    "levei um guarda-chuva. Quando voltei para casa, fiz café e li durante muito tempo o livro que a "
    "minha irmã me emprestou no ano passado. À noite vieram os amigos.",
    "ro": "Azi dimineață am mers la magazin și am cumpărat pâine, lapte și câteva mere. Afară ploua, așa că am "
    "luat cu mine o umbrelă. Când m-am întors acasă, am făcut cafea și am citit mult timp cartea pe care "
    "mi-a împrumutat-o sora mea anul trecut. Seara au venit prietenii.",
    "ru": "Сегодня утром я пошёл в магазин и купил хлеб, молоко и несколько яблок. На улице шёл дождь, поэтому "
    "я взял с собой зонт. Когда я вернулся домой, я сварил кофе и долго читал книгу, которую сестра "
    "одолжила мне в прошлом году. Вечером пришли друзья.",
    "sv": "I morse gick jag till affären och köpte bröd, mjölk och några äpplen. Det regnade ute, så jag tog "
    "med mig ett paraply. När jag kom hem igen kokade jag kaffe och läste länge i boken som min syster "
    "lånade mig förra året. På kvällen kom vännerna.",
    "tr": "Bu sabah dükkâna gidip ekmek, süt ve birkaç elma aldım. Dışarıda yağmur yağıyordu, bu yüzden yanıma "
    "bir şemsiye aldım. Eve döndüğümde kahve yaptım ve kız kardeşimin geçen yıl bana ödünç verdiği "
    "kitabı uzun süre okudum. Akşam arkadaşlar geldi.",
    "uk": "Сьогодні вранці я пішов до крамниці й купив хліб, молоко та кілька яблук. Надворі йшов дощ, тому я "
    "взяв із собою парасольку. Коли я повернувся додому, я зварив каву й довго читав книжку, яку сестра "
    "позичила мені торік. Увечері прийшли друзі.",
}
"""Written for this test, some 250 characters each; no table was made from them."""


def told(chars: int) -> tuple[float, float]:
    """Return which share of pieces gets an answer, and which share of the answers is right."""
    right = wrong = silent = 0
    for language, text in TEXTS.items():
        starts = [0, *(place + 1 for place, char in enumerate(text) if char == " " and place + chars < len(text))]
        for start in starts:
            found = language_of(text[start : start + chars])
            right += found == language
            silent += found == UNDETERMINED
            wrong += found not in {language, UNDETERMINED}
    return (right + wrong) / (right + wrong + silent), right / (right + wrong)


@pytest.mark.parametrize(
    ("chars", "answered", "right"), [(16, 0.62, 0.78), (32, 0.82, 0.9), (64, 0.92, 0.95), (220, 0.94, 1.0)]
)
def test_the_more_text_the_more_often_it_is_told_and_the_surer(chars: int, answered: float, right: float) -> None:
    share, correct = told(chars)
    assert share >= answered
    assert correct >= right


def test_every_language_that_can_be_told_is_named() -> None:
    assert set(SENTENCES) | set(TEXTS) <= LANGUAGES
    assert all(len(language) == 2 and language.islower() for language in LANGUAGES)
    listed = PAGE.partition("`stream.language` is a guess at one of ")[2].partition(". ")[0]
    assert " ".join(listed.split()) == ", ".join(f"`{language}`" for language in sorted(LANGUAGES))


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_a_sentence_is_in_its_language(language: str) -> None:
    assert language_of(SENTENCES[language]) == language
    assert language_of(SENTENCES[language].upper()) == language


@pytest.mark.parametrize("text", ["", "   ", "12345 67890", "x", "Zürich", "qwrt zxcv", "!!! ??? ...", "🐱🐱🐱"])
def test_what_says_nothing_is_undetermined(text: str) -> None:
    assert language_of(text) == UNDETERMINED


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("یہ اردو کا ایک جملہ ہے اور اس میں بڑے حروف نہیں ہیں۔", "ur"),
        ("漢字だけでなくひらがなも含む文", "ja"),
        ("Διάβασα ένα βιβλίο called The Trial", "el"),
        ("Москва και Αθήνα والقاهرة", "und"),
    ],
)
def test_a_script_or_its_letters_tell(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_few_foreign_words_do_not_tell() -> None:
    text = "The word Москва is the name of a city, and that is what it is for you and your friends."
    assert language_of(text) == "en"


@given(st.text(max_size=300))
def test_every_text_has_a_language_or_none(text: str) -> None:
    found = language_of(text)
    assert found == UNDETERMINED or (found.isascii() and len(found) == 2)
    assert found == language_of(text)
