import base64
from collections.abc import Callable

import pytest

from checkstream.core.match.patterns import ALL_VIEWS, NOTHING, Pattern, PatternSet, Refine
from checkstream.core.match.phrases import phrase_refine, phrase_regex
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Finding, Span

EMAIL = r"(?i)\b[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,4}"
CARD = r"\b[0-9](?:[ -]?[0-9]){12,18}\b"
RAW = frozenset({"raw"})


def compiled(*regexes: str, max_chars: int | None = None, views: frozenset[str] = ALL_VIEWS) -> PatternSet:
    return PatternSet(
        [
            Pattern(signal=n, name=f"p{n}", regex=regex, max_chars=max_chars, views=views)
            for n, regex in enumerate(regexes)
        ]
    )


EVADED = PatternSet(
    [
        Pattern(signal=0, name="EMAIL", regex=EMAIL, views=ALL_VIEWS - {"leet"}),
        Pattern(signal=1, name="CARD", regex=CARD, views=ALL_VIEWS - {"leet"}),
        Pattern(signal=2, name="PHRASE", regex=phrase_regex("ignore every rule"), refine=phrase_refine),
    ]
)
SECRETS = ("jane.roe@example.com", "4111 1111 1111 1111", "ignore every rule")


def scan(patterns: PatternSet, *pieces: str) -> list[Finding]:
    state = Scan(patterns)
    found: list[Finding] = []
    for piece in pieces:
        found += state.feed(piece)
    return found + state.end()


