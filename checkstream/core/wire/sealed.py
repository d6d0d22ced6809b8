"""Sealed fields: what servers encrypt for themselves and have clients send back, such as thoughts that nobody may read.

It is chance in base64, up to half a megabyte of it. Read as text it costs seconds, is longer than a prompt may be, and
something like a key stands in it somewhere, whose edit would break the seal. So what is chance passes; in what is none
something is said, and it is read as it stands.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

SEALED: Final = frozenset({"encrypted_content", "signature", "thought_signature", "data"})
"""Where it stands. Source: the references of OpenAI (reasoning items), Anthropic (thinking and redacted thinking),
Gemini (thought signatures) and OpenRouter (`data` of `reasoning.encrypted`)."""
_LEAST: Final = 128
"""Characters; less is read at no cost."""
_MOST: Final = 524_288
"""More is read as text, in steps."""
_SOME: Final = 4096
"""Octets that are looked at for how many kinds there are."""
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


def _kinds() -> bytes:
    """Return what an octet may be part of: ASCII, the first of two in UTF-16, the first or others in UTF-8."""
    kinds = bytearray(b" " * 256)
    kinds[:0x10] = b"z" * 0x10
    kinds[0x20:0x7F] = b"a" * (0x7F - 0x20)
    kinds[0x80:0xC0] = b"c" * 0x40
    kinds[0xC3:0xE0] = b"l" * (0xE0 - 0xC3)
    kinds[0xE0:0xF0] = b"e" * 0x10
    return bytes(kinds)


_KINDS: Final = _kinds()
_TEXT, _WIDE_TEXT = b"a" * 24, b"z" * 8
"""Text in ASCII or UTF-8, and in every second octet of UTF-16 and UTF-32: none of it in half a megabyte of chance."""
_FORMS: Final = bytes.maketrans(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", b"d" * 10 + b"l" * 26 + b"u" * 26
)
_WORDS: Final = (b"d" * 12, b"l" * 24, b"u" * 24)
"""A number, and words, in the characters themselves."""


def is_sealed(text: str) -> bool:
    """Tell whether a text is chance in base64, in either alphabet; half a megabyte takes some 2 ms."""
    if not _LEAST <= len(text) <= _MOST or not text.isascii():
        return False
    bare = text.rstrip("=").encode()
    if bare.translate(None, _ALPHABET):
        return False
    forms = bare.translate(_FORMS)
    if any(word in forms for word in _WORDS):
        return False
    try:
        data = base64.b64decode(bare[: len(bare) // 4 * 4].translate(_STANDARD))
    except (ValueError, binascii.Error):
        return False
    kinds = data.translate(_KINDS)
    wide = any(_WIDE_TEXT in kinds[first::2] for first in (0, 1))
    return len(set(data[:_SOME])) > min(48, len(data) // 2) and not wide and _TEXT not in _as_ascii(kinds)


def _as_ascii(kinds: bytes) -> bytes:
    """Return the kinds of octets with characters of two and three octets as so many of ASCII."""
    return kinds.replace(b"lc", b"aa").replace(b"ecc", b"aaa")
