"""G4, G9 and G18: any value of an entity, respelled in any composition of ways, is found whole at its own place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.hidden import legible
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.proxy.specimens import SPECIMENS
from tests.chance import examples
from tests.property.match_strategies import pieces
from tests.unit.proxy.test_specimens import BESIDE

Respell = Callable[[str, st.DataObject], str]
SCRIPTS = (0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10, 0x1D7CE, 0x1D7F6)
HIDDEN = "\u200b\u200c\u200d\u2060\u00ad\ufeff\ufe0f\u034f\u061c\u200e\u202a\u2066\u3164"
MARKS = ("**", "*", "`", "~~", "__", "***", "<b>", "</b>", "<span class='x'>", "<!-- -->", "**`", "<i></i>")


MOST_CHARS = 1000
"""A view's cap: what is stretched beyond is taken for a match up to there (G4), and not longer."""


def whole(each: Callable[[str], str]) -> Respell:
    return lambda text, _: "".join(map(each, text))


def digits(text: str, data: st.DataObject) -> list[str]:
    zero = data.draw(st.sampled_from(SCRIPTS))
    return [chr(zero + int(char)) if "0" <= char <= "9" else char for char in text]


def enclosed(text: str, data: st.DataObject) -> list[str]:
    one = data.draw(st.sampled_from((0x2460, 0x2474, 0x2488, 0x24F5, 0x2776, 0x2780, 0x278A)))
    return [chr(one + int(char) - 1) if "1" <= char <= "9" else char for char in text]


def fullwidth(text: str, _: st.DataObject) -> list[str]:
    return [chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text]


SIGNS: Mapping[str, Callable[[str, st.DataObject], list[str]]] = {
    "as it is": lambda text, _: list(text),
    "digits of another script": digits,
    "enclosed digits": enclosed,
    "fullwidth": fullwidth,
}


def respelled(value: str, data: st.DataObject) -> str:
    """Respell a value character by character, with what shows nothing, strikes through, or sets it in another face."""
    signs = SIGNS[data.draw(st.sampled_from(sorted(SIGNS)))](value, data)
    if data.draw(st.booleans()):
        hidden = data.draw(st.text(st.sampled_from(HIDDEN), min_size=1, max_size=2))
        every = data.draw(st.integers(1, 4))
        signs[:-1] = [sign + hidden * (place % every == 0) for place, sign in enumerate(signs[:-1])]
    if data.draw(st.booleans()):
        stroke = data.draw(st.sampled_from("\u0335\u0336\u0337\u20e3\u20dd"))
        signs[:-1] = [sign + stroke for sign in signs[:-1]]
    if data.draw(st.booleans()):
        inside = [
            at for at in range(1, len(value)) if value[at - 1 : at + 1].isalnum() or "@" in value[at - 1 : at + 1]
        ]
        for place in data.draw(st.sets(st.sampled_from(inside or [0]), max_size=4)) - {0}:
            signs[place - 1] += data.draw(st.sampled_from(MARKS))
    return "".join(signs)


OUTSIDE: Mapping[str, Respell] = {
    "markdown": whole(
        lambda char: (
            f"\\{char}" if char.isascii() and char.isprintable() and not char.isalnum() and char != " " else char
        )
    ),
    "json": whole(lambda char: "".join(f"\\u{unit:04x}" for unit in _units(char))),
    "json twice": whole(lambda char: "".join(f"\\\\u{unit:04X}" for unit in _units(char))),
    "braces": whole(lambda char: f"\\u{{{ord(char):x}}}"),
    "long": whole(lambda char: f"\\U{ord(char):08x}"),
    "octal": whole(lambda char: f"\\{ord(char):03o}" if char.isascii() else char),
    "percent": whole(lambda char: "".join(f"%{octet:02X}" for octet in char.encode())),
    "percent twice": whole(lambda char: "".join(f"%25{octet:02x}" for octet in char.encode())),
    "html": whole(lambda char: f"&#{ord(char)};"),
    "html twice": whole(lambda char: f"&amp;#x{ord(char):x};"),
    "html with zeros": whole(lambda char: f"&#{ord(char):012d};"),
}


def _units(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


@cache
def patterns() -> PatternSet:
    return PatternSet(
        [
            Pattern(
                signal=number,
                name=each.name,
                regex=each.regex,
                max_chars=each.max_chars,
                refine=each.refine,
                views=each.views,
            )
            for number, each in enumerate(ENTITIES.values())
            if each.group is not None
        ]
    )


def covered(text: list[str]) -> set[int]:
    """Return the places of a text, given in pieces, that are found."""
    scan = Scan(patterns())
    found = [finding for piece in text for finding in scan.feed(piece)] + scan.end()
    return {place for finding in found for place in range(finding.span.start, finding.span.end)}


@pytest.mark.parametrize("entity", sorted(SPECIMENS))
@settings(max_examples=examples(10), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_g04_g09_g18_a_value_respelled_in_any_ways_is_found_whole(entity: str, data: st.DataObject) -> None:
    value = SPECIMENS[entity]
    said = respelled(value, data)
    for name in data.draw(st.lists(st.sampled_from(sorted(OUTSIDE)), max_size=1)):
        said = OUTSIDE[name](said, data)
    assume(len(said) <= MOST_CHARS or len(said) <= 2 * len(value))
    before, _, behind = f"Well, {BESIDE.get(entity, '{}').format('|')} it is.".partition("|")
    text = before + said + behind
    cut = pieces(text, data.draw(st.lists(st.integers(0, 4000), max_size=6)))
    places = covered(cut)
    assert covered([text]) == places
    missing = set(range(len(before), len(before) + len(said))) - places
    assert not missing, (value, text, "".join(text[place] for place in sorted(missing)))
    assert min(places) >= len(before) - 1


def spelled_by_tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(char)) if " " <= char <= "~" else char for char in text)


def spelled_by_selectors(text: str) -> str:
    return "".join(chr(0xE0100 + ord(char) - 16) if " " <= char <= "~" else char for char in text)


@pytest.mark.parametrize("entity", sorted(SPECIMENS))
@settings(max_examples=examples(4), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_g04_g09_g18_a_value_out_of_sight_is_found_whole(entity: str, data: st.DataObject) -> None:
    spell = data.draw(st.sampled_from((spelled_by_tags, spelled_by_selectors)))
    before, _, behind = BESIDE.get(entity, "{}").format("|").partition("|")
    value = spell(SPECIMENS[entity].replace("\n", " "))
    shown = data.draw(st.sampled_from(("", "x", "Hello, ", "7")))
    said = [spell(before), shown.join(value), spell(behind)]
    text = f"What is this?{''.join(said)} It is fine."
    start = len("What is this?") + len(said[0])
    places = covered(pieces(text, data.draw(st.lists(st.integers(0, 4000), max_size=6))))
    assert covered([text]) == places
    assert places >= set(range(start, start + len(said[1])))


@given(
    st.text(st.sampled_from("What is the weather?1\u00e9\u2019"), max_size=60),
    st.text(st.characters(codec="ascii", categories=("L", "N", "P")), max_size=60),
)
def test_classifiers_read_what_is_out_of_sight_each_character_in_its_place(shown: str, hidden: str) -> None:
    assert legible(shown + spelled_by_tags(hidden)) == shown + hidden
    assert legible(shown) == shown
