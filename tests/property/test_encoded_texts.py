"""G04, G09, G18: a text that is told in hex or base64, in whatever layers, is searched as if it stood there plainly."""

from __future__ import annotations

import base64
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
from tests.chance import examples
from tests.property.match_strategies import pieces
from tests.property.test_respelled import covered, patterns
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
LAYERS: Mapping[str, Callable[[str], str]] = {
    **PAIRS,
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
@settings(max_examples=examples(4), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_g04_g09_g18_a_value_told_in_another_alphabet_is_found_whole(entity: str, data: st.DataObject) -> None:
    before, _, behind = f"the value: {BESIDE.get(entity, '{}').format('|')} that is it".partition("|")
    value = SPECIMENS[entity]
    layers = [data.draw(st.sampled_from(OUTER))]
    if len(value) < 400:
        inner = sorted(set(LAYERS) - {"zero width"} if layers[0] in PAIRS else LAYERS)
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


@given(
    st.text(st.sampled_from("0123456789abcdefABCDEF :,-x\n"), max_size=200), st.lists(st.integers(0, 200), max_size=5)
)
@settings(max_examples=examples(150), deadline=None)
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
