import pytest

from checkstream.core.match.markup import Unmarked, marks_from
from checkstream.core.match.normalise import Reading


def read(text: str, *, ended: bool = True, before: str = "") -> Reading:
    return Unmarked(before).read(text, range(len(text)), range(1, len(text) + 1), ended=ended)


@pytest.mark.parametrize(
    ("text", "unmarked"),
    [
        ("john**@**example**.**com", "john@example.com"),
        ("4<b>1</b>1<!-- -->1", "4111"),
        ("a<b></b>@<b></b>b<b></b>.<b></b>c<b></b>o", "a@b.co"),
        ("a_@_b.io", "a@b.io"),
        ("**bold** and `code`, ~~struck~~.", "**bold** and `code`, ~~struck~~."),
        ("- **Item one**: done. **Two**.", "- **Item one**: done. **Two**."),
        ("snake_case, self._x and foo_", "snake_case, self._x and foo_"),
        ("if a<b and c: List<String>", "if a<b and c: List<String>"),
        ("<p>4111</p><p>1111</p>", "<p>4111</p><p>1111</p>"),
        ("4<span class='x'>1</span>1", "411"),
        ("it is <b>4111</b> 1111 <!-- -->and<i> <u> so", "it is 4111 1111 and  so"),
        ("*<b>4111</b>*", "*4111*"),
        ("a*********b", "ab"),
        ("a" + "*" * 40 + "b", "a" + "*" * 40 + "b"),
    ],
)
def test_marks_inside_words_are_left_out_and_others_stay(text: str, unmarked: str) -> None:
    assert read(text).text == unmarked


@pytest.mark.parametrize(
    "tail",
    [
        "*",
        "**`",
        "<",
        "<b",
        "<span class='",
        "<!-",
        "<!-- x",
        "**.",
        "**.*",
        "_",
        "<b></b>.",
        "<b></b>.<b",
        "</b>.</b>",
    ],
)
def test_marks_are_left_unread_while_it_is_not_known_what_follows(tail: str) -> None:
    assert read(f"ab{tail}", ended=False).used == 2 == marks_from(f"ab{tail}", 2 + len(tail))
    assert read(tail, ended=False, before="b").used == 0


@pytest.mark.parametrize("tail", ["", " *", "* ", "< b", "<p1", " <p", " <div", "**. "])
def test_nothing_is_left_unread_that_no_word_goes_on_behind(tail: str) -> None:
    assert read(f"ab{tail}", ended=False).used == 2 + len(tail) == marks_from(f"ab{tail}", 2 + len(tail))


@pytest.mark.parametrize("tail", ["<", "<b", "</spa", "<!--", "<font size='2"])
def test_a_tag_is_left_unread_wherever_it_begins(tail: str) -> None:
    assert read(f"ab. {tail}", ended=False).used == 4 == marks_from(f"ab. {tail}", 4 + len(tail))
