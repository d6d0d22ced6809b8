"""Keccak-256 as Ethereum uses it (the padding of the first submission, not that of SHA-3)."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_RATE_BYTES = 136


def _round_constants() -> tuple[int, ...]:
    """Return the 24 constants of the iota step from their shift register. Source: FIPS 202, 3.2.5."""
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for exponent in range(7):
            if register & 1:
                constant |= 1 << ((1 << exponent) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return tuple(constants)


def _rotations() -> tuple[tuple[int, int], ...]:
    """Return (target lane, rotation) along the path of the rho and pi steps. Source: FIPS 202, 3.2.2 and 3.2.3."""
    path, x, y = [], 1, 0
    for step in range(24):
        x, y = y, (2 * x + 3 * y) % 5
        path.append((x + 5 * y, (step + 1) * (step + 2) // 2 % 64))
    return tuple(path)


_CONSTANTS = _round_constants()
_PATH = _rotations()


def _rotate(lane: int, bits: int) -> int:
    return (lane << bits | lane >> (64 - bits)) & _MASK if bits else lane


def _permute(lanes: list[int]) -> None:
    """Apply Keccak-f[1600] to 25 lanes in place. Source: FIPS 202, 3.3."""
    for constant in _CONSTANTS:
        parity = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        for x in range(5):
            change = parity[x - 1] ^ _rotate(parity[(x + 1) % 5], 1)
            for y in range(0, 25, 5):
                lanes[x + y] ^= change
        carried = lanes[1]
        for target, bits in _PATH:
            carried, lanes[target] = lanes[target], _rotate(carried, bits)
        for y in range(0, 25, 5):
            row = lanes[y : y + 5]
            for x in range(5):
                lanes[x + y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5] & _MASK)
        lanes[0] ^= constant


def keccak256(data: bytes) -> bytes:
    """Return the 32 bytes of Keccak-256 of `data`. Source: Ethereum yellow paper, appendix on KEC."""
    padded = bytearray(data) + b"\x01" + b"\0" * (-(len(data) + 1) % _RATE_BYTES)
    padded[-1] |= 0x80
    lanes = [0] * 25
    for block in range(0, len(padded), _RATE_BYTES):
        for lane in range(_RATE_BYTES // 8):
            lanes[lane] ^= int.from_bytes(padded[block + lane * 8 : block + lane * 8 + 8], "little")
        _permute(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def eip55(address: str) -> bool:
    """Check the case of 40 hex digits; all lower or all upper case carries no check. Source: EIP-55."""
    if address in (address.lower(), address.upper()):
        return True
    digest = keccak256(address.lower().encode("ascii")).hex()
    return all(
        char == (char.upper() if int(nibble, 16) >= 8 else char.lower())
        for char, nibble in zip(address, digest, strict=False)
    )
