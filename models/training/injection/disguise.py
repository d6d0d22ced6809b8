"""Encodings that hide a request from a reader but not from a model: base64, ciphers, look-alikes, spelled-out text."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable
from random import Random
from urllib.parse import quote

_MORSE = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz0123456789",
        (
            *(".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--"),
            *("-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--.."),
            *("-----", ".----", "..---", "...--", "....-", ".....", "-....", "--...", "---..", "----."),
        ),
        strict=True,
    )
)
_LEET = {"a": "4@", "b": "8", "e": "3", "g": "69", "i": "1!", "l": "1|", "o": "0", "s": "5$", "t": "7+", "z": "2"}


def _leet(text: str, random: Random) -> str:
    return "".join(random.choice(_LEET[c]) if c in _LEET and random.random() < 0.8 else c for c in text.lower())


def _caesar(text: str, random: Random) -> str:
    shift = random.randint(1, 25)
    return "".join(chr((ord(c) - 97 + shift) % 26 + 97) if "a" <= c <= "z" else c for c in text.lower())


def _full_width(text: str, _random: Random) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _maths(text: str, random: Random) -> str:
    small, large = random.choice(((0x1D41A, 0x1D400), (0x1D5BA, 0x1D5A0), (0x1D68A, 0x1D670)))
    return "".join(
        chr(small + ord(c) - 97) if "a" <= c <= "z" else chr(large + ord(c) - 65) if "A" <= c <= "Z" else c
        for c in text
    )


CIPHERS: tuple[Callable[[str, Random], str], ...] = (
    lambda text, _: base64.b64encode(text.encode()).decode(),
    lambda text, _: base64.b64encode(text.encode()).decode(),
    lambda text, _: codecs.encode(text, "rot13"),
    lambda text, _: text.encode().hex(),
    lambda text, _: quote(text, safe=""),
    lambda text, _: quote(text),
    lambda text, _: text[::-1],
    lambda text, _: " ".join(word[::-1] for word in text.split(" ")),
    lambda text, _: " ".join(_MORSE.get(c, "/") for c in text.lower()),
    lambda text, _: " ".join(f"{ord(c):08b}" for c in text[:40]),
    lambda text, _: " ".join(text),
    lambda text, random: random.choice(".-_*~\u200b").join(text),
    lambda text, _: "".join(f"\\u{ord(c):04x}" for c in text),
    lambda text, _: "".join(f"&#{ord(c)};" for c in text),
    lambda text, _: base64.b32encode(text.encode()).decode(),
    _leet,
    _leet,
    _caesar,
    _full_width,
    _maths,
)
"""Ways to write a text so that a word list doesn't know it; each takes a text and a source of chance."""


def ciphered(text: str, random: Random) -> str:
    """Write a text in one of the encodings."""
    return random.choice(CIPHERS)(text, random)
