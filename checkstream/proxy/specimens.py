"""What stands in recordings in place of personal data and secrets: made-up values of the same kind.

Each is found by its entity's own detector, so that a recording fires the rules that the original fired. Keys and
tokens are put together here, so that no scanner of source text takes them for real; none was ever issued.
What stands in no group (`URL`, `PHONE_LOOSE`) is nobody's by itself and stays; what is somebody's in it (a password in
a web address, a number beside the word for telephone) goes.
"""

from __future__ import annotations

import base64
import hashlib
import string
import zlib
from collections.abc import Mapping
from types import MappingProxyType


def _letters(count: int, kind: str) -> str:
    """Return letters and digits that look random and are the same on every machine."""
    seed = b"".join(hashlib.sha512(f"mask {kind} {i}".encode()).digest() for i in range(4))
    return "".join(char for char in base64.b64encode(seed).decode() if char.isalnum())[:count]


def _checked(prefix: str) -> str:
    """Return a token of the form that ends in the CRC-32 of what is before it, in base 62."""
    body = _letters(30, prefix)
    number, check = zlib.crc32(body.encode()), ""
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    while number:
        number, rest = divmod(number, 62)
        check = digits[rest] + check
    return f"{prefix}_{body}{check.rjust(6, '0')}"


def _base64(data: bytes, *, url: bool = False) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=") if url else base64.b64encode(data).decode()


def _jwt() -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"mask"}', hashlib.sha256(b"mask").digest())
    return ".".join(_base64(part, url=True) for part in parts)


_DASHES = "-" * 5

SPECIMENS: Mapping[str, str] = MappingProxyType({
    "EMAIL": "mask@example.invalid",                       # RFC 2606
    "PHONE": "+1 202-555-0100",                            # set aside for fiction
    "US_ITIN": "900-70-0001",                              # a US_SSN too: what stands first gives its own
    "US_SSN": "536-22-0001",
    "UK_NINO": "AB000000A",
    "UK_NHS": "999 000 0018",                              # the range for tests
    "DE_ID": "86095742719",                                # the tax office's example
    "FR_ID": "185057800608491",
    "ES_ID": "12345678Z",
    "IT_ID": "RSSMRA85T10A562S",
    "CREDIT_CARD": "4111 1111 1111 1111",                  # the card schemes' test number
    "IBAN": "GB82WEST12345698765432",                      # the registry's example
    "BANK_ACCOUNT": "10000001",
    "SORT_CODE": "10-00-01",
    "IP_ADDRESS": "192.0.2.1",                             # RFC 5737
    "MAC_ADDRESS": "00:00:5E:00:53:01",                    # RFC 7042
    "URL_CREDENTIALS": "ftp://mask:mask@host",
    "CRYPTO_WALLET": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",  # of EIP-55
    "PASSPORT": "X1000001",
    "DRIVER_LICENSE": "D1000001",
    "DATE_OF_BIRTH": "1970-01-01",
    "MEDICAL_RECORD_NUMBER": "MRN-0000001",
    "GITHUB_TOKEN": _checked("ghp"),
    "GITLAB_TOKEN": "glpat-" + _letters(20, "gitlab"),
    "SLACK_TOKEN": "xoxp-1000000001-" + _letters(32, "slack"),
    "STRIPE_KEY": "sk_" + "test_" + _letters(24, "stripe"),
    "OPENAI_KEY": "sk-" + _letters(48, "openai"),
    "ANTHROPIC_KEY": "sk-" + "ant-api03-" + _letters(95, "anthropic"),
    "HUGGINGFACE_TOKEN": "hf_" + _letters(34, "huggingface"),
    "NPM_TOKEN": _checked("npm"),
    "PYPI_TOKEN": "pypi-" + _base64(b"\x02\x01\x08pypi" + b".org\x02\x33", url=True) + _letters(80, "pypi"),
    "AWS_ACCESS_KEY": "AKIA" + "MASK" * 3 + "M222",
    "GCP_KEY": "AIza" + _letters(35, "gcp"),
    "AZURE_KEY": _base64(hashlib.sha512(b"mask azure").digest()),
    "JWT": _jwt(),
    "PRIVATE_KEY": f"{_DASHES}BEGIN PRIVATE KEY{_DASHES}\n{_letters(64, 'key')}\n{_DASHES}END PRIVATE KEY{_DASHES}",
    "AUTHORIZATION": _base64(b"mask:maskmask1"),
    "CONNECTION_STRING": "redis://:maskmask1@/0",
    "GENERIC_SECRET": "mask-M4sk-0001",
})  # fmt: skip
"""Entity -> what stands in its place."""
