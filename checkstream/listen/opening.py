"""Who may call a proxy and the API beside it, as its settings say."""

from __future__ import annotations

import msgspec

from checkstream.config import Server, reveal
from checkstream.config.certificates import read_pattern
from checkstream.config.servers import BY_JWT, CLAIMED_CHARS, JwtCallers
from checkstream.errors import TokenRefused
from checkstream.listen.callers import Callers, Identity
from checkstream.listen.issuer import Issuer
from checkstream.listen.tokens import claimed
from checkstream.telemetry.logs import Log


class JwtNames:
    """Tells whose tokens of callers are. Implements `listen.callers.Tokens`."""

    def __init__(self, settings: JwtCallers, issuer: Issuer) -> None:
        """Ask `issuer` what tokens claim."""
        self._settings = settings
        self._issuer = issuer

    async def identity(self, token: str, address: str) -> Identity:
        """Return who has a token that came from `address`, and what it says for policies.

        Raises:
            TokenRefused: it is none that counts, or doesn't say whose it is.
            NotReady: the provider can't be asked, or too many wait for it.
        """
        settings = self._settings
        claims = await self._issuer.claims(token, settings.audience, address)
        name = claimed(claims, settings.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= CLAIMED_CHARS or not name.isprintable():
            raise TokenRefused(f"the token doesn't say whose it is (`{settings.name_claim}`)")
        known = {field: claimed(claims, path) for field, path in settings.context.items()}
        return Identity(f"{BY_JWT}{name}", "authorization", msgspec.json.encode(known).decode() if known else "")


def issuer_of(server: Server, log: Log) -> Issuer | None:
    """Return the provider of callers' tokens; None: callers have none. Who has it closes it."""
    if server.jwt is None:
        return None
    return Issuer(server.jwt, lambda fault: log.warning("jwt.unreachable", detail=fault))


def callers_of(server: Server, issuer: Issuer | None) -> Callers:
    """Return who may call. Blocks on files.

    Raises:
        ConfigError: a key can't be read.
    """
    if server.callers == "none":
        return Callers(None)
    unsaid = {} if server.jwt is None else dict.fromkeys(server.jwt.context)
    return Callers(
        {caller.name: reveal(caller.key) for caller in server.known if caller.key is not None},
        tokens=None if issuer is None or server.jwt is None else JwtNames(server.jwt, issuer),
        certificates={
            caller.name: read_pattern(caller.certificate) for caller in server.known if caller.certificate is not None
        },
        unsaid=msgspec.json.encode(unsaid).decode() if unsaid else "",
    )
