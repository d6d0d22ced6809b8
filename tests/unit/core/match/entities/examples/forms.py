"""Makers of values: check digits are computed here by means of their own, and secrets are put together from pieces."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import zlib

_dice = random.Random(20240607)


def chars(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Return random characters with at least one digit, the same in every run."""
    while True:
        text = "".join(_dice.choice(alphabet) for _ in range(count))
        if any(char.isdigit() for char in text):
            return text


def luhn_digit(digits: str) -> str:
    for last in "0123456789":
        total = sum(sum(divmod(int(d) * (2 if i % 2 else 1), 10)) for i, d in enumerate(reversed(digits + last)))
        if total % 10 == 0:
            return last
    raise AssertionError


def card(prefix: str, size: int) -> str:
    body = (prefix + "2718281828459045235")[: size - 1]
    return body + luhn_digit(body)


def wrong_last(digits: str) -> str:
    return digits[:-1] + str((int(digits[-1]) + 1) % 10)


def hidden(text: str) -> str:
    return "".join(chr(0xE0000 + ord(char)) for char in text)


def fours(text: str, gap: str = " ") -> str:
    return gap.join(text[i : i + 4] for i in range(0, len(text), 4))


def iban(country: str, bban: str) -> str:
    number = int("".join(str(int(char, 36)) for char in bban + country + "00"))
    return f"{country}{98 - number % 97:02d}{bban}"


def nhs(nine: str) -> str:
    check = (11 - sum(int(d) * w for d, w in zip(nine, range(10, 1, -1), strict=True)) % 11) % 11
    assert check != 10
    return nine + str(check)


def steuer_id(ten: str) -> str:
    product = 10
    for digit in ten:
        total = (int(digit) + product) % 10
        product = 2 * (total or 10) % 11
    return ten + str((11 - product) % 10)


def ausweis(nine: str) -> str:
    return nine + str(sum(int(char, 36) * (7, 3, 1)[i % 3] for i, char in enumerate(nine)) % 10)


def nir(number: str) -> str:
    value = int(number.replace("2A", "19").replace("2B", "18"))
    return f"{number}{97 - value % 97:02d}"


def dni(number: int) -> str:
    return f"{number:08d}" + "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


def nie(letter: str, seven: str) -> str:
    return letter + seven + "TRWAGMYFPDXBNJZSQVHLCKE"[int(str("XYZ".index(letter)) + seven) % 23]


_ODD = dict(zip(string.digits, (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)) | dict(
    zip(
        string.ascii_uppercase,
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def codice(first15: str) -> str:
    even = {**{d: int(d) for d in string.digits}, **{c: i for i, c in enumerate(string.ascii_uppercase)}}
    total = sum(_ODD[c] if i % 2 == 0 else even[c] for i, c in enumerate(first15))
    return first15 + string.ascii_uppercase[total % 26]


def aba(eight: str) -> str:
    total = sum(int(d) * w for d, w in zip(eight, (3, 7, 1, 3, 7, 1, 3, 7), strict=True))
    return eight + str(-total % 10)


_B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58(version: int, seed: bytes) -> str:
    payload = bytes([version]) + hashlib.sha256(seed).digest()[:20]
    data = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, out = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        out = _B58[rest] + out
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + out


def github(prefix: str, thirty: str) -> str:
    number, check = zlib.crc32(thirty.encode()), ""
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    while number:
        number, rest = divmod(number, 62)
        check = digits[rest] + check
    return prefix + "_" + thirty + check.rjust(6, "0")


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwt(header: dict[str, str], payload: dict[str, str] | None = None, signature: str | None = None) -> str:
    parts = [b64url(json.dumps(part).encode()) for part in (header, payload or {"sub": "1234567890"})]
    return ".".join([*parts, b64url(hashlib.sha256(b"x").digest()) if signature is None else signature])


def der(head: bytes, size: int, line: str = "\n") -> str:
    """Return base64, in lines, of octets that begin so."""
    octets = head + hashlib.shake_128(head).digest(size)
    text = base64.b64encode(octets).decode()
    return line.join(text[at : at + 64] for at in range(0, len(text), 64))


BARE_RSA = der(bytes.fromhex("308204bd020100300d06092a864886f70d0101010500"), 300)
BARE_EC = der(bytes.fromhex("30770201010420"), 114, "")
BARE_ED = der(bytes.fromhex("302e020100300506032b657004220420"), 32)
CERTIFICATE = der(bytes.fromhex("3082030d308201f5a003020102"), 200)
PUBLIC_KEY = der(bytes.fromhex("30820122300d06092a864886f70d01010105000382010f00"), 200)


def pem(kind: str, lines: int = 4, newline: str = "\n") -> str:
    body = newline.join(chars(64) for _ in range(lines))
    return f"-----BEGIN {kind}-----{newline}{body}{newline}-----END {kind}-----"


VISA, MASTER, AMEX = card("4539", 16), card("5425", 16), card("378", 15)
DE_IBAN, GB_IBAN = iban("DE", "370400440532013000"), iban("GB", "NWBK60161331926819")
FR_IBAN, MT_IBAN, NO_IBAN = (
    iban("FR", "20041010050500013M02606"),
    iban("MT", "MALT011000012345MTLCAST001S"),
    iban("NO", "86011117947"),
)
CARD_LIKE_IBAN = iban("DE", card("4408", 16) + "64")
PHONE_LIKE_IBAN = iban("PL", "163001268034758923244997")
CF = codice("RSSMRA85T10A562")
OMOCODIA = codice("RSSMRA85T10A5SN")
ETH_MIXED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # a test vector of EIP-55
SEGWIT = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"  # a test vector of BIP-173
TAPROOT = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"  # a test vector of BIP-350
GHP = github("ghp", chars(30))
NPM = github("npm", chars(30))
AWS_ID = "AK" + "IA" + chars(16, string.ascii_uppercase + "234567")
AWS_SECRET = chars(38, string.ascii_letters + string.digits + "/+") + "aB"
GOOGLE = "AI" + "za" + chars(35)
STORAGE = base64.b64encode(hashlib.sha512(b"storage").digest()).decode()
SIGNATURE = base64.b64encode(hashlib.sha256(b"sas").digest()).decode()
JWS = jwt({"alg": "HS256", "typ": "JWT"})
BASIC = base64.b64encode(b"aladdin:opensesame1").decode()
ENCRYPTED_PEM = pem("RSA PRIVATE KEY", 5).replace(
    "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n", 1
)
HEX40 = hashlib.sha1(b"key").hexdigest()
