"""The control server's operations on evidence: what nodes send, what its holders fetch, and what is erased."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.config.servers import CALLER_CHARS
from checkstream.control.server.evidence import Erased, Evidence, Found, Kept
from checkstream.control.server.people import People
from checkstream.control.telemetry.evidence import Parcel
from checkstream.listen import Identity

_SECONDS = 30.0
_Short = Annotated[str, Meta(max_length=200)]


class EvidenceAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which exchange."""

    stream: _Short
    """Its id, as its caller got it in `x-checkstream-stream`."""


class ErasureAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be erased: that of one exchange, or all of a caller."""

    stream: _Short = ""
    caller: Annotated[str, Meta(max_length=CALLER_CHARS)] = ""
    reason: Annotated[str, Meta(max_length=1000)] = ""


class EvidenceFound(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence of one exchange; nodes could tell of two with one id, if one of them lies."""

    evidence: tuple[Found, ...]


class EvidenceApi:
    """Takes evidence, and gives it back sealed."""

    def __init__(self, evidence: Evidence, people: People) -> None:
        """Ask `evidence`, on behalf of `people`."""
        self._evidence = evidence
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        send = "A node sends evidence of an exchange, sealed; the body is packed by Zstandard."
        fetch = "What was kept of an exchange, for whoever has the key?"
        refused = {"403": "Who asks may not do this."}
        full = {"429": "There is no more room for this node."}
        unsaid = {**refused, "409": "It is not said of what."}
        return (
            Operation(
                "POST", "/v1/evidence", send, Parcel, (Kept,), self._receive, _SECONDS, "node", also=full, packed=True
            ),
            Operation(
                "GET", "/v1/evidence/{stream}", fetch, EvidenceAsked, (EvidenceFound,), self._find, _SECONDS,
                also=refused,
            ),
            Operation(
                "POST", "/v1/evidence/erase", "Erase evidence.", ErasureAsked, (Erased,), self._erase, _SECONDS,
                also=unsaid,
            ),
        )  # fmt: skip

    async def _receive(self, body: bytes, node: Identity) -> Kept:
        return await self._evidence.receive(node.name or "", body)

    async def _find(self, asked: EvidenceAsked, caller: Identity) -> EvidenceFound:
        self._people.asker(caller, "view")
        return EvidenceFound(evidence=tuple(await self._evidence.find(asked.stream)))

    async def _erase(self, asked: ErasureAsked, caller: Identity) -> Erased:
        who = self._people.asker(caller, "erase")
        return await self._evidence.erase(who, stream=asked.stream, caller=asked.caller, reason=asked.reason)
