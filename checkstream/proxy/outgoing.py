"""What is sent to the upstream besides the body."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from checkstream.telemetry.traces import TRACEPARENT

_KEYS_OF_ONE_REQUEST = frozenset({"idempotency-key", "x-idempotency-key"})


class Outgoing(msgspec.Struct, frozen=True):
    """What is sent to the upstream besides the body."""

    target: str
    """Path and query."""
    headers: tuple[tuple[str, str], ...]
    key_header: str | None
    content_type: str | None = None
    """What the body of an unguarded request is; a guarded one is JSON."""
    party: str = ""
    """Whose connections it goes on: a caller's, or those of an address that nobody has a name for."""
    method: str = "POST"
    """Of a guarded request."""
    patient: bool = False
    """Its answer may be silent for as long as one may take to begin, and a stream of the server's own for ever."""

    def traced(self, traceparent: str) -> Outgoing:
        """Return it as a part of a trace."""
        return msgspec.structs.replace(self, headers=(*self.bare({TRACEPARENT}).headers, (TRACEPARENT, traceparent)))

    def bare(self, names: Collection[str]) -> Outgoing:
        """Return it without some headers."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() not in names)
        return msgspec.structs.replace(self, headers=kept)

    def again(self) -> Outgoing:
        """Return it for a further request of the exchange: under no key by which a server gives the first answer."""
        return self.bare(_KEYS_OF_ONE_REQUEST)
