"""Does a text look like a secret that a machine made, or like a word, a code reference or a stand-in?"""

from __future__ import annotations

from collections import Counter
from math import log2

_STAND_INS = (
    "your", "changeme", "change_me", "change-me", "placeholder", "example", "sample", "redacted", "dummy", "insert",
    "replace", "xxxx", "****", "....", "____", "<", "${", "{{", "%(", "$(", "todo", "hidden", "masked", "removed",
    "enter",
)  # fmt: skip


def entropy_bits(text: str) -> float:
    """Return the Shannon entropy of `text`, in bits a character. Source: Shannon 1948, section 6."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values()) if size else 0.0


def char_classes(text: str) -> int:
    """Count which of lower case, upper case, digit and sign occur in `text`."""
    return (
        any(char.islower() for char in text)
        + any(char.isupper() for char in text)
        + any(char.isdigit() for char in text)
        + any(not char.isalnum() for char in text)
    )


def is_stand_in(text: str) -> bool:
    """Say whether `text` only holds a secret's place (`<your-key>`, `${VAR}`, `xxxx`, `changeme`)."""
    folded = text.casefold()
    return (
        any(word in folded for word in _STAND_INS)
        or len(set(folded)) <= 3
        or (folded[:1] in "$%{[" and folded[-1:] in "}])%" + folded[-1:] * folded[1:].replace("_", "").isalpha())
    )


def is_random(text: str, *, bits: float = 3.0, need_digit: bool = True) -> bool:
    """Say whether `text` mixes kinds of characters with at least `bits` of entropy a character and is no stand-in."""
    if need_digit and not any(char.isdigit() for char in text):
        return False
    return char_classes(text) >= 2 and entropy_bits(text) >= bits and not is_stand_in(text)
