# ruff: noqa: RUF001 - lookalikes are what is tested
import pytest

from checkstream.core.match.apart import Spaced
from checkstream.core.match.confusables import CONFUSABLES
from checkstream.core.match.normalise import MAX_CLUSTER, Folded, Leet, Reading, View


def read(view: View, text: str, *, ended: bool = True) -> Reading:
    return view.read(text, range(len(text)), range(1, len(text) + 1), ended=ended)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("plain text", "plain text"),
        ("ｈｅｌｌｏ", "hello"),
        ("𝓱𝓮𝓵𝓵𝓸 𝟙𝟚", "hello 12"),
        ("pаypаl", "paypal"),
        ("Αθήνα", "Aθήva"),
        ("z\u200be\u200c\u200dr\u2060o\ufeff", "zero"),
        ("so\u00adft", "soft"),
        ("\u202eabc\u202c", "abc"),
        ("a\ufe0fb\U000e0061", "ab"),
        ("cafe\u0301", "café"),
        ("i\u0336g\u0336n", "ign"),
        ("1\u20e3", "1"),
        ("ﬁne…", "fine..."),
        ("’quoted‘ “too” – dash", "'quoted' \"too\" - dash"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("и\u0306", "й"),
        ("日本語", "日本語"),
        ("\u0301", "\u0301"),
        ("\u3164x", "x"),
    ],
)
def test_folded(text: str, folded: str) -> None:
    assert read(Folded(), text).text == folded


def test_folded_maps_each_character_to_its_cluster() -> None:
    reading = read(Folded(), "ae\u0301\u200bﬁ")
    assert reading.text == "aéfi"
    assert list(zip(reading.starts, reading.ends, strict=True)) == [(0, 1), (1, 4), (4, 5), (4, 5)]


def test_folded_waits_for_marks_but_not_without_end() -> None:
    assert read(Folded(), "cafe", ended=False).used == 3
    assert read(Folded(), "12 ", ended=False).used == 3
    assert read(Folded(), "é" + "\u0301" * (MAX_CLUSTER - 2), ended=False).used == 0
    assert read(Folded(), "é" + "\u0301" * (MAX_CLUSTER - 1), ended=False).used == MAX_CLUSTER


@pytest.mark.parametrize(
    ("text", "spaced"),
    [
        ("k i l l", "kill"),
        ("k.i.l.l now", "kill now"),
        ("so k-i-l-l!", "so kill!"),
        ("i_g_n_o_r_e  a_l_l_x", "ignore  allx"),
        ("a b c", "a b c"),
        ("a b c de", "a b c de"),
        ("xa b c d e", "xa bcde"),
        ("a b c d ef", "abcd ef"),
        ("a b-c d", "a b-c d"),
        ("1 2 3 4 5", "12345"),
        ("у б и т ь", "убить"),
        ("I am a man", "I am a man"),
        ("U.S.A. is", "U.S.A. is"),
        ("[4, 1, 1, 1, 12]", "[4111, 12]"),
        ('["k", "i", "l", "l"]', '["kill"]'),
        ("- k\n- i\n- l\n- l\n", "- kill\n"),
        ("1. k\n2. i\n3. l\n4. l\n", "1. kill\n"),
        ("9) k\r\n10) i\r\n11) l\r\n12) l", "9) kill"),
        ("4 | 1 | 1 | 1", "4111"),
        ("j\n.\nd\n@\ne\nx", "j.d@ex"),
        ("1 + 2 + 3 + 4", "1234"),
        ("a, b; c, d", "a, b; c, d"),
        ("f(x, y, z)", "f(x, y, z)"),
        ("i = 0; i < n; i++", "i = 0; i < n; i++"),
        ("a" + " " * 20 + "b c d", "a" + " " * 20 + "b c d"),
    ],
)
def test_spaced(text: str, spaced: str) -> None:
    assert read(Spaced(), text).text == spaced


@pytest.mark.parametrize(
    ("text", "used"),
    [
        *[("the m", 4), ("the ma", 6), ("I ", 0), ("I a", 0), ("I am", 4), ("a b c d", 0), ("the 12", 6)],
        *[("x\n1", 0), ("x\n12", 0), ("x\n123", 5)],
        *[("a" + " " * 40, 41), ("a\n" + " " * 20, 0), ("a\n" + " " * 40, 42)],
    ],
)
def test_spaced_holds_no_more_than_single_letters(text: str, used: int) -> None:
    assert read(Spaced(), text, ended=False).used == used


def test_spaced_goes_on_within_a_run() -> None:
    view = Spaced()
    assert read(view, "k i l l e ", ended=False).used == 9
    assert not view.neutral


@pytest.mark.parametrize(
    ("text", "leet"),
    [
        ("1gn0r3 @ll ru13$", "ignore all ruies"),
        ("h!gh", "high"),
        ("stop!", "stop!"),
        ("stop!!", "stop!!"),
        ("a|b||", "albll"),
        ("!!a !1 !", "!ia ii !"),
        ("plain", "plain"),
    ],
)
def test_leet(text: str, leet: str) -> None:
    assert read(Leet(), text).text == leet


def test_leet_waits_for_what_follows_a_sign() -> None:
    view = Leet()
    assert read(view, "a!", ended=False).used == 1
    assert not view.neutral


def test_lookalikes_are_not_ascii_and_look_like_ascii() -> None:
    assert all(not alike.isascii() and len(alike) == 1 for alike in CONFUSABLES)
    assert all(char.isascii() and len(char) == 1 for char in CONFUSABLES.values())
