# ruff: noqa: RUF001 - lookalikes are what is tested
import pytest

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.syntax import MAX_REGEX_CHARS, parse
from checkstream.core.match.tree import render
from checkstream.errors import PatternSyntaxError

REFUSED = [
    (r"a(?=b)", 1, "look-around"),
    (r"(?<!a)b", 0, "look-around"),
    (r"(a)\1", 3, "back-references"),
    (r"\012", 0, "octal"),
    ("(a", 0, "without its"),
    ("a)", 1, "without its"),
    ("[a", 0, "without its"),
    ("[a-", 0, "without its"),
    ("a**", 2, "repetition of a repetition"),
    ("a{2}{3}", 4, "repetition of a repetition"),
    ("*a", 0, "nothing to repeat"),
    ("a|+", 2, "nothing to repeat"),
    ("(?i)*", 0, "nothing to repeat"),
    (r"\b+a", 0, "matches no characters"),
    ("a{1001}", 1, "more than 1000"),
    ("a{3,2}", 1, "more than greatest"),
    ("[z-a]", 1, "backwards"),
    (r"[a-\d]", 1, "both ends"),
    (r"[\W]", 1, "inside a class"),
    (r"[\S]", 1, "inside a class"),
    ("[[:foo:]]", 1, "unknown class"),
    ("[[:^alpha:]]", 1, "negate"),
    (r"\C", 0, "unknown escape"),
    (r"\é", 0, "unknown escape"),
    ("a\\", 1, "backslash"),
    (r"\x4", 0, "hex escape"),
    (r"\x{110000}", 0, "hex escape"),
    (r"\x{d800}", 0, "hex escape"),
    (r"\p{", 0, "Unicode class"),
    ("(?P<1>a)", 0, "group name"),
    ("(?U)a", 0, "unknown group"),
    ("(?>a)", 0, "unknown group"),
    ("(?P=a)", 0, "unknown group"),
    ("(?-)a", 0, "unknown group"),
    ("a\ud800", 1, "surrogate"),
    ("(" * 60 + ")" * 60, 51, "nested"),
    ("a" * (MAX_REGEX_CHARS + 1), MAX_REGEX_CHARS, "longer than"),
]


@pytest.mark.parametrize(("regex", "position", "reason"), REFUSED, ids=[case[0][:12] for case in REFUSED])
def test_what_cannot_be_read_is_refused_with_its_place(regex: str, position: int, reason: str) -> None:
    with pytest.raises(PatternSyntaxError) as refused:
        parse(regex)
    assert refused.value.position == position
    assert reason in refused.value.reason
    *_, shown, caret = str(refused.value).splitlines()
    assert caret.index("^") <= len(shown)


MEANS = [
    (r"a|b", "b", "c"),
    (r"(?P<name>ab)+c", "ababc", "abc "),
    (r"(?<name>ab)c", "abc", "ab"),
    (r"(?i)straße", "STRAßE", "strasse"),
    (r"(?i:a)b", "Ab", "AB"),
    (r"(?i)a(?-i)b", "Ab", "AB"),
    (r"(?i)a(?-i:b)c", "AbC", "ABC"),
    (r"(?s)a.b", "a\nb", "ab"),
    (r"a.b", "axb", "a\nb"),
    (r"(?sm:a.^b)", "a\nb", "a b"),
    (r"\Qa.b\E+", "a.bb", "axb"),
    (r"\Qa*", "a*", "aa"),
    (r"\x41\x{1F600}\t", "A\U0001f600\t", "A"),
    (r"[]a]", "]", "b"),
    (r"[^]a]", "b", "]"),
    (r"[a\]\-^]", "-", "b"),
    (r"[a-]", "-", "b"),
    (r"[[:alpha:]_]", "_", "é"),
    (r"[\d_]", "\u0663", "a"),
    (r"[\w-]", "é", " "),
    (r"[\s,]", "\u00a0", "a"),
    (r"\pL", "é", "1"),
    (r"\p{Greek}", "α", "a"),
    (r"[\P{Greek}]", "a", "α"),
    (r"\D", "a", "\u0663"),
    (r"a{,2}", "a{,2}", "aa"),
    (r"a{2,3}?", "aa", "a"),
    (r"{", "{", "}"),
    (r"a\bb|a\B\.", "a.", "ab "),
    ("a\x00b", "a\x00b", "ab"),
    (r"\.\*\\", ".*\\", "..."),
    (r"\n", "\n", "n"),
    (r"[\b]", "\b", "b"),
    (r"(?:)a()", "a", "b"),
    (r"a\Z", "a", "a\n"),
]


@pytest.mark.parametrize(("regex", "matches", "differs"), MEANS, ids=[case[0] for case in MEANS])
def test_what_is_read_means_what_it_says(regex: str, matches: str, differs: str) -> None:
    compiled = compile_regex(rf"\A(?:{render(parse(regex))})\z")
    if regex != r"a\bb|a\B\.":  # `\B` before a sign never holds after a word character
        assert compiled.search(matches) is not None
    assert compiled.search(differs) is None
