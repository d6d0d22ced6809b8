"""Is a token (JWT) one of the provider that the operator trusts? Pure: keys, rules and the time are passed in.

What a token says of itself decides nothing: which signatures count stands in the rules, and which keys there are in the
provider's set. Addresses and keys that a token brings along (`jku`, `x5u`, `jwk`, `x5c`) are never looked at.

Source: RFC 7515 (JWS), 7517 (JWK), 7519 (JWT), 8725 (best practices); OpenID Connect Core 1.0, 2 and 3.1.3.7.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from checkstream.config.servers import CLAIMED_CHARS
from checkstream.errors import KeyUnknown, ProviderUnusable, TokenRefused

MOST_CHARS = 16_384
"""Of a token; those of providers that list hundreds of groups in one are shorter."""
_MOST_KEYS = 100
_RSA_BITS = range(2048, 8193)
_TYPES = frozenset({"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"})
"""Other kinds, such as that of a log-out, are no tokens of callers."""


class Rules(msgspec.Struct, frozen=True):
    """What a token must be."""

    issuer: str
    audience: str
    algorithms: frozenset[str]
    leeway_s: float


class Key(msgspec.Struct, frozen=True):
    """One of the provider's keys."""

    kid: str | None
    algorithms: frozenset[str]
    """Those that go with it."""
    public: RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


def read_keys(body: bytes) -> tuple[Key, ...]:
    """Return the keys of a set (JWKS) by which signatures can be verified; others in it are left out.

    Raises:
        ProviderUnusable: it is no set, or has too many.
    """
    try:
        entries = json.loads(body, object_pairs_hook=_once)["keys"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ProviderUnusable(f"its set of keys can't be read: {error}") from error
    if not isinstance(entries, list) or len(entries) > _MOST_KEYS:
        raise ProviderUnusable(f"its set of keys is no list of up to {_MOST_KEYS}")
    return tuple(key for each in entries if isinstance(each, dict) and (key := _key(each)) is not None)


def _key(entry: Mapping[str, Any]) -> Key | None:
    kid, operations = entry.get("kid"), entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    if entry.get("kty") not in {"RSA", "EC", "OKP"} or (kid is not None and not isinstance(kid, str)):
        return None
    bare = {name: value for name, value in entry.items() if name not in {"d", "alg", "key_ops", "use"}}
    try:
        public = jwt.PyJWK(bare, algorithm=_PARSED[str(entry["kty"])]).key
    except (jwt.PyJWTError, ValueError, TypeError, LookupError):
        return None
    fitting: frozenset[str]
    if isinstance(public, RSAPublicKey) and public.key_size in _RSA_BITS:
        fitting = frozenset({"RS256", "PS256"})
    elif isinstance(public, EllipticCurvePublicKey) and isinstance(public.curve, SECP256R1):
        fitting = frozenset({"ES256"})
    elif isinstance(public, Ed25519PublicKey):
        fitting = frozenset({"EdDSA"})
    else:
        return None
    named = entry.get("alg")
    return Key(kid, fitting if named is None else fitting & {str(named)}, public)


_PARSED: Mapping[str, str] = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}


def verified(token: str, keys: Sequence[Key], rules: Rules, now: float) -> Mapping[str, object]:
    """Return what a token claims, if it is what the rules ask for.

    Args:
        token: As it was sent.
        keys: The provider's.
        rules: What it must be.
        now: Seconds since 1970.

    Raises:
        KeyUnknown: it names a key that is not among them.
        TokenRefused: it is not; says why.
    """
    kid, algorithm = read_header(token, rules)
    claims = _object(_signed(token, _chosen(keys, kid, algorithm), algorithm), "claims")
    _require(claims, rules, now)
    return claims


