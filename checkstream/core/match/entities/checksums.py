"""Check digits, each as its standard states it. Pure arithmetic on strings; callers have checked the alphabet."""

from __future__ import annotations

from hashlib import sha256

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_DOUBLED = str.maketrans("0123456789", "0246813579")


def luhn(digits: str) -> bool:
    """Check the last digit of `digits`. Source: ISO/IEC 7812-1, annex B."""
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, digits[::-2])) + sum(map(int, doubled))) % 10 == 0


def iban_mod97(iban: str) -> bool:
    """Check a compact upper-case IBAN. Source: ISO 13616-1, 6 (ISO/IEC 7064 MOD 97-10)."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


def mod11_10(digits: str) -> bool:
    """Check the last digit of `digits`. Source: ISO/IEC 7064, hybrid system MOD 11,10."""
    product = 10
    for char in digits[:-1]:
        total = (ord(char) - 48 + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == ord(digits[-1]) - 48


def nhs_mod11(digits: str) -> bool:
    """Check ten digits of an NHS number. Source: NHS Data Dictionary, NHS NUMBER."""
    total = sum((ord(char) - 48) * (10 - place) for place, char in enumerate(digits[:9]))
    return (11 - total % 11) % 11 == ord(digits[9]) - 48


def icao_731(field: str, check: str) -> bool:
    """Check a field of a machine-readable document. Source: ICAO Doc 9303-3, 4.9."""
    total = sum((0 if char == "<" else int(char, 36)) * (7, 3, 1)[place % 3] for place, char in enumerate(field))
    return total % 10 == ord(check) - 48


def nir_key(number: str, key: str) -> bool:
    """Check 13 characters of a French NIR and their key. Source: INSEE, decree 82-103; Corsica as 2A = 19, 2B = 18."""
    return 97 - int(number.replace("2A", "19", 1).replace("2B", "18", 1)) % 97 == int(key)


def dni_letter(number: int) -> str:
    """Return the letter of a Spanish DNI or NIE number. Source: Royal Decree 1553/2005, art. 11."""
    return "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


_ODD_VALUES = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def codice_fiscale_letter(first15: str) -> str:
    """Return the check letter of an Italian tax code. Source: ministerial decree 23 December 1976, art. 8."""
    total = 0
    for place, char in enumerate(first15):
        value = int(char) if char.isdigit() else ord(char) - 65
        total += value if place % 2 else _ODD_VALUES[value]
    return chr(65 + total % 26)


def aba_routing(digits: str) -> bool:
    """Check nine digits of a US routing number. Source: ABA Routing Number Policy, check digit formula."""
    return sum((ord(char) - 48) * (3, 7, 1)[place % 3] for place, char in enumerate(digits)) % 10 == 0


def base58check(address: str) -> bytes | None:
    """Return version and payload of a Base58Check text, or None when the check fails.

    Source: Bitcoin developer reference, Base58Check encoding.
    """
    number = 0
    for char in address:
        digit = _BASE58.find(char)
        if digit < 0:
            return None
        number = number * 58 + digit
    zeros = len(address) - len(address.lstrip("1"))
    data = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    payload, check = data[:-4], data[-4:]
    if len(data) < 5 or sha256(sha256(payload).digest()).digest()[:4] != check:
        return None
    return payload


def bech32(address: str) -> bool:
    """Check a segwit address, bech32 for version 0 and bech32m above. Source: BIP-173 and BIP-350."""
    if address not in (address.lower(), address.upper()):
        return False
    prefix, _, data = address.lower().rpartition("1")
    values = [_BECH32.find(char) for char in data]
    if not prefix or len(values) < 8 or -1 in values:
        return False
    check = 1
    expanded = [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix] + values
    for value in expanded:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> place & 1 else 0
    return values[0] <= 16 and check == (1 if values[0] == 0 else 0x2BC830A3)


def crc32_base62(number: int, width: int) -> str:
    """Return `number` in base 62, padded with zeros to `width`.

    Source: GitHub engineering blog, "Behind GitHub's new authentication token formats", checksum.
    """
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = _BASE62[rest] + digits
    return digits.rjust(width, "0")
