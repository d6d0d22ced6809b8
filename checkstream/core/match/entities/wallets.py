"""CRYPTO_WALLET: addresses that carry a check (Base58Check, bech32, EIP-55)."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.entities.checksums import base58check, bech32
from checkstream.core.match.entities.entity import WORD, Entity, SpanPair, past_mark, stands_alone, whole_if
from checkstream.core.match.entities.keccak import eip55

# Version bytes: Bitcoin P2PKH and P2SH, Litecoin P2PKH and P2SH, Dogecoin, Tron.
_VERSIONS = frozenset({0x00, 0x05, 0x30, 0x32, 0x1E, 0x41})


def is_wallet(address: str) -> bool:
    """Say whether `address` is a wallet's address whose check is right."""
    if address[:2] in ("0x", "0X"):
        return len(set(address[2:])) > 3 and eip55(address[2:])
    if address.lower().startswith(("bc1", "tb1", "ltc1")):
        return bech32(address)
    payload = base58check(address)
    return payload is not None and len(payload) == 21 and payload[0] in _VERSIONS


def refine_wallet(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a candidate that stands alone and whose check is right."""
    return whole_if(stands_alone(text, start, end) and is_wallet(text[start:end]), start, end)


CRYPTO_WALLET = Entity(
    name="CRYPTO_WALLET",
    regex=(
        r"0[xX][0-9a-fA-F]{40}|(?:bc1|tb1|ltc1)[02-9ac-hj-np-z]{11,87}|(?:BC1|TB1|LTC1)[02-9AC-HJ-NP-Z]{11,87}"
        rf"|{WORD}[13LMDT][1-9A-HJ-NP-Za-km-z]{{25,34}}"
    ),
    refine=past_mark(refine_wallet),
    group="pii",
)

ENTITIES = (CRYPTO_WALLET,)
