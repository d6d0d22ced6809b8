"""Addresses of files as requests give them: those that are signed let who has them read one file for a while.

Who is to fetch the file needs the signature, so it is not taken for a secret that has slipped in. Source: AWS Signature
Version 4 ("Authenticating Requests: Using Query Parameters") and 2; Google Cloud Storage ("Signed URLs"); Azure
Storage ("Create a service SAS"); CloudFront ("Signed URLs").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_HEX = frozenset("0123456789abcdefABCDEF")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-~%")
_UPPER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_LONGEST = 4096
"""Characters of a token; a signature has some hundreds."""

_SIGNED: Mapping[frozenset[str], Mapping[str, frozenset[str]]] = MappingProxyType({
    frozenset({"x-amz-algorithm", "x-amz-date", "x-amz-signature"}): {
        "x-amz-signature": _HEX, "x-amz-security-token": _BASE64, "x-amz-credential": _BASE64,
    },
    frozenset({"x-goog-algorithm", "x-goog-date", "x-goog-signature"}): {
        "x-goog-signature": _HEX, "x-goog-credential": _BASE64 | {".", "@"},
    },
    frozenset({"awsaccesskeyid", "expires", "signature"}): {"awsaccesskeyid": _UPPER, "signature": _BASE64},
    frozenset({"key-pair-id", "signature"}): {"key-pair-id": _UPPER, "signature": _BASE64, "policy": _BASE64},
    frozenset({"sv", "se", "sig"}): {"sig": _BASE64},
})  # fmt: skip
"""Parameters that all of a kind of signed address have -> those that sign it, and of which characters they are."""


def unsigned(address: str) -> str:
    """Return an address without the values that sign it, which is all of it that can say something."""
    head, mark, query = address.partition("?")
    parts = query.split("&")
    names = {part.partition("=")[0].lower() for part in parts}
    signing: dict[str, frozenset[str]] = {}
    for needed, signs in _SIGNED.items():
        if needed <= names:
            signing.update(signs)
    if not signing:
        return address
    return head + mark + "&".join(_without(part, signing) for part in parts)


def _without(part: str, signing: Mapping[str, frozenset[str]]) -> str:
    name, equals, value = part.partition("=")
    signs = signing.get(name.lower())
    return name + equals if signs is not None and len(value) <= _LONGEST and signs.issuperset(value) else part
