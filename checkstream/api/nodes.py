"""Which node asks: it signs what it sends, so that nothing that was sent elsewhere, or altered, counts as its own."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from aiohttp.web import BaseRequest

from checkstream.audit.keys import PublicKey
from checkstream.control.identity import DIGEST, NODE, SIGNATURE, digest_of, signed_by
from checkstream.errors import CallerUnknown


class Nodes:
    """Who may ask as a node."""

    def __init__(self, keys: Mapping[str, PublicKey]) -> None:
        """Know nodes by `name -> public key`."""
        self._keys = keys

    def named(self, request: BaseRequest) -> str:
        """Return the node that has signed a request. Its body is not read for that: nobody else's is to take room.

        Raises:
            CallerUnknown: it says no node, one that nobody knows, or is not signed by its key; all are told the same.
        """
        name, digest = request.headers.get(NODE, ""), request.headers.get(DIGEST, "")
        key, signature = self._keys.get(name), request.headers.get(SIGNATURE, "")
        if key is None or not signed_by(key, signature, request.method, request.rel_url.raw_path, digest):
            raise CallerUnknown(
                f"this is not signed by a node `{name[:100]}` that the control server knows; add it to a fleet's "
                "`nodes` in the control server's file, with its newest public key"
            )
        return name

    def require(self, request: BaseRequest, body: bytes) -> None:
        """Go on with a body that the node has signed.

        Raises:
            CallerUnknown: it has signed another.
        """
        if not hmac.compare_digest(request.headers.get(DIGEST, ""), digest_of(body)):
            raise CallerUnknown(f"this body is not the one that `{self.named(request)}` has signed; it was altered")
