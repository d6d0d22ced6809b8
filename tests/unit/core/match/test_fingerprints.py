"""Files of fingerprints: what they tell, and that nothing of a hostile one is believed."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from checkstream.core.match.fingerprints import BITS_A_WORD, RUN, Fingerprints, run_hash
from checkstream.core.match.plain_words import numbers_of
from checkstream.core.match.winnowing import Winnowing, _hashes, _unbroken
from checkstream.errors import FingerprintsInvalid
from tests.fingerprinted import BOOKS, resealed

WORDS = [f"word{number}" for number in range(3000)]


def text_of(size: int, seed: int = 1) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(size))


def file_of(*texts: str, least: int = 12) -> bytes:
    made = Winnowing(least)
    for text in texts:
        made.take(text)
    return made.file()


def whole(text: str) -> list[int]:
    return [number for number in numbers_of(text) if number is not None]


FILE = file_of(text_of(400))


def changed(at: int, form: str, value: int) -> bytes:
    data = bytearray(FILE)
    struct.pack_into(form, data, at, value)
    return resealed(bytes(data))


def test_a_file_says_what_it_was_made_of() -> None:
    known = Fingerprints(FILE)
    assert (known.least, known.run, known.texts, known.words) == (12, RUN, 1, 400)
    assert known.gram + known.window - 1 == 12
    assert len(known.digest) == 64
    assert Fingerprints(memoryview(FILE)).digest == known.digest


def test_the_bytes_of_the_format_stay_what_they_are() -> None:
    kept = Path(__file__).parents[3] / "fuzz" / "corpus" / "fingerprints" / "keeper.fp"
    assert kept.read_bytes() == BOOKS


def test_the_same_texts_in_any_order_make_the_same_bytes() -> None:
    one, two = text_of(300, 1), text_of(500, 2)
    assert file_of(one, two) == file_of(two, one)
    assert file_of(one, two) != file_of(one)


def test_every_run_of_the_texts_is_known_and_few_others_are() -> None:
    known = Fingerprints(file_of(text_of(5000)))
    numbers = whole(text_of(5000))
    assert all(known.has_run(numbers[at : at + size]) for size in range(1, RUN + 1) for at in range(5000 - RUN))
    others = whole(text_of(5004, 9))
    wrong = sum(known.has_run(others[at : at + RUN]) for at in range(5000))
    assert wrong / 5000 < 0.05
    assert len(FILE) < 80 + 400 * (BITS_A_WORD / 8 + 4)


def test_hashes_are_the_same_in_bulk_and_one_by_one() -> None:
    numbers = numbers_of(text_of(50))
    (bulk,) = _unbroken(numbers, 6)
    for size in (1, 3, 8):
        assert _hashes(bulk, size).tolist() == [run_hash(bulk[at : at + size].tolist()) for at in range(51 - size)]


def test_what_is_no_word_parts_a_text() -> None:
    made = Winnowing(6)
    assert not made.take("a b c d e " + "x" * 80 + " f g h i j")
    assert made.take("a b c d e f " + "x" * 80 + " g")
    assert made.words == 6


@pytest.mark.parametrize("least", [0, 5, 101])
def test_a_recital_has_some_words_and_not_too_many(least: int) -> None:
    with pytest.raises(FingerprintsInvalid, match="has 6 to 100 words"):
        Winnowing(least)


def test_texts_that_are_all_too_short_make_no_file() -> None:
    with pytest.raises(FingerprintsInvalid, match="no text has 12 words"):
        file_of("a few words")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no file of fingerprints"),
        (b"CSFPRINT", "no file of fingerprints"),
        (b"%PDF-1.7" + bytes(200), "no file of fingerprints"),
        (FILE[:-1], "it is torn"),
        (FILE[:200], "it is torn"),
        (FILE + b"x", "it is torn"),
        (FILE[:100] + bytes([FILE[100] ^ 1]) + FILE[101:], "checksum is wrong"),
        (FILE[:60] + bytes([FILE[60] ^ 1]) + FILE[61:], "checksum is wrong"),
        (changed(8, "<I", 2), "of version 2"),
        (changed(12, "<H", 0), "out of range"),
        (changed(12, "<H", 9), "out of range"),
        (changed(14, "<H", 0), "out of range"),
        (changed(14, "<H", 60_000), "out of range"),
        (changed(16, "<H", 60_000), "out of range"),
        (changed(18, "<H", 0), "out of range"),
        (changed(32, "<Q", 0), "out of range"),
        (changed(32, "<Q", 65), "out of range"),
        (changed(32, "<Q", 1 << 63), "out of range"),
        (changed(40, "<Q", 0), "out of range"),
        (changed(40, "<Q", 1 << 62), "out of range"),
        (changed(len(FILE) - 8, "<Q", 0), "not in order"),
    ],
)
def test_a_file_that_is_none_or_was_damaged_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(FingerprintsInvalid, match=says):
        Fingerprints(data)


def test_any_flipped_byte_is_seen() -> None:
    for at in range(len(FILE)):
        with pytest.raises(FingerprintsInvalid):
            Fingerprints(FILE[:at] + bytes([FILE[at] ^ 0x55]) + FILE[at + 1 :])
