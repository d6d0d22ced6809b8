"""People whom an OpenID provider knows, as they ask the API by token, and as they log in at the console by code.

Source: OpenID Connect Core 1.0, 3.1; RFC 7636 (PKCE); RFC 9207 (who answers is who was asked); RFC 6749, 2.3.1.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote_plus, urlencode

import msgspec

from checkstream.config.control import ControlConfig, Oidc
from checkstream.control.server.people import Asker, People, provided
from checkstream.errors import ActForbidden, NotReady, ProviderUnusable, TokenRefused
from checkstream.listen import Identity
from checkstream.listen.issuer import Issuer
from checkstream.listen.tokens import claimed
from checkstream.telemetry.logs import Log

BACK = "/console/oidc/back"


class Asked(NamedTuple):
    """What one log-in is known by."""

    state: str
    """Comes back with the browser."""
    nonce: str
    """Comes back in the token."""
    verifier: str
    """Shows the provider that who has the code is who has asked for it."""


class LoggedIn(NamedTuple):
    """Somebody who has logged in."""

    who: Asker
    called: str
    """What the provider calls them; empty: nothing."""
    ends: float
    """When the token does, seconds since 1970."""


class _Redeemed(msgspec.Struct, frozen=True):
    id_token: str


class Provided:
    """Tells who of a provider's people somebody is. Implements `listen.callers.Tokens`."""

    def __init__(self, config: ControlConfig, oidc: Oidc, secret: str | None, people: People, log: Log) -> None:
        """Ask the provider that `oidc` names, with the console's `secret`; `people` hear of whom it knows."""
        self.oidc = oidc
        self.issuer = Issuer(oidc, lambda fault: log.warning("oidc.unreachable", detail=fault))
        self._secret = secret
        self._log = log
        self._people = people
        self._subjects = config.subjects
        self._roles = {name: person.role for name, person in config.people.items()}

    async def identity(self, token: str, address: str) -> Identity:
        """Return whose token of the API it is, which came from `address`.

        Raises:
            TokenRefused: it is none that counts.
            ActForbidden: the provider gives them no role that counts here.
            NotReady: the provider can't be asked.
        """
        if self.oidc.audience is None:
            raise TokenRefused("tokens don't count for this API (`oidc.audience`); use a key")
        claims = await self.issuer.claims(token, self.oidc.audience, address)
        who = self._who(claims)
        said = claims.get("iat", claims["exp"])
        self._people.meet(who, said if isinstance(said, int | float) else 0.0)
        return Identity(who.name, "authorization", role=who.role)

    def _who(self, claims: Mapping[str, object]) -> Asker:
        return provided(self.oidc, claims, self._subjects, self._roles)

    # --- the console

    async def place(self, asked: Asked, address: str) -> str:
        """Return where a browser at `address` goes to log in.

        Raises:
            NotReady: the provider can't be asked, or lets nobody log in.
        """
        provider = await self.issuer.provider(address)
        if not provider.authorization_endpoint or not provider.token_endpoint:
            raise NotReady("the provider lets nobody log in by code; log in with a key")
        digest = hashlib.sha256(asked.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.oidc.client_id or "",
            "redirect_uri": self._back,
            "scope": " ".join(self.oidc.scopes),
            "state": asked.state,
            "nonce": asked.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        there = provider.authorization_endpoint
        return f"{there}{'&' if '?' in there else '?'}{urlencode(query)}"

    @property
    def _back(self) -> str:
        return f"{(self.oidc.url or '').rstrip('/')}{BACK}"

    async def redeemed(self, asked: Asked, code: str, issuer: str | None, address: str) -> LoggedIn:
        """Return who has come back with a code.

        Args:
            asked: What this log-in is known by.
            code: As it came.
            issuer: Who has given it, as the browser says; None: nothing is said.
            address: Where the browser is.

        Raises:
            TokenRefused: another provider has given it, or what it is redeemed for is no token for this log-in.
            ActForbidden: the provider gives them no role that counts here.
            NotReady: the provider can't be asked.
        """
        provider = await self.issuer.provider(address)
        said = provider.authorization_response_iss_parameter_supported
        if issuer != self.oidc.issuer and (issuer is not None or said):
            raise TokenRefused("another provider has answered than the one that was asked")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._back,
            "code_verifier": asked.verifier,
        }
        client, authorization = self.oidc.client_id or "", ""
        if self._secret is None:
            form["client_id"] = client
        else:
            pair = f"{quote_plus(client)}:{quote_plus(self._secret)}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        try:
            with self.issuer.waiting(address):
                body = await self.issuer.ask(provider.token_endpoint, form, authorization)
            token = (await asyncio.to_thread(msgspec.json.decode, body, type=_Redeemed)).id_token
        except ProviderUnusable as error:
            self._log.warning("oidc.code_refused", detail=str(error))
            raise TokenRefused("the provider doesn't take the code; log in again") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TokenRefused("the provider has given no token for the code; log in again") from error
        return await self._logged_in(token, asked.nonce, address)

    async def _logged_in(self, token: str, nonce: str, address: str) -> LoggedIn:
        claims = await self.issuer.claims(token, self.oidc.client_id or "", address)
        if claims.get("nonce") != nonce:
            raise TokenRefused("the token is of another log-in (`nonce`)")
        audience, party = claims["aud"], claims.get("azp")
        if party not in (None, self.oidc.client_id) or (isinstance(audience, list) and len(audience) > 1 and not party):
            raise TokenRefused("the token was made for another (`azp`)")
        try:
            who = self._who(claims)
        except ActForbidden as error:
            self._log.warning("oidc.no_role", detail=str(error))
            raise
        called, ends = claimed(claims, self.oidc.name_claim), claims["exp"]
        return LoggedIn(who, called if isinstance(called, str) else "", ends if isinstance(ends, int | float) else 0.0)
