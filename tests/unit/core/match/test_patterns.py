# ruff: noqa: RUF001 - lookalikes are what is tested
import pytest
import re2

from checkstream.core.match import engine
from checkstream.core.match.engine import compile_regex
from checkstream.core.match.patterns import ALL_VIEWS, MAX_CAP_CHARS, Pattern, PatternSet
from checkstream.core.match.phrases import phrase_refine, phrase_regex
from checkstream.core.match.scan import Scan
from checkstream.errors import PatternError


def make(regex: str, max_chars: int | None = None, views: frozenset[str] = ALL_VIEWS) -> PatternSet:
    return PatternSet([Pattern(signal=1, name="it", regex=regex, max_chars=max_chars, views=views)])


@pytest.mark.parametrize("regex", [r"(?=a)b", r"(a)\1", r"(?<=x)a", "a++", "(?>a)", r"[\W]"])
def test_the_engine_raises_rather_than_fall_back_to_backtracking(regex: str) -> None:
    with pytest.raises(re2.error):
        re2.compile(regex)
    with pytest.raises(PatternError, match="`"):
        compile_regex(regex)


@pytest.mark.parametrize("regex", ["a*", "(?:)", r"\b", "a?|b", "(?:a|)b?"])
def test_a_pattern_that_matches_nothing_at_all_is_refused(regex: str) -> None:
    with pytest.raises(PatternError, match="matches the empty string"):
        make(regex, max_chars=10)


def test_an_unbounded_pattern_needs_a_cap() -> None:
    with pytest.raises(PatternError, match="give it `max_chars`"):
        make("ab+")
    assert make("ab+", max_chars=10).min_cap == 10


@pytest.mark.parametrize("cap", [0, -1, MAX_CAP_CHARS + 1])
def test_a_cap_has_bounds(cap: int) -> None:
    with pytest.raises(PatternError, match=f"`max_chars` is {cap}"):
        make("ab+", max_chars=cap)


def test_a_pattern_bounded_beyond_every_cap_needs_one() -> None:
    with pytest.raises(PatternError, match="may match 100000 characters"):
        make("(?:a{100}b{900}){100}")


def test_the_cap_of_a_bounded_pattern_counts_only_below_its_bound() -> None:
    assert make("a{1,9}", max_chars=20).min_cap is None
    assert make("a{1,9}", max_chars=5).min_cap == 5


def test_an_unknown_view_is_refused_and_a_view_implies_those_it_reads() -> None:
    with pytest.raises(PatternError, match="unknown view `rot13`"):
        make("a", views=frozenset({"rot13"}))
    tables = make("a", views=frozenset({"spaced"})).tables
    assert [name for name, table in tables.items() if table.members] == [
        "raw",
        "unescaped",
        "folded",
        "unmarked",
        "spaced",
    ]


def test_a_fault_names_the_pattern_and_shows_the_place() -> None:
    with pytest.raises(PatternError) as refused:
        make("ab(c")
    assert str(refused.value).splitlines() == [
        "`it`: pattern at character 3: `(` without its `)`; write `\\(` for the character",
        "  ab(c",
        "    ^",
    ]


def test_what_the_engine_alone_refuses_is_a_pattern_error_too() -> None:
    with pytest.raises(PatternError, match="it"):
        make(r"\p{Klingon}")
    with pytest.raises(PatternError, match="it"):
        make("(?:(?:a{100}){100}){2}", max_chars=100)


def test_a_set_too_large_for_one_expression_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [Pattern(signal=n, name=f"p{n}", regex=rf"split{n:03}\pL{{4}}") for n in range(40)]
    monkeypatch.setattr(engine, "_ENGINE_BYTES", 1 << 20)
    compiled = PatternSet(wide)
    table = compiled.tables["raw"]
    assert len(table.members) == 40
    assert len(table.gates) > 1
    found = Scan(compiled).feed("a split000abcd split039abcd b")
    assert [(each.signal, each.span.start) for each in found] == [(0, 2), (39, 15)]


def test_an_empty_set_has_no_members() -> None:
    assert len(PatternSet([])) == 0


@pytest.mark.parametrize(
    ("regex", "matches", "differs"),
    [
        (r"\w", "éß日٣_", "-\u0301 "),
        (r"\d", "0٣", "a½"),
        (r"\s", " \t\n\u00a0\u2003", "a\u200b"),
        (r"(?i)k", "kK\u212a", "x"),
        (r"(?i)ß", "ßẞ", "s"),
        (r"(?i)σ", "σςΣ", "s"),
        (r"é\b", "", "é"),  # `\b` knows ASCII words only
        (r"e\b", "e", ""),
    ],
)
def test_classes_mean_what_the_engine_gives_them_for_text(regex: str, matches: str, differs: str) -> None:
    compiled = compile_regex(regex)
    assert all(compiled.search(char) for char in matches)
    assert not any(compiled.search(char) for char in differs)


def test_a_search_sees_what_stands_before_its_start() -> None:
    assert compile_regex(r"\bb").search("ab", 1) is None
    assert compile_regex("^b").search("ab", 1) is None
    hit = compile_regex("b").search("éb", 1)
    assert hit is not None
    assert (hit.start(), hit.end()) == (1, 2)
    assert compile_regex(r"a\z").search("ab", 0, 1) is not None
    assert compile_regex("a$").search("a\n") is None


def test_a_phrase_matches_any_case_and_spacing() -> None:
    compiled = compile_regex(phrase_regex("can't  lose (ever)"))
    assert compiled.search("you CAN'T\n lose\u00a0(Ever)!") is not None
    assert compiled.search("can't lose" + " " * 9 + "(ever)") is None
    with pytest.raises(PatternError, match="needs a word"):
        phrase_regex(" \t")


@pytest.mark.parametrize("text", ["-zero risk.", "zero risk", "«zero risk»"])
def test_a_phrase_stands_alone(text: str) -> None:
    start = text.index("zero")
    assert phrase_refine(text, start, start + 9) == ((start, start + 9),)


@pytest.mark.parametrize(
    "text", ["nonzero risk", "zero risky", "zero risk\u0301", "zero risk_", "ézero risk", "zero risk日"]
)
def test_a_phrase_within_a_word_is_none(text: str) -> None:
    start = text.index("zero")
    assert phrase_refine(text, start, start + 9) == ()
