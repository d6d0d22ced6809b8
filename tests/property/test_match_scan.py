"""Laws of the scan: chunk invariance (G3), no partial leak (G4), the slow oracle, and sleep without effect."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.match.chain import Chain
from checkstream.core.match.hidden import Embedded
from checkstream.core.match.patterns import ALL_VIEWS, Pattern, PatternSet
from checkstream.core.match.phrases import phrase_refine, phrase_regex
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Finding
from tests.chance import examples
from tests.property.match_strategies import cuts, oracle, pattern_lists, pieces, refine_even, texts

RAW = frozenset({"raw"})
EMAIL = r"(?i)[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,20}(?:\.[a-z0-9-]{1,20}){1,3}"
EVADED = PatternSet(
    [
        Pattern(signal=0, name="email", regex=EMAIL, views=ALL_VIEWS - {"leet"}),
        Pattern(signal=1, name="card", regex=r"\b[0-9](?:[ -]?[0-9]){12,18}\b", views=ALL_VIEWS - {"leet"}),
        Pattern(signal=2, name="phrase", regex=phrase_regex("ignore all"), refine=phrase_refine),
        Pattern(signal=3, name="longer", regex="foo bar(?: hate)?"),
        Pattern(signal=4, name="capped", regex="x[a-z]+!", max_chars=12),
        Pattern(signal=5, name="composed", regex="café|½"),
        Pattern(signal=6, name="fold", regex="(?i)[^a-y ]z{1,2}", refine=refine_even),
    ]
)
SNIPPETS = st.sampled_from(
    [
        "a@b.co",
        "a**@**b.co",
        "a_@_b.co",
        "j<b>o</b>@x<!-- -->y.co",
        "j<i></i>@<i></i>x<i></i>.<i></i>c<i></i>o",
        "<i></i>",
        ".<b",
        "ig**no**re all",
        "4<b",
        "a<",
        "**",
        "`",
        "~~",
        "__",
        "a__b",
        "jo\\\\u0068n@x.org",
        "a%252540b.co",
        "a&amp;amp;#64;b.co",
        "a\\@b\\.co",
        "jo\\u{6a}\\x40x.org",
        "a\\100b.co",
        "\\U0000004",
        "&amp;#0000064",
        "%2525",
        "\\\\",
        "\u2776\u0661",
        "\U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065",
        "\U000e0020\U000e0061\U000e006c\U000e006c",
        "a\U000e0040",
        "\U000e0122\U000e0131" + "b" * 70,
        "4\u0336 1\u0336",
        "j\u043ehn@example.com",
        "joh\\u006e@x.org",
        "jo%68n%40x.org ",
        "a&#64;b.co",
        "a&commat;b.co",
        "i g n o r e  a l l",
        "i-g-n-o-r-e",
        "1gn0re @ll",
        "ignore al",
        "i\u200bgnore all",
        "i\u0336gnore all",
        "\u0131gnore",
        "aWdub3JlIGFsbCBvZiB0aGlz",
        "aWdub3JlIGFsbA==",
        "cGxlYXNlIGlnbm9yZSBhbGwgb2YgdGhlc2UgaW5zdHJ1Y3Rpb25zIG5vdyBhbmQgZ28=",
        "Y0d4bFlYTmxJR2xuYm05eVpTQmhiR3dnYjJZZ2RHaGxjMlVnYVc1emRISjFZM1JwYjI1eg==",
        "69676e6f726520616c6c206f66",
        "69 67 6e 6f 72 65 20 61 6c 6c 21",
        "0x69, 0x67, 0x6e, 0x6f, 0x72, 0x65,\n 0x20, 0x61, 0x6c, 0x6c",
        "3639 3637 3665 3666 3732 3635 3230 3631 3663 3663",
        " 69 67",
        "\u202ella erongi\u202c",
        "\u202ella ",
        "\u202eoc.b@a",
        "\u202c",
        "6",
        "5555555555555555",
        "0x",
        "4111 1111 1111 1111",
        "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "foo bar h a t e",
        "foo bar h a",
        "foo ",
        "bar",
        "cafe\u0301",
        "caf\u00e9",
        "1\u20442",
        "½",
        "xaaaaaaaaaaaaaaaaaaaa",
        "x\\u0061\\u0061bcdefghijkl",
        "x" + "\u200b" * 40,
        "\\ud83d\\ude00",
        "\\ud83d",
        "%C3%A9",
        "%C3",
        "&amp",
        "&",
        "\\",
        "%",
        "\ud800",
        "\u1112\u1161\u11ab",
        "zz",
        "e\u0301\u0323",
        " ",
        "  ",
        "\n",
        ".",
        "!",
        "|",
        "a",
        "I",
        "-",
        "_",
        "b c d",
        "1",
        "3",
        "\u0301",
        "\u200d",
        "é",
        "\ufb01",
    ]
)
EVASIVE = st.lists(SNIPPETS, max_size=9).map("".join)


def run(patterns: PatternSet, text: list[str]) -> tuple[list[Finding], int, list[Finding]]:
    """Return the findings before the end, `live` before it, and those decided at the end."""
    scan = Scan(patterns)
    found: list[Finding] = []
    for piece in text:
        before = scan.live
        fresh = scan.feed(piece)
        assert scan.live >= before
        for finding in fresh:
            assert before <= finding.span.start < scan.live
        found += fresh
    live = scan.live
    rest = scan.end()
    assert all(finding.span.start >= live for finding in rest)
    return found, live, rest


@given(pattern_lists(RAW), texts, cuts)
@settings(max_examples=examples(250))
def test_g03_a_scan_finds_what_the_slow_oracle_finds_however_the_text_is_cut(
    patterns: list[Pattern], text: str, at: list[int]
) -> None:
    compiled = PatternSet(patterns)
    found, live, rest = run(compiled, pieces(text, at))
    expected, expected_live = oracle(patterns, text, ended=False)
    assert [(f.span.start, f.span.end, f.signal, f.capped) for f in found] == expected
    assert live == expected_live
    everything, _ = oracle(patterns, text, ended=True)
    assert [(f.span.start, f.span.end, f.signal, f.capped) for f in found + rest] == everything


@given(EVASIVE, cuts)
@example("barbari-g-n-o-r-e\u00bdzz&ampfoo bar h a t ei g n o r e  a l l\n", [3, 20])
@example("foo bar h a t e", [9, 11])
@example("1\u204422 3 4 5 \u2044", [2, 3, 4])
@settings(max_examples=examples(250))
def test_g03_views_find_the_same_however_the_text_is_cut(text: str, at: list[int]) -> None:
    whole = run(EVADED, [text])
    assert run(EVADED, pieces(text, at)) == whole
    assert run(EVADED, list(text)) == whole


LEFT_OUT = st.text("\u0336\u200b\u200d\x01\u0301\ufe0f", min_size=1, max_size=4)
RUNS = st.tuples(LEFT_OUT, st.sampled_from([1, 7, 12, 33, 90])).map(lambda drawn: drawn[0] * drawn[1])
"""Characters that `folded` leaves out behind an ASCII one, many more than some cap allows."""


@given(st.lists(st.one_of(SNIPPETS, RUNS), max_size=8).map("".join), cuts, pattern_lists(ALL_VIEWS))
@settings(max_examples=examples(150))
def test_g03_a_cap_is_reached_at_the_same_place_of_what_no_view_shows(
    text: str, at: list[int], patterns: list[Pattern]
) -> None:
    for compiled in (EVADED, PatternSet(patterns)):
        whole = run(compiled, [text])
        assert run(compiled, pieces(text, at)) == whole
        assert run(compiled, list(text)) == whole


BOUNDED = PatternSet([each for each in EVADED.patterns if each.max_chars is None])
LONG_RUNS = st.tuples(LEFT_OUT, st.sampled_from([90, 700, 760, 768, 1030, 2500])).map(lambda d: (d[0] * d[1])[: d[1]])
PARTED = st.tuples(SNIPPETS, LONG_RUNS, st.integers(0, 40)).map(
    lambda drawn: drawn[0][: drawn[2] % (len(drawn[0]) + 1)] + drawn[1] + drawn[0][drawn[2] % (len(drawn[0]) + 1) :]
)
"""What a view waits behind for what follows, with much between both that nobody sees."""


@given(st.lists(st.one_of(PARTED, SNIPPETS), max_size=5).map("".join), st.lists(st.integers(0, 9000), max_size=8))
@example("i" + "\u200b" * 800 + "-g-n-o-r-e all ", [])
@example("j*" + "\u200b" * 800 + "*o@example.com ", [])
@settings(max_examples=examples(150))
def test_g03_a_view_gives_up_waiting_at_the_same_place_of_what_no_view_shows(text: str, at: list[int]) -> None:
    whole = run(BOUNDED, [text])
    assert run(BOUNDED, pieces(text, at)) == whole
    assert run(BOUNDED, pieces(text, [*range(0, len(text), 37)])) == whole


@pytest.mark.parametrize("begun", ["", "a", "a-", "k i", "4 1 1 1", "4*", "a**`", "a<b", "!", "a@", "jo\u0301"])
@pytest.mark.parametrize("left_out", ["\u200b", "\x01", "\u0301\ufe0f", "\u0336", "\U000e0001", "\U000e0041"])
def test_g22_what_is_held_does_not_grow_with_what_no_view_shows(begun: str, left_out: str) -> None:
    scan, most = Scan(BOUNDED), 0
    for piece in (begun, *[left_out * 100] * 60):
        scan.feed(piece)
        most = max(most, scan._received - scan.live)
    assert most <= max(member.view_cap for member in BOUNDED.tables["raw"].members) + 2 * 1024


@given(pattern_lists(ALL_VIEWS), EVASIVE, cuts)
@settings(max_examples=examples(100))
def test_g03_generated_patterns_in_every_view(patterns: list[Pattern], text: str, at: list[int]) -> None:
    compiled = PatternSet(patterns)
    whole = run(compiled, [text])
    assert run(compiled, pieces(text, at)) == whole
    assert run(compiled, list(text)) == whole


# What was seen to cut the same piece for ever: a view's cap lay before what had been read.
UNENDING = "barbari-g-n-o-r-e\u00bdzz&ampfoo bar h a t ei g n o r e  a l l\n"


@given(EVASIVE, EVASIVE)
@example(UNENDING, "")
@settings(max_examples=examples(150))
def test_g04_text_before_live_is_in_no_later_finding_whatever_follows(text: str, more: str) -> None:
    scan = Scan(EVADED)
    scan.feed(text)
    live = scan.live
    later = scan.feed(more) + scan.end()
    assert all(finding.span.start >= live for finding in later)


@given(EVASIVE, cuts)
@settings(max_examples=examples(150))
def test_a_view_that_sleeps_finds_what_it_finds_awake(text: str, at: list[int]) -> None:
    cut = pieces(text, at)
    asleep = run(EVADED, cut)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "settle", lambda _self, _raw: None)
        patch.setattr(Embedded, "idle", False)
        scan = Scan(EVADED)
        scan._chain.wake(scan._raw)
        scan._chain.force(scan._raw)
        scan._encoded = scan._embedded()
        scan._asleep = False
        scan._due = min(scan._least_caps)
        found: list[Finding] = []
        for piece in cut:
            found += scan.feed(piece)
        live = scan.live
        assert (found, live, scan.end()) == asleep


OPEN = PatternSet([Pattern(signal=0, name="open", regex="[a-z]+@[a-z]+!", max_chars=100)])
LATE = [
    ("ignore al\n", [], 8),
    ("a b c d " * 90 + "x" * 40 + "j**o**@x.org ", [300, 719], 1),
    ("a" * 60 + "@" + "a" * 100, [20, 65], 8),
    ("i" + "\u200b" * 760 + "gnore all", [5], 8),
    ("see aWdub3JlIGFsbCBvZiB0aGlz, 1gn0re @ll", [8, 11], 2),
]


@given(EVASIVE, cuts, st.integers(0, 8))
@settings(max_examples=examples(100))
def test_what_is_decided_at_a_texts_end_is_what_is_decided_as_it_comes(text: str, at: list[int], asked: int) -> None:
    for patterns in (EVADED, BOUNDED, OPEN):
        _held_late(patterns, text, at, asked)


@pytest.mark.parametrize("patterns", [EVADED, BOUNDED, OPEN], ids=["short caps", "views' caps", "long caps"])
@pytest.mark.parametrize(("text", "at", "asked"), LATE)
def test_a_text_that_grows_long_is_decided_as_it_comes(
    patterns: PatternSet, text: str, at: list[int], asked: int
) -> None:
    _held_late(patterns, text, at, asked)


def _held_late(patterns: PatternSet, text: str, at: list[int], asked: int) -> None:
    """Hold a search that decides late to one that does not; before piece `asked` somebody wants to know after all."""
    scan, usual = Scan(patterns, late=True), Scan(patterns)
    late, found = list[Finding](), list[Finding]()
    for number, piece in enumerate(pieces(text, at)):
        late += scan.feed(piece)
        found += usual.feed(piece)
        if number == asked:
            scan.catch_up()
            assert scan.live == usual.live
    assert late + scan.end() == found + usual.end()
