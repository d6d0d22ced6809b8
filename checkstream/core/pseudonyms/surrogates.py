"""Makes surrogates: values of the same kind as others, in their layout, that nobody has.

What is made follows from a seed alone, so that the same request comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from checkstream.core.match.entities.entity import only_digits
from checkstream.core.match.surrogates import CARDS, FIRST, KINDS, LAST, surrogate_key

_TRIES: Final = 64
"""Surrogates that are tried for one value, of which each may stand in the prompt already."""
_FIRST_AREA, _AREAS = 201, 799
_NETWORKS: Final = ("192.0.2", "198.51.100", "203.0.113")
_DOMAINS: Final = ("com", "net", "org")


def surrogate(kind: str, value: str, language: str, seed: int, taken: Callable[[str], bool]) -> str | None:
    """Return what stands for a value.

    Args:
        kind: Of the value's placeholder.
        value: As its caller has written it.
        language: Of the text that it stands in, as a BCP 47 primary tag.
        seed: What follows from it is made.
        taken: Tells whether a surrogate, or a word of one, by its key, can't be used.

    Returns:
        None: values of this kind have none, or none is left.
    """
    if kind not in KINDS:
        return None
    for number in range(_TRIES):
        made = _made(kind, value, language, seed + number * 7919)
        parts = made.split() if kind == "PERSON" else (made,)
        if not any(taken(surrogate_key(part)) for part in (made, *parts)):
            return made
    return None


def _made(kind: str, value: str, language: str, seed: int) -> str:
    match kind:
        case "PERSON":
            return _name(value, language, seed)
        case "EMAIL":
            first, last = _of_length(FIRST["en"], 5, seed), _of_length(LAST["en"], 6, seed // 31)
            return f"{first}.{last}@example.{_DOMAINS[seed % 3]}".lower()
        case "PHONE":
            digits = f"{_FIRST_AREA + seed % _AREAS}55501{seed // 997 % 100:02d}"
            return _laid_out(value, digits) or f"+1 {digits[:3]}-{digits[3:6]}-{digits[6:]}"
        case "CREDIT_CARD":
            body = CARDS + f"{seed % 10**8:08d}"
            digits = body + _check_digit(body)
            return _laid_out(value, digits) or f"{digits[:4]} {digits[4:8]} {digits[8:12]} {digits[12:]}"
        case "US_SSN":
            digits = f"{900 + seed % 100}{1 + seed // 100 % 49:02d}{1 + seed // 5003 % 9999:04d}"
            return _laid_out(value, digits) or f"{digits[:3]}-{digits[3:5]}-{digits[5:]}"
        case _:
            return f"{_NETWORKS[seed % 3]}.{1 + seed // 3 % 254}"


def _name(value: str, language: str, seed: int) -> str:
    """Return a name of as many words, up to three, each near the length of its word, in the writing of the value."""
    words = value.split()[:3] or [value]
    pool = language if language in FIRST else "en"
    sizes = [len(word) for word in words]
    made = [_of_length(FIRST[pool], sizes[0], seed)]
    made += [_of_length(FIRST[pool], size, seed // 13 + 1) for size in sizes[1:-1]]
    if len(words) > 1:
        made.append(_of_length(LAST[pool], sizes[-1], seed // 101))
    name = " ".join(made)
    return name.upper() if value.isupper() else name.lower() if value.islower() else name


def _of_length(pool: Sequence[str], size: int, seed: int) -> str:
    """Return one of those of a pool that are nearest in length, a third of it."""
    near = sorted(pool, key=lambda word: (abs(len(word) - size), word))[: max(len(pool) // 3, 1)]
    return near[seed % len(near)] if seed % _TRIES else pool[seed // 7 % len(pool)]


def _laid_out(value: str, digits: str) -> str:
    """Return digits with the signs that a value has between its own; empty where it has more or fewer."""
    own = only_digits(value)
    prefix = own[: len(own) - len(digits)]
    if prefix not in {"", "1"} or len(own) < len(digits):
        return ""
    following = iter(prefix + digits)
    return "".join(next(following) if "0" <= char <= "9" else char for char in value)


def _check_digit(body: str) -> str:
    """Return the digit that makes a card's number pass (ISO/IEC 7812-1, annex B)."""
    doubled = (int(char) * (2 if place % 2 == 0 else 1) for place, char in enumerate(reversed(body)))
    return str(-sum(each - 9 if each > 9 else each for each in doubled) % 10)
