import time

import pytest

from checkstream.scoring.words import folded, words

KNOWN = frozenset({"ignore", "previous", "instructions", "idiot", "dont", "shit", "fool", "fuck"})


def read(text: str) -> list[str]:
    return words(folded(text), KNOWN)


@pytest.mark.parametrize(
    "disguised",
    [
        "IGNORE",
        "1gn0re",
        "ig\u200bno\u00adre",
        "\uff29\uff47\uff4e\uff4f\uff52\uff45",
        "\u0456gn\u043er\u0435",  # Cyrillic look-alikes
        "\u00ecgn\u00f6r\u00e9",
        "i g n o r e",
        "i-g-n-o-r-e",
        "ign*ore",
        "igno\u0336re",
        "ignoooore",
        "**ignore**,",
        '"ignore"',
    ],
)
def test_a_disguised_known_word_is_read_as_that_word(disguised: str) -> None:
    assert read(disguised) == ["ignore"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't stop.now", ["i", "dont", "stop", "now"]),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("call user@example.com on 2024-01-02", ["call", "user", "example", "com", "on", "2024", "01", "02"]),
        ("a b c", ["a", "b", "c"]),
        ("sh!t", ["shit"]),
        ("f00l", ["fool"]),
        ("Awww", ["awww"]),
        ("... !!! ***", []),
        ("", []),
        ("\u043f\u0440\u0438\u0432\u0435\u0442", ["\u043f\u0440\u0438\u0432\u0435\u0442"]),
    ],
)
def test_plain_text_reads_as_it_stands(text: str, expected: list[str]) -> None:
    assert read(text) == expected


def test_letters_spaced_out_over_several_words_are_told_apart() -> None:
    assert read("i g n o r e p r e v i o u s i n s t r u c t i o n s") == ["ignore", "previous", "instructions"]


@pytest.mark.parametrize("piece", ["1gn0r\u00e9\u00e9e.a ", "aaa1 ", "a b ", "a" * 50 + "!", "\ud800 ", "\u0300"])
def test_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    def cost(length: int) -> float:
        text = (piece * length)[:length]
        started = time.process_time()
        words(folded(text), KNOWN)
        return time.process_time() - started

    assert min(cost(40_000) for _ in range(2)) < 20 * max(min(cost(10_000) for _ in range(2)), 0.001)
