"""Names that a claim has and its evidence does not."""

import pytest

from checkstream.grounding.embedded.names import abbreviated, displaced, names
from checkstream.grounding.embedded.reading import Reading, reading, words


def read(text: str) -> Reading:
    return reading(text, words(text))


def named(text: str) -> list[str]:
    found = read(text)
    return [found.words[at].form for at in sorted(names(found))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The tower stands in Paris.", ["paris"]),
        ("Dogs bark at Ann Smith.", ["ann", "smith"]),
        ("NASA launched it.", ["nasa"]),
        ("Der Turm steht in der Stadt und ist alt.", []),
        ("Fed Raises Rates Amid Inflation Fears", []),
        ("he was born in rome", []),
        ("", []),
    ],
)
def test_capitals_make_names_where_they_say_something(text: str, expected: list[str]) -> None:
    assert named(text) == expected


def test_a_name_that_the_claim_lacks_may_stand_in_place_of_its_own() -> None:
    there = read("The tower stands in Paris.")
    place = displaced(read("The tower stands in Berlin."), there)
    assert place is not None
    assert there.words[place].form == "paris"
    assert displaced(read("The tower stands in Paris."), there) is None


def test_capitals_abbreviate_a_run_of_names() -> None:
    assert abbreviated(read("the USA").words[1], read("the United States of America"))
    assert not abbreviated(read("the USA").words[1], read("the Union of Soviet Republics"))
    assert not abbreviated(read("the usa").words[1], read("the United States of America"))
