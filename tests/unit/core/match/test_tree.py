import pytest

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion, render, width


@pytest.mark.parametrize(
    ("regex", "least", "greatest"),
    [
        ("abc", 3, 3),
        ("a|bcd", 1, 3),
        ("a?b*", 0, None),
        ("(?:ab){2,3}c?", 4, 7),
        (r"\ba\b", 1, 1),
        ("a{2,}", 2, None),
        ("a|b+", 1, None),
        ("(?:a|)", 0, 1),
    ],
)
def test_width_counts_code_points(regex: str, least: int, greatest: int | None) -> None:
    assert width(parse(regex)) == (least, greatest)


def test_a_companion_is_about_as_large_as_its_pattern() -> None:
    regex = "(?i)" + "".join("abcdefghij" for _ in range(20))
    assert len(companion(parse(regex))) < 8 * len(regex)


def test_nested_repetition_does_not_double_the_companion_at_each_level() -> None:
    regex = "a"
    for _ in range(12):
        regex = f"(?:{regex}b)?c"
    assert len(companion(parse(regex))) < 60 * len(regex)


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("[a-z]{1,64}@", "(?:[a-z]{1,64}@?)?"),
        ("[a-z]{0,64}@", "[a-z]{0,64}@?"),
        ("[a-z]{8,64}@", "(?:[a-z]{0,7}|[a-z]{8,64}@?)"),
        ("[a-z]+@[0-9]{2,8}", "(?:[a-z]+(?:@(?:[0-9]{0,8}))?)?"),
    ],
)
def test_a_long_repetition_is_written_once_in_a_companion(regex: str, expected: str) -> None:
    assert companion(parse(regex)) == expected


@pytest.mark.parametrize(
    ("regex", "text", "start"),
    [
        ("hello", "say hel", 4),
        ("hello", "say hello", 4),
        ("hello", "say help", 8),
        (r"(?i)HELLO\b", "say Hello", 4),
        (r"\bfoo", "xfo", 3),
        (r"a{2,3}b", "xaaa", 1),
        (r"a{2,3}b", "aaaa", 1),
        (r"(?:ab|ac)+d", "zabac", 1),
        ("[a-z]+@[a-z]+", "to joe@", 3),
        ("é+x", "ééé", 0),
    ],
)
def test_a_companion_finds_where_the_text_could_still_become_a_match(regex: str, text: str, start: int) -> None:
    hit = compile_regex(rf"(?:{companion(parse(regex))})\z").search(text)
    assert hit is not None
    assert hit.start() == start


@pytest.mark.parametrize("regex", ["a(?i)b|c", "(?i)a(?-i:b)", "(?:ab|c){2,}?", "[^a]+?"])
def test_canonical_text_reads_as_itself(regex: str) -> None:
    once = render(parse(regex))
    assert render(parse(once)) == once
