import pytest

from checkstream.core.match.escapes import Unescaped
from checkstream.core.match.normalise import Reading


def read(text: str, *, ended: bool = True) -> Reading:
    return Unescaped().read(text, range(len(text)), range(1, len(text) + 1), ended=ended)


@pytest.mark.parametrize(
    ("text", "unescaped"),
    [
        (r"joh\u006e\u0040x", "john@x"),
        (r"\x6a\x4", "j\\x4"),
        (r"\ud83d\ude00!", "\U0001f600!"),
        (r"\ud83dx\ude00", "\ufffdx\ufffd"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"a\nb\"c\/d\\e", 'a\nb"c/d\\e'),
        (r"\q \u00g0", r"\q \u00g0"),
        ("100% sure", "100% sure"),
        ("a%40b%2Ec", "a@b.c"),
        ("%c3%a9%C3x%ff", "é%C3x%ff"),
        ("%ED%A0%80 %E0%80%80", "%ED%A0%80 %E0%80%80"),
        ("%F0%9F%98%80", "\U0001f600"),
        ("a&#64;b&#x2e;c&commat;d&amp;", "a@b.c@d&"),
        ("&#64 b&#99999999999;", "@ b&#99999999999;"),
        ("AT&T &bogus; &", "AT&T &bogus; &"),
        ("&#xD800;&#;&#x;", "&#xD800;&#;&#x;"),
        ("\\", "\\"),
        (r"a\\u0040b\\\\n\\x2e", "a@b\n."),
        (r"a\u{40}b\x{2e}c\U00000040d\u{110000}", r"a@b.c@d\u{110000}"),
        (r"a\100b\56 \4 \9", "a@b56 4 9"),
        (r"john\.doe\@x\_y\-z", "john.doe@x_y-z"),
        ("a%2540b%25252Ec 5%25", "a@b.c 5%"),
        ("%25C3%25A9%25", "é%"),
        ("a&amp;#64;b&amp;amp;period;c&#000000000064;d&amp;x", "a@b.c@d&x"),
        ("one\\\ntwo", "onetwo"),
    ],
)
def test_unescaped(text: str, unescaped: str) -> None:
    assert read(text).text == unescaped


def test_an_escape_is_one_character_with_the_span_of_all_of_it() -> None:
    reading = read(r"a\u0040%62&lt;")
    assert reading.text == "a@b<"
    assert list(zip(reading.starts, reading.ends, strict=True)) == [(0, 1), (1, 7), (7, 10), (10, 14)]


@pytest.mark.parametrize(
    "text", ["\\", r"\u00", r"\ud83d", r"\ud83d\u", "%", "%4", "%c3%", "%f0%9f%98", "&", "&#", "&#x4", "&am"]
)
def test_an_escape_that_is_not_complete_is_left_unread(text: str) -> None:
    assert read(f"ab{text}", ended=False).used == 2
