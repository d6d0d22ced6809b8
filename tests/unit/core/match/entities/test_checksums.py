from __future__ import annotations

import pytest

from checkstream.core.match.entities import checksums
from checkstream.core.match.entities.keccak import eip55, keccak256


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_keccak_of_known_texts(data: bytes, digest: str) -> None:
    assert keccak256(data).hex() == digest


def test_keccak_differs_at_every_length_around_a_block() -> None:
    digests = {keccak256(b"x" * size) for size in (0, 1, 134, 135, 136, 137, 271, 272, 273)}
    assert len(digests) == 9


@pytest.mark.parametrize(
    "address",
    [
        "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "fB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "dbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "D1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ],
)
def test_eip55_vectors_and_one_changed_case(address: str) -> None:
    assert eip55(address)
    place = next(i for i, char in enumerate(address) if char.isalpha())
    assert not eip55(address[:place] + address[place].swapcase() + address[place + 1 :])


@pytest.mark.parametrize(
    "address",
    ["BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"],
)
def test_bech32_vectors(address: str) -> None:
    assert checksums.bech32(address)
    assert not checksums.bech32(address[:-1] + ("q" if address[-1] not in "qQ" else "p"))


def test_base58check_of_the_first_address() -> None:
    assert checksums.base58check("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa") is not None
    assert checksums.base58check("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb") is None
    assert checksums.base58check("0OIl") is None
    assert checksums.base58check("1") is None


def test_numbers_that_the_standards_print() -> None:
    assert checksums.luhn("79927398713")
    assert checksums.iban_mod97("GB82WEST12345698765432")
    assert checksums.nhs_mod11("9434765919")
    assert checksums.mod11_10("86095742719")
    assert checksums.icao_731("L01X00T47", "1")
    assert checksums.aba_routing("021000021")
    assert checksums.codice_fiscale_letter("RSSMRA85T10A562") == "S"
    assert checksums.dni_letter(12345678) == "Z"


@pytest.mark.parametrize("place", range(10))
def test_one_wrong_digit_is_always_seen(place: int) -> None:
    for good, check in (("7992739871" + "3", checksums.luhn), ("86095742719", checksums.mod11_10)):
        bad = good[:place] + str((int(good[place]) + 1) % 10) + good[place + 1 :]
        assert not check(bad)
