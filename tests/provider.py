"""A real OpenID provider for tests: keys of every kind that rotate, codes with PKCE, tokens, and its own faults."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ec_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CLIENT, SECRET, AUDIENCE = "console", "the-secret-of-the-console", "control"


class SigningKey:
    """A private key and how it signs."""

    def __init__(self, algorithm: str, kid: str) -> None:
        self.algorithm, self.kid = algorithm, kid
        if algorithm in {"RS256", "PS256"}:
            self.private: Any = rsa_key(65537, 2048)
        else:
            self.private = ec_key(SECP256R1()) if algorithm == "ES256" else Ed25519PrivateKey.generate()

    def jwk(self, **more: object) -> dict[str, Any]:
        maker = jwt.get_algorithm_by_name(self.algorithm)
        entry: dict[str, Any] = json.loads(maker.to_jwk(self.private.public_key()))
        return {**entry, "kid": self.kid, "use": "sig", "alg": self.algorithm, **more}

    def pem(self) -> bytes:
        found: bytes = self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return found

    def sign(self, claims: Mapping[str, Any], **headers: Any) -> str:
        named = {"kid": self.kid, **headers}
        return jwt.encode(
            dict(claims), self.private, self.algorithm, {at: each for at, each in named.items() if each is not None}
        )


class Person:
    """Somebody with an account."""

    def __init__(self, subject: str, **claims: Any) -> None:
        self.subject, self.claims = subject, claims


class Provider:
    """Serves while `serving`; everybody who comes is `person`."""

    def __init__(self) -> None:
        self.keys = [SigningKey("ES256", "first")]
        self.person = Person("248289761001", name="Jane Doe", roles=["risk"])
        self.asked: Counter[str] = Counter()
        self.down = False
        self.answers: dict[str, web.Response] = {}
        """Path -> what is answered there in place of the truth."""
        self.said: dict[str, Any] = {}
        """What it says of itself otherwise than it should."""
        self.lives_s = 600
        self.url = ""
        self._codes: dict[str, dict[str, str]] = {}

    def claims(self, audience: str = AUDIENCE, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": self.url, "aud": audience, "sub": self.person.subject, "iat": now, "exp": now + self.lives_s,
            **self.person.claims, **more,
        }  # fmt: skip

    def token(self, audience: str = AUDIENCE, **more: Any) -> str:
        return self.keys[-1].sign(self.claims(audience, **more))

    def rotate(self, algorithm: str = "ES256", *, keep: bool = False) -> SigningKey:
        made = SigningKey(algorithm, secrets.token_hex(4))
        self.keys = [*(self.keys if keep else ()), made]
        return made

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Provider]:
        runner = web.ServerRunner(web.Server(self._answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        self.asked[request.path] += 1
        if self.down:
            return web.Response(status=503)
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == "/.well-known/openid-configuration":
            return web.json_response(self._described())
        if request.path == "/jwks":
            return web.json_response({"keys": [key.jwk() for key in self.keys]})
        if request.path == "/authorize":
            return self._authorize(request.query)
        if request.path == "/token":
            return self._redeem({**await request.post()}, request.headers.get("authorization", ""))
        return web.Response(status=404)

    def _described(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "response_types_supported": ["code"],
            "authorization_response_iss_parameter_supported": True,
            **self.said,
        }

    def _authorize(self, query: Mapping[str, str]) -> web.Response:
        right = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        if any(query.get(name) != value for name, value in right.items()) or "openid" not in query["scope"].split():
            return web.Response(status=400, text="this is no request for a code")
        code = secrets.token_urlsafe(16)
        self._codes[code] = dict(query)
        back = urlencode({"code": code, "state": query["state"], "iss": self.url})
        return web.Response(status=303, headers={"location": f"{query['redirect_uri']}?{back}"})

    def _redeem(self, form: Mapping[str, Any], authorization: str) -> web.Response:
        asked = self._codes.pop(str(form.get("code")), None)
        if asked is None or form.get("grant_type") != "authorization_code":
            return web.json_response({"error": "invalid_grant"}, status=400)
        if authorization != f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}":
            return web.json_response({"error": "invalid_client"}, status=401)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = self.token(CLIENT, nonce=asked["nonce"])
        return web.json_response({"access_token": "unused", "token_type": "Bearer", "id_token": token})
