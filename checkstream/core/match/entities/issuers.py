"""Which numbers issuers of cards give out."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from checkstream.core.match.entities.checksums import luhn

# (first prefix, last prefix, least digits, most digits). Source: ISO/IEC 7812 issuer ranges as the schemes publish
# them: Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Maestro, Mir, RuPay, Verve, Troy.
_ISSUERS = (
    ("4", "4", 16, 16), ("4", "4", 13, 13), ("4", "4", 19, 19), ("51", "55", 16, 16), ("2221", "2720", 16, 16),
    ("34", "34", 15, 15), ("37", "37", 15, 15), ("6011", "6011", 16, 19), ("644", "649", 16, 19), ("65", "65", 16, 19),
    ("300", "305", 14, 19), ("3095", "3095", 14, 19), ("36", "36", 14, 19), ("38", "39", 14, 19),
    ("3528", "3589", 16, 19), ("62", "62", 16, 19), ("81", "82", 16, 16), ("5018", "5018", 12, 19),
    ("5020", "5020", 12, 19), ("5038", "5038", 12, 19), ("5893", "5893", 12, 19), ("6304", "6304", 12, 19),
    ("6759", "6759", 12, 19), ("6761", "6769", 12, 19), ("56", "58", 12, 19), ("6390", "6390", 12, 19),
    ("0604", "0604", 12, 19), ("2131", "2131", 15, 15), ("1800", "1800", 15, 15), ("2200", "2204", 16, 19),
    ("60", "60", 16, 16), ("508", "508", 16, 16), ("506099", "506198", 16, 19), ("507865", "507964", 16, 19),
    ("9792", "9792", 16, 16),
)  # fmt: skip

HEADS: Final = MappingProxyType(
    {
        f"{head:02}": tuple(each for each in _ISSUERS if f"{each[0]}0"[:2] <= f"{head:02}" <= f"{each[1]}9"[:2])
        for head in range(100)
    }
)
"""The first two digits of a number -> the issuers whose it may be."""


def is_card_number(digits: str) -> bool:
    """Say whether `digits` has an issuer's prefix, a length that the issuer uses, and a right check digit."""
    size = len(digits)
    for low, high, least, most in HEADS.get(digits[:2], ()):
        if least <= size <= most and low <= digits[: len(low)] <= high:
            return len(set(digits)) > 1 and luhn(digits)
    return False