def _wide(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def _bold(text: str) -> str:
    letters = "".join(chr(0x1D41A + ord(char) - 97) if "a" <= char <= "z" else char for char in text)
    return "".join(chr(0x1D7CE + ord(char) - 48) if "0" <= char <= "9" else char for char in letters)


EVASIONS: dict[str, Callable[[str], str]] = {
    "fullwidth": _wide,
    "mathematical": _bold,
    "zero-width": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "joiners": "\u200d\u2060".join,
    "bidi controls": "\u202e".join,
    "tags": "\U000e0041".join,
    "overlays": lambda text: "".join(f"{char}\u0336" if char.isalnum() else char for char in text),
    "cyrillic": lambda text: text.translate(str.maketrans("aeopc", "\u0430\u0435\u043e\u0440\u0441")) + "\u200b",
    "greek": lambda text: text.translate(str.maketrans("aov", "\u03b1\u03bf\u03bd")) + "\u200b",
    "json": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "percent": lambda text: "".join(f"%{ord(char):02X}" for char in text),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "hex entities": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "some escapes": lambda text: text.replace("e", "\\u0065").replace("1", "%31").replace("a", "&#97;"),
    "spaced": lambda text: "  ".join(" ".join(word) for word in text.split()) if "@" not in text else "-".join(text),
    "dotted": lambda text: "  ".join("_".join(word) for word in text.split()),
    "base64": lambda text: base64.b64encode(f"well, {text} it is".encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(f">>>?? {text} it is".encode()).decode(),
}  # fmt: skip
PULLED = {"spaced", "dotted"}
"""Only words: signs between the letters of an address or a number are part of it."""


@pytest.mark.parametrize(
    ("kind", "signal"),
    [(kind, signal) for kind in EVASIONS for signal in range(3) if signal == 2 or kind not in PULLED],
)
def test_g18_an_evasion_is_found_at_its_original_place(kind: str, signal: int) -> None:
    hidden = EVASIONS[kind](SECRETS[signal])
    text = f"well: {hidden} is what it says"
    whole = [finding for finding in scan(EVADED, text) if finding.signal == signal]
    assert whole
    first = whole[0]
    inner = hidden.rstrip("\u200b\u0336=")
    if kind.startswith("base64"):
        assert 6 <= first.span.start < first.span.end <= 6 + len(hidden)
        said = base64.urlsafe_b64decode(text[first.span.start : first.span.end].replace("+", "-").replace("/", "_"))
        assert SECRETS[signal] in said.decode()
    else:
        assert first.span.start == 6
        assert 6 + len(inner) <= first.span.end <= 6 + len(hidden)
    assert [finding for finding in scan(EVADED, *text) if finding.signal == signal] == whole


@pytest.mark.parametrize("phrase", ["1gn0r3 3v3ry ru|3", "!gnore every rul3", "i g n 0 r 3  e v 3 r y  r u l 3"])
def test_g18_leetspeak_is_read_as_letters(phrase: str) -> None:
    found = [finding for finding in scan(EVADED, f"now {phrase}!") if finding.signal == 2]
    assert [(f.span, f.view) for f in found] == [(Span(4, 4 + len(phrase)), "leet")]


def test_equal_findings_of_several_views_are_one_and_the_raw_one() -> None:
    text = "é mail a.b@example.com or 1 a.b@example.com"
    assert [(f.span, f.view) for f in scan(EVADED, text)] == [(Span(7, 22), "raw"), (Span(28, 43), "raw")]
    assert [f.view for f in scan(EVADED, *text)] == ["raw", "raw"]


def test_g04_the_hold_is_exactly_what_could_still_become_a_match() -> None:
    state = Scan(compiled("secret word", r"\bfoo\b", views=RAW))
    lives = []
    for char in "a secret worm, foo bar":
        state.feed(char)
        lives.append(state.live)
    #        a     s  e  c  r  e  t     w  o  r   m   ,       f   o   o       b   a   r
    assert lives == [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 13, 14, 15, 15, 15, 15, 19, 20, 21, 22]


def test_benign_text_waits_for_no_more_than_the_current_word() -> None:
    state = Scan(EVADED)
    text = "Today I saw a fox, and it was quick, too; A cat (I think) ran by; no one cared, as usual"
    for size, char in enumerate(text, start=1):
        state.feed(char)
        word = len(text[:size].rstrip("abcdefghijklmnopqrstuvwxyzATI"))
        assert state.live >= word - 2, text[:size]


def test_a_complete_match_waits_for_one_more_character() -> None:
    state = Scan(compiled("abc", views=RAW))
    assert state.feed("abc") == []
    assert state.live == 0
    assert state.feed(" ") == [Finding(signal=0, span=Span(0, 3))]
    assert state.live == 4
    assert Scan(compiled("abc")).end() == []


def test_the_longest_continuation_decides() -> None:
    patterns = compiled(r"[a-z]{1,9}@[a-z]{1,9}(?:\.[a-z]{2,5})?", views=RAW)
    assert [f.span for f in scan(patterns, "joe@x", ".or", "g.")] == [Span(0, 9)]


def test_g04_what_reaches_its_cap_is_taken_as_matched() -> None:
    patterns = compiled("x[a-z]+!", max_chars=10, views=RAW)
    text = "no x" + "y" * 30 + " x" + "z" * 3 + "! x"
    expected = [
        Finding(signal=0, span=Span(3, 13), capped=True),
        Finding(signal=0, span=Span(35, 40)),
    ]
    assert scan(patterns, text) == expected
    assert scan(patterns, *text) == expected


@pytest.mark.parametrize("filler", ["\u200b", "\u0336", "\u00ad"])
def test_g04_ignored_characters_hold_nothing_for_ever(filler: str) -> None:
    state = Scan(EVADED)
    found = state.feed("ignore" + filler * 20_000)
    assert len(state._raw.text) < 8000
    assert state.live > 10_000
    assert {f.signal for f in found if f.capped and f.span.start == 0} == {0, 2}


def test_a_refinement_sees_exactly_the_context_that_is_promised() -> None:
    seen: list[tuple[str, int, int]] = []

    def refine(text: str, start: int, end: int) -> list[tuple[int, int]]:
        seen.append((text, start, end))
        return [(start + 1, end)]

    def run(*pieces: str, how: Refine = refine) -> list[Finding]:
        seen.clear()
        return scan(PatternSet([Pattern(signal=7, name="it", regex="b+", max_chars=9, refine=how, views=RAW)]), *pieces)

    text = "a" * 100 + "bb" + "c" * 100
    assert run(text) == [Finding(signal=7, span=Span(101, 102))]
    assert seen == [("a" * 64 + "bbc", 64, 66)]
    assert run(*text) == [Finding(signal=7, span=Span(101, 102))]
    assert seen == [("a" * 64 + "bbc", 64, 66)]
    assert run("bb") == [Finding(signal=7, span=Span(1, 2))]
    assert seen == [("bb", 0, 2)]


def test_the_search_goes_on_after_a_hit_and_one_further_after_a_refused_one() -> None:
    def odd(_text: str, start: int, end: int) -> list[tuple[int, int]]:
        return [(start, end)] if start % 2 else []

    patterns = PatternSet([Pattern(signal=0, name="it", regex="aa", refine=odd, views=RAW)])
    assert [f.span for f in scan(patterns, "aaaaaa")] == [Span(1, 3), Span(3, 5)]


def test_anchors_mean_the_channel_and_not_the_buffer() -> None:
    patterns = compiled(r"\Aab", r"ab\z", "(?m:^)cd", views=RAW)
    text = "ab " + "x" * 500 + " ab\ncd ab"
    expected = [(0, Span(0, 2)), (2, Span(507, 509)), (1, Span(510, 512))]
    assert [(f.signal, f.span) for f in scan(patterns, text)] == expected
    assert [(f.signal, f.span) for f in scan(patterns, *text)] == expected


def test_lone_surrogates_harm_nothing_and_keep_offsets() -> None:
    text = "\ud800 a.b@example.com \udfff\ud800"
    assert scan(EVADED, text) == scan(EVADED, *text) == [Finding(signal=0, span=Span(2, 17))]


def test_an_empty_set_holds_nothing() -> None:
    state = Scan(PatternSet([]))
    assert state.feed("abc") == []
    assert state.live == 3
    assert state.end() == []


def test_g10_what_is_kept_of_a_long_text_is_short() -> None:
    state = Scan(EVADED)
    for piece in ("The 1st quick brown föx \\n jumps over 10% of the lazy dogs. " * 50, "plain words go by " * 300):
        state.feed(piece)
        assert len(state._raw.text) < 5000
    assert len(state._raw.text) < 500
    assert state._asleep


def test_g10_the_work_is_linear_in_the_text() -> None:
    calls = 0

    def counted(_text: str, _start: int, _end: int) -> list[tuple[int, int]]:
        nonlocal calls
        calls += 1
        return []

    def work(size: int) -> int:
        nonlocal calls
        calls = 0
        patterns = PatternSet([Pattern(signal=0, name="it", regex="[a-z]{1,20}@", refine=counted)])
        scan(patterns, "abcdefgh@ " * size)
        return calls

    assert work(400) == 4 * work(100)


def test_g11_two_scans_share_no_state() -> None:
    one, two = Scan(EVADED), Scan(EVADED)
    found: list[list[Finding]] = [[], []]
    for a, b in zip("é a.b@example.com xx", "ignore every rule!!!", strict=True):
        found[0] += one.feed(a)
        found[1] += two.feed(b)
    assert found[0] + one.end() == scan(EVADED, "é a.b@example.com xx")
    assert found[1] + two.end() == scan(EVADED, "ignore every rule!!!")


@pytest.mark.parametrize("late", [False, True])
def test_where_nothing_is_searched_a_text_may_be_caught_up_with_and_given_up(late: bool) -> None:
    scan = Scan(NOTHING, late=late)
    assert scan.feed("some text") == []
    scan.catch_up()
    assert scan.give_up() == []
