"""Tokens of a provider: what counts, and every forgery that is known."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import KeyUnknown, ProviderUnusable, TokenRefused
from checkstream.listen.tokens import MOST_CHARS, Rules, claimed, read_keys, verified, words_of
from tests.provider import SigningKey

NOW = 1_800_000_000.0
RULES = Rules("https://login", "control", frozenset({"RS256", "PS256", "ES256", "EdDSA"}), 60)
CLAIMS: dict[str, Any] = {"iss": "https://login", "aud": "control", "sub": "jane", "exp": NOW + 600, "iat": NOW}
KEYS = {each: SigningKey(each, f"kid-{each}") for each in ("RS256", "PS256", "ES256", "EdDSA")}
SET = read_keys(json.dumps({"keys": [key.jwk() for key in KEYS.values()]}).encode())
GOOD = KEYS["ES256"]


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw(header: object, claims: object = CLAIMS, sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    """Return a token of any words, signed anyhow."""
    parts = (each if isinstance(each, bytes) else json.dumps(each).encode() for each in (header, claims))
    body = ".".join(map(encoded, parts))
    return f"{body}.{encoded(sign(body.encode()))}"


def signed_es(body: bytes) -> bytes:
    """Sign as the good key does, whatever the words are."""
    import jwt

    found: bytes = jwt.get_algorithm_by_name("ES256").sign(body, GOOD.private)
    return found


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_token_of_each_kind_of_key_says_what_it_claims(algorithm: str) -> None:
    assert verified(KEYS[algorithm].sign(CLAIMS), SET, RULES, NOW) == CLAIMS
    with pytest.raises(TokenRefused, match="doesn't count here"):
        verified(KEYS[algorithm].sign(CLAIMS), SET, Rules("https://login", "control", frozenset(), 0), NOW)


def test_algorithms_that_prove_nothing_never_count() -> None:
    pem = KEYS["RS256"].pem()
    for name in ("none", "None", "NONE", "", "HS256", "HS512", "RS1", "ES384", 5, None, ["ES256"]):
        header = {"alg": name, "kid": "kid-RS256"}
        forged = raw(header, sign=lambda body: hmac.digest(pem, body, hashlib.sha256))
        for token in (forged, forged.rpartition(".")[0] + "."):
            with pytest.raises(TokenRefused, match="doesn't count"):
                verified(token, SET, RULES, NOW)
    hmac_by_public_key = raw(
        {"alg": "RS256", "kid": "kid-RS256"}, sign=lambda body: hmac.digest(pem, body, hashlib.sha256)
    )
    with pytest.raises(TokenRefused, match="signature"):
        verified(hmac_by_public_key, SET, RULES, NOW)


def test_a_key_that_a_token_brings_along_is_never_looked_at() -> None:
    own = SigningKey("ES256", "kid-ES256")
    for more in (
        {"jwk": own.jwk()}, {"jku": "https://evil/jwks"}, {"x5u": "https://evil/cert"}, {"x5c": [encoded(own.pem())]},
        {"kid": "../../dev/null"}, {"kid": "kid-RS256"}, {"kid": "' or 1=1"},
    ):  # fmt: skip
        with pytest.raises(TokenRefused):
            verified(own.sign(CLAIMS, **more), SET, RULES, NOW)
    harmless = GOOD.sign(CLAIMS, jku="https://evil/jwks")
    assert verified(harmless, SET, RULES, NOW) == CLAIMS


def test_a_key_signs_by_the_algorithms_of_its_kind_alone() -> None:
    crossed = raw({"alg": "ES256", "kid": "kid-EdDSA"}, sign=KEYS["EdDSA"].private.sign)
    with pytest.raises(KeyUnknown):
        verified(crossed, SET, RULES, NOW)
    as_other = raw({"alg": "EdDSA", "kid": "kid-ES256"}, sign=KEYS["EdDSA"].private.sign)
    with pytest.raises(KeyUnknown):
        verified(as_other, SET, RULES, NOW)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"iss": "https://other"}, "is not of `https://login`"),
        ({"iss": "https://login/"}, "is not of"),
        ({"iss": ["https://login"]}, "is not of"),
        ({"iss": None}, "is not of"),
        ({"aud": "another"}, "not meant for"),
        ({"aud": ["a", "b"]}, "not meant for"),
        ({"aud": {"control": 1}}, "not meant for"),
        ({"aud": None}, "not meant for"),
        ({"exp": NOW - 61}, "has expired"),
        ({"exp": None}, "has no end"),
        ({"exp": "9999999999"}, "no moment"),
        ({"exp": True}, "no moment"),
        ({"exp": [NOW + 9]}, "no moment"),
        ({"exp": 10**400}, "no moment"),
        ({"exp": float("inf")}, "no moment"),
        ({"iat": -(10**400)}, "no moment"),
        ({"nbf": NOW + 61}, "from later on"),
        ({"iat": NOW + 61}, "from later on"),
        ({"sub": None}, "whose it is"),
        ({"sub": ""}, "whose it is"),
        ({"sub": 5}, "whose it is"),
        ({"sub": "x" * 256}, "whose it is"),
        ({"sub": "a\nb"}, "whose it is"),
    ],
)
def test_claims_that_are_not_for_us_or_not_for_now_are_refused(changed: dict[str, Any], said: str) -> None:
    claims = {name: value for name, value in {**CLAIMS, **changed}.items() if value is not None}
    with pytest.raises(TokenRefused, match=said):
        verified(raw({"alg": "ES256", "kid": "kid-ES256"}, claims, signed_es), SET, RULES, NOW)


def test_times_hold_for_the_leeway_and_no_longer() -> None:
    token = GOOD.sign({**CLAIMS, "nbf": NOW})
    for now, good in ((NOW - 61, False), (NOW - 60, True), (NOW + 659, True), (NOW + 660, False)):
        if good:
            assert verified(token, SET, RULES, now)["sub"] == "jane"
        else:
            with pytest.raises(TokenRefused):
                verified(token, SET, RULES, now)
    assert verified(GOOD.sign({**CLAIMS, "aud": ["x", "control"]}), SET, RULES, NOW)["aud"] == ["x", "control"]


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        (b'{"alg":"ES256","alg":"none","kid":"kid-ES256"}', CLAIMS),
        ({"alg": "ES256", "kid": "kid-ES256"}, b'{"iss":"https://login","sub":"eve","sub":"jane","exp":1e12}'),
        ({"alg": "ES256", "kid": "kid-ES256", "crit": ["b64"], "b64": False}, CLAIMS),
        ({"alg": "ES256", "kid": "kid-ES256", "typ": "logout+jwt"}, CLAIMS),
        ({"alg": "ES256", "kid": "kid-ES256", "typ": {}}, CLAIMS),
        ({"alg": "ES256", "kid": "kid-ES256"}, b'{"exp":NaN,"iss":"https://login","aud":"control","sub":"j"}'),
        ({"alg": "ES256", "kid": "kid-ES256"}, b'{"exp":1e999,"iss":"https://login","aud":"control","sub":"j"}'),
        ({"alg": "ES256", "kid": "kid-ES256"}, b"[" * 5000),
        ({"alg": "ES256", "kid": "kid-ES256"}, b"\xff\xfe{}"),
        ({"alg": "ES256", "kid": "kid-ES256"}, b"[]"),
        ({"alg": "ES256", "kid": 5}, CLAIMS),
        (b"[]", CLAIMS),
        (b'{"a":' * 3000, CLAIMS),
        (b"", CLAIMS),
    ],
)
def test_what_two_readers_could_read_differently_is_refused_though_it_is_signed(header: object, claims: object) -> None:
    with pytest.raises(TokenRefused):
        verified(raw(header, claims, signed_es), SET, RULES, NOW)


def test_what_is_no_token_or_too_long_is_refused_at_once() -> None:
    nested = GOOD.sign({**CLAIMS, "inner": GOOD.sign(CLAIMS)})
    assert verified(nested, SET, RULES, NOW)["sub"] == "jane", "a token in a token is a word"
    begun = time.process_time()
    for text in ("", ".", "..", "a.b", "a.b.c.d", "é.é.é", "." * 100_000, "a" * 10_000_000, GOOD.sign(CLAIMS) + " "):
        with pytest.raises(TokenRefused):
            verified(text, SET, RULES, NOW)
    long = GOOD.sign({**CLAIMS, "x": "y" * MOST_CHARS})
    with pytest.raises(TokenRefused, match="more than"):
        verified(long, SET, RULES, NOW)
    assert time.process_time() - begun < 1


@given(st.data())
def test_no_change_of_a_token_is_taken(data: st.DataObject) -> None:
    token = GOOD.sign(CLAIMS)
    at = data.draw(st.integers(0, token.rindex(".") - 1))  # of the signature, several texts spell one number
    letter = data.draw(st.characters(codec="ascii"))
    changed = token[:at] + letter + token[at + 1 :]
    if changed != token:
        with pytest.raises(TokenRefused):
            verified(changed, SET, RULES, NOW)


def test_of_a_set_only_keys_that_verify_count() -> None:
    entry = GOOD.jwk()
    secret = {"kty": "oct", "k": encoded(b"x" * 32), "kid": "kid-ES256", "alg": "HS256"}
    useless: list[object] = [
        secret, {**entry, "use": "enc"}, {**entry, "key_ops": ["sign"]}, {**entry, "kty": "RSA"}, {**entry, "kid": 5},
        {**entry, "crv": "P-999"}, {**entry, "x": "AA"}, {}, {"kty": "RSA"}, 7, None,
    ]  # fmt: skip
    small = {"kty": "RSA", "n": encoded((2**1023 + 1).to_bytes(128, "big")), "e": "AQAB", "kid": "small"}
    assert read_keys(json.dumps({"keys": [*useless, small]}).encode()) == ()
    assert [key.kid for key in read_keys(json.dumps({"keys": [*useless, entry]}).encode())] == ["kid-ES256"]
    for broken in (b"", b"{}", b"[]", b'{"keys": {}}', b"\xff", b'{"keys":[],"keys":[]}', b'{"keys":' + b"[" * 9000):
        with pytest.raises(ProviderUnusable):
            read_keys(broken)
    with pytest.raises(ProviderUnusable):
        read_keys(json.dumps({"keys": [entry] * 101}).encode())


def test_a_token_without_the_name_of_a_key_is_that_of_the_only_one() -> None:
    token = GOOD.sign(CLAIMS, kid=None)
    assert verified(token, SET, RULES, NOW) == CLAIMS
    two = read_keys(json.dumps({"keys": [GOOD.jwk(), SigningKey("ES256", "x").jwk()]}).encode())
    with pytest.raises(KeyUnknown):
        verified(token, two, RULES, NOW)


def test_a_claim_is_found_by_its_name_or_its_path() -> None:
    claims = {"a.b": 1, "a": {"b": 2, "c.d": 3, "e": {"f": ["x", 5]}}, "s": "x y"}
    assert [claimed(claims, path) for path in ("a.b", "a.c.d", "a.e.f", "a.e.f.g", "z", "s.t")] == [
        1, 3, ["x", 5], None, None, None,
    ]  # fmt: skip
    assert [[*words_of(found)] for found in (["x", 5], "x y", 5, None)] == [["x"], ["x", "y"], [], []]
