"""G04, G09, G18: a text that is told in hex or base64, in whatever layers, is searched as if it stood there plainly."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.inner import MOST_LIVE
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Finding
from checkstream.proxy.specimens import SPECIMENS
from tests.property.match_strategies import pieces
from tests.property.test_respelled import covered, patterns
from tests.property.test_spellings import MAKES
from tests.unit.proxy.test_specimens import BESIDE


def pairs(between: str, head: str = "", *, upper: bool = False, a_line: int = 0) -> Callable[[str], str]:
    def spell(text: str) -> str:
        said = [f"{head}{octet:02X}" if upper else f"{head}{octet:02x}" for octet in text.encode()]
        if not a_line:
            return between.join(said)
        return "\n".join(between.join(said[at : at + a_line]) for at in range(0, len(said), a_line))

    return spell


def wrapped(text: str) -> str:
    return base64.encodebytes(text.encode()).decode().strip()


PAIRS: Mapping[str, Callable[[str], str]] = {
    "hex": pairs(""),
    "hex, capitals": pairs("", upper=True),
    "hex, spaces": pairs(" "),
    "hex, colons": pairs(":", upper=True),
    "hex, a literal of C": pairs(", ", "0x"),
    "hex, lines of sixteen": pairs(" ", a_line=16),
    "hex, lines": pairs("", a_line=20),
}


def codes(between: str, form: str = "{}", around: str = "{}") -> Callable[[str], str]:
    return lambda text: around.format(between.join(form.format(ord(char)) for char in text))


CODES: Mapping[str, Callable[[str], str]] = {
    "codes, Python": codes("+", "chr({})"),
    "codes, Python, hex": codes(" + ", "chr({:#x})"),
    "codes, Python, a template": codes("", "{{chr({})}}", "f'{}'"),
    "codes, Python, line by line": codes("\n", "s += chr({})"),
    "codes, JavaScript, each": codes(" + ", "String.fromCharCode({})"),
    "codes, JavaScript, a template": codes("", "${{String.fromCodePoint({})}}", "`{}`"),
    "codes, PHP": codes(" . ", "chr({})"),
    "codes, Perl, names": codes("", "\\N{{U+{:04X}}}"),
    "codes, SQL, joined": codes("||", "CHR({})"),
    "codes, SQL, hex": codes(" + ", "NCHAR(0x{:02X})"),
    "codes, Excel": codes("&", "CHAR({})", "={}"),
    "codes, Basic": codes(" & ", "Chr$({})"),
    "codes, PowerShell": codes("+", "[char]{}"),
    "codes, C, casts": codes(", ", "(char){}"),
    "codes, C, line by line": codes("\n    ", "putchar({});"),
    "codes, C++": codes(" << ", "char({})", "std::cout << {};"),
    "codes, Java": codes(" + ", "Character.toString({})"),
    "codes, Java, line by line": codes("\n", "sb.append((char) {});"),
    "codes, C#": codes(" + ", "Convert.ToChar({})"),
    "codes, Go": codes(" + ", "string(rune({}))"),
    "codes, bits": codes(" ", "{:08b}"),
    "codes, points": codes(" ", "U+{:04X}"),
}
LAYERS: Mapping[str, Callable[[str], str]] = {
    **PAIRS,
    **CODES,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, wrapped": wrapped,
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "percent": lambda text: "".join(f"%{octet:02X}" for octet in text.encode()),
    "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "zero width": "\u200b".join,
}
OUTER = sorted(set(LAYERS) - {"percent", "html", "zero width"})
"""What a text of its own stands in."""


def found(text: list[str], given: PatternSet) -> list[Finding]:
    scan = Scan(given)
    return [each for piece in text for each in scan.feed(piece)] + scan.end()


@pytest.mark.parametrize("entity", sorted(SPECIMENS))
@settings(max_examples=4, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_g04_g09_g18_a_value_told_in_another_alphabet_is_found_whole(entity: str, data: st.DataObject) -> None:
    before, _, behind = f"the value: {BESIDE.get(entity, '{}').format('|')} that is it".partition("|")
    value = SPECIMENS[entity]
    layers = [data.draw(st.sampled_from(OUTER))]
    if len(value) < 400:
        inner = sorted(set(LAYERS) - {"zero width"} if layers[0] in (*PAIRS, *CODES) else LAYERS)
        layers = data.draw(st.lists(st.sampled_from(inner), max_size=1)) + layers
    said = before + value + behind
    for name in layers:
        said = LAYERS[name](said)
    text = f"Well, {said} ."
    cut = pieces(text, data.draw(st.lists(st.integers(0, 4000), max_size=6)))
    places = covered(cut)
    assert covered([text]) == places
    assert min(places) >= len("Well, ")
    if len(layers) == 1:
        assert_says(text, places, value, layers[0])
    else:
        assert len(places) >= len(value)


def assert_says(text: str, places: set[int], value: str, layer: str) -> None:
    """What has been found, and what is left, say what they should of the value."""
    left = "".join(" " if place in places else char for place, char in enumerate(text))
    spelled = LAYERS[layer](value) if layer in PAIRS and "lines" not in layer else value
    assert spelled not in left
    assert value not in left


@pytest.mark.parametrize("layer", sorted(PAIRS))
def test_g09_pairs_of_hex_are_found_digit_for_digit(layer: str) -> None:
    spell, value = PAIRS[layer], SPECIMENS["EMAIL"]
    text = f"Well: {spell(f'to {value} now')} ."
    (finding,) = found(list(text), patterns())
    digits = [char for char in text[finding.span.start : finding.span.end].replace("0x", "") if char.isalnum()]
    assert bytes.fromhex("".join(digits)).decode() == value
    assert finding.view == "encoded"


@pytest.mark.parametrize("layer", sorted(CODES))
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(sorted(MAKES.keys() - {"key", "phone"})),
    st.integers(0, 1 << 30),
    st.lists(st.integers(0, 999), max_size=6),
)
def test_g04_g09_g18_codes_of_characters_are_found_from_the_first_to_the_last(
    layer: str, what: str, seed: int, cuts: list[int]
) -> None:
    value = MAKES[what](random.Random(seed))
    said = CODES[layer](value)
    text = f"Well: {said} ."
    places = covered(pieces(text, cuts))
    assert places == covered([text])
    first, last = (f"{ord(value[end]):08b}" if "bits" in layer else str(ord(value[end])) for end in (0, -1))
    if "hex" in layer or "points" in layer or "names" in layer:
        first, last = (f"{ord(value[end]):02X}" for end in (0, -1))
    shown = said.upper()
    assert {text.index(said) + shown.index(first) + 1, text.index(said) + shown.rindex(last)} <= places, text


@pytest.mark.parametrize(
    "text",
    [
        "ages: 45, 52, 67, 38, 41, 59, 62, 70, 55, 48, 49, 50 and 51",
        "[112, 97, 83, 35, 120, 99, 101, 46, 77, 65]",
        "versions 52.49, 48.57, 49.50, 51.52, 53.54",
        "01000001 00111111 01110000",
        "print(chr(65))\nfor n in range(65, 91):\n    s += chr(n)\nreturn [chr(97 + n) for n in range(26)]",
        "String.fromCharCode(72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100, 33)",
        "colors: #52495a, #313131, rgb(52, 49, 49), rgb(49, 49, 49), rgba(49, 49, 49, 50)",
        "| Mon | 52 | 49 |\n| Tue | 51 | 48 |\n| Wed | 57 | 53 |\n| Thu | 55 | 50 |\n| Fri | 54 | 56 |",
    ],
)
def test_rows_of_numbers_and_codes_of_ordinary_words_are_left_alone(text: str) -> None:
    assert covered([text]) == set()


CODE_PIECES = (
    "52",
    "49",
    "298",
    "1",
    "9",
    "104 ",
    " ",
    ", ",
    ")+chr(",
    "x",
    "0x34",
    "01100001",
    "46",
    "\n",
    "chr(",
    "U+",
)


@given(
    st.lists(st.sampled_from(CODE_PIECES) | st.integers(30, 130).map(str), max_size=60).map("".join),
    st.lists(st.integers(0, 200), max_size=5),
)
@settings(max_examples=100, deadline=None)
def test_g03_codes_are_read_alike_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    assert covered(pieces(text, cuts)) == covered([text])


@given(
    st.text(st.sampled_from("0123456789abcdefABCDEF :,-x\n"), max_size=200), st.lists(st.integers(0, 200), max_size=5)
)
@settings(max_examples=150, deadline=None)
def test_g03_pairs_are_read_alike_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    words = PatternSet([Pattern(signal=0, name="two", regex="[ -~]{2}"), Pattern(signal=1, name="it", regex="Ugh|fv")])
    whole = found([text], words)
    assert found(pieces(text, cuts), words) == whole
    assert found(list(text), words) == whole


@pytest.mark.parametrize("layer", ["hex", "hex, a literal of C", "base64"])
@pytest.mark.parametrize("step", [1000, 1777, 99_999])
def test_g04_g22_what_stays_open_within_an_encoded_text_is_taken_for_what_it_may_become(layer: str, step: int) -> None:
    """A match that never ends is held for a bounded stretch of the outer text, and then reported up to there."""
    endless = PatternSet([Pattern(signal=0, name="open", regex="BEGIN[a-z ]*END", max_chars=16384)])
    text = LAYERS[layer]("BEGIN " + "never " * 7000)
    scan, most, seen = Scan(endless), 0, list[Finding]()
    for at in range(0, len(text), step):
        seen += scan.feed(text[at : at + step])
        most = max(most, min(at + step, len(text)) - scan.live)
    seen += scan.end()
    assert seen == found([text], endless)
    assert seen[0].capped
    assert seen[0].span.end - seen[0].span.start > MOST_LIVE // 2
    assert most <= MOST_LIVE + 2100


def test_what_is_no_text_is_left_alone() -> None:
    text = "550e8400-e29b-41d4-a716-446655440000 d41d8cd98f00b204e9800998ecf8427e 2024-05-12 10:20:30 ff:ee:dd:cc 41 42"
    assert found([text], patterns()) == []
    assert {each.name for each in ENTITIES.values() if "encoded" not in each.views} == {"HIDDEN_TEXT"}


@pytest.mark.parametrize("lead", [0, 500, 1015, 1023, 1024, 1030, 2100])
@pytest.mark.parametrize("step", [1, 700, 9999])
def test_g04_g18_a_long_text_that_is_turned_round_is_read_in_stretches(lead: int, step: int) -> None:
    value = SPECIMENS["EMAIL"]
    text = f"see \u202e{'. ' * (lead // 2)}{value[::-1]}{' .' * 700}"
    (finding,) = found([text[at : at + step] for at in range(0, len(text), step)], patterns())
    assert text[finding.span.start : finding.span.end][::-1] == value
    assert finding.view == "encoded"
