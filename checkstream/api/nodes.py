"""Which node asks: it signs what it sends, so that nothing that was sent elsewhere, or altered, counts as its own."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp.web import BaseRequest

from checkstream.audit.keys import PublicKey
from checkstream.control.identity import NODE, SIGNATURE, signed_by
from checkstream.errors import CallerUnknown


class Nodes:
    """Who may ask as a node."""

    def __init__(self, keys: Mapping[str, PublicKey]) -> None:
        """Know nodes by `name -> public key`."""
        self._keys = keys

    def named(self, request: BaseRequest) -> str:
        """Return the node that a request says it is of, before its body is read.

        Raises:
            CallerUnknown: it says none, or one that nobody knows.
        """
        name = request.headers.get(NODE, "")
        if name not in self._keys:
            said = f"there is no node `{name[:100]}`" if name else "no node is named"
            raise CallerUnknown(f"{said}; add it and its public key to a fleet's `nodes` in the control server's file")
        return name

    def require(self, request: BaseRequest, body: bytes) -> None:
        """Go on with a request that the node has signed.

        Raises:
            CallerUnknown: it has not.
        """
        name, signature = self.named(request), request.headers.get(SIGNATURE, "")
        if not signed_by(self._keys[name], signature, request.method, request.rel_url.raw_path, body):
            raise CallerUnknown(
                f"this is not signed by the key that the control server has for the node `{name}`; give it that "
                "node's newest public key"
            )