def read_header(token: str, rules: Rules) -> tuple[object, str]:
    """Return which key a token names, None if none, and its algorithm, which needs no keys.

    Raises:
        TokenRefused: no signature could make it count.
    """
    header = _header(token)
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in rules.algorithms:
        raise TokenRefused(f"the token's signature is `{str(algorithm)[:20]}`, which doesn't count here")
    if "crit" in header or "b64" in header:
        raise TokenRefused("the token has extensions that nobody here knows (`crit`, `b64`)")
    kind = header.get("typ", "")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise TokenRefused(f"the token is a `{str(kind)[:40]}`, which is none of a caller")
    return header.get("kid"), algorithm


def _header(token: str) -> dict[str, Any]:
    if len(token) > MOST_CHARS:
        raise TokenRefused(f"the token has more than {MOST_CHARS} characters")
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        raise TokenRefused("this is no token of three parts")
    return _object(_decoded(parts[0]), "header")


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise TokenRefused("the token is not in base64url") from error


def _object(data: bytes, what: str) -> dict[str, Any]:
    """Read a JSON object that all readers read alike."""
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise TokenRefused(f"the token's {what} can't be read: {error}") from error
    if not isinstance(found, dict):
        raise TokenRefused(f"the token's {what} is no JSON object")
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object that names nothing twice.

    Raises:
        ValueError: it does.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it names something twice")
    return found


def _chosen(keys: Sequence[Key], kid: object, algorithm: str) -> Key:
    fitting = [key for key in keys if algorithm in key.algorithms]
    if kid is None and len(fitting) == 1:
        return fitting[0]
    found = [key for key in fitting if key.kid is not None and key.kid == kid]
    if not found:
        raise KeyUnknown("the token is signed by a key that the provider hasn't got")
    return found[0]


def _signed(token: str, key: Key, algorithm: str) -> bytes:
    """Return what a signature is of, if it is the key's."""
    try:
        found = jwt.PyJWS(algorithms=[algorithm]).decode_complete(token, key.public, algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise TokenRefused("the token's signature is not the provider's") from error
    payload: bytes = found["payload"]
    return payload


def _require(claims: Mapping[str, Any], rules: Rules, now: float) -> None:
    if claims.get("iss") != rules.issuer:
        raise TokenRefused(f"the token is not of `{rules.issuer}`")
    audience = claims.get("aud")
    if rules.audience not in (audience if isinstance(audience, list) else [audience]):
        raise TokenRefused(f"the token is not meant for `{rules.audience}` (`aud`)")
    ends, begins, made = (_moment(claims, name) for name in ("exp", "nbf", "iat"))
    if ends is None:
        raise TokenRefused("the token has no end (`exp`)")
    if now >= ends + rules.leeway_s:
        raise TokenRefused("the token has expired")
    for begin in (begins, made):
        if begin is not None and begin > now + rules.leeway_s:
            raise TokenRefused("the token counts from later on; is the clock right?")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= CLAIMED_CHARS or not subject.isprintable():
        raise TokenRefused("the token doesn't say whose it is (`sub`)")


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    found = claims.get(name)
    if found is None:
        return None
    try:
        moment = math.nan if isinstance(found, bool) or not isinstance(found, int | float) else float(found)
    except OverflowError:  # a whole number of hundreds of digits
        moment = math.inf
    if not math.isfinite(moment):
        raise TokenRefused(f"the token's `{name}` is no moment")
    return moment


def claimed(claims: Mapping[str, object], path: str) -> object:
    """Return a claim; None: there is none.

    Args:
        claims: Of a token.
        path: A name, which may have dots in it (`https://example.com/roles`), or where to find it in claims that hold
            others (`realm_access.roles`).
    """
    if path in claims:
        return claims[path]
    head, dot, rest = path.partition(".")
    below = claims.get(head)
    return claimed(below, rest) if dot and isinstance(below, Mapping) else None


def words_of(found: object) -> Collection[str]:
    """Return the words of a claim: a list of them, or one, or some with spaces between."""
    if isinstance(found, str):
        return found.split()
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else ()
