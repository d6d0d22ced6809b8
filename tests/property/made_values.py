"""Values as the shipped policies know them, made by chance."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

from tests.unit.core.match.entities.examples.forms import card

Make = Callable[[random.Random], str]


def word(dice: random.Random, size: int, alphabet: str) -> str:
    return "".join(dice.choice(alphabet) for _ in range(size))


def an_ssn(dice: random.Random) -> str:
    return f"{dice.randint(100, 599)}-{dice.randint(10, 99)}-{dice.randint(1000, 9999)}"


def a_card(dice: random.Random) -> str:
    digits = card(dice.choice(("4", "51", "6011", "3530")) + word(dice, 8, string.digits), 16)
    return " ".join(digits[at : at + 4] for at in range(0, 16, 4))


def an_address(dice: random.Random) -> str:
    name = word(dice, dice.randint(4, 9), string.ascii_lowercase)
    return f"{name}.{word(dice, 5, string.ascii_lowercase)}@{word(dice, 7, string.ascii_lowercase)}.com"


def an_iban(dice: random.Random) -> str:
    body = word(dice, 18, string.digits)
    check = 98 - int(f"{body}131400") % 97
    whole = f"DE{check:02}{body}"
    return " ".join(whole[at : at + 4] for at in range(0, 22, 4))


def squeezed(value: str) -> str:
    return "".join(value.split())
