"""What an entity trigger lets pass: what the caller already has, and what the policy's author allows.

Values of a request are kept as digests, so that nothing of it is written out by being remembered.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.core.match.entities.canonical import domain_of, keys
from checkstream.core.terms import Span

MAX_VALUES = 10_000
MAX_VALUE_CHARS = 320
MAX_DOMAINS = 1_000

Said = Literal["system", "user", "assistant", "tool_result", "document"]
Value = Annotated[str, Meta(min_length=1, max_length=MAX_VALUE_CHARS)]
Domain = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"\A(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*\Z")]
KnownValues = Mapping[str, frozenset[bytes]]
"""Ingress channel -> digests of the values that stand in its messages."""


class Spares(msgspec.Struct, frozen=True, kw_only=True):
    """What is found as an entity and counts for nothing."""

    request: tuple[Said, ...] = ()
    """Ingress channels: a value that stands in a message of one of them; sorted."""
    values: Annotated[tuple[Value, ...], Meta(max_length=4 * MAX_VALUES)] = ()
    """Keys of the values that are allowed (`entities.canonical`); sorted."""
    domains: Annotated[tuple[Domain, ...], Meta(max_length=MAX_DOMAINS)] = ()
    """Domains of e-mail and web addresses; `*.` before one stands for those below it. Sorted."""

    def let_pass(self, entity: str, text: str, known: KnownValues) -> str:
        """Return why what was found as `entity` counts for nothing, in words; empty: it counts.

        Args:
            entity: Its name.
            text: What was found, as it says.
            known: What stands in the request.
        """
        asked = keys(entity, text).asked
        if any(_stands_in(self.values, key) for key in asked):
            return "`allow` has this value"
        if self.domains and self._is_of_domain(domain_of(entity, text)):
            return "`allow` has its domain"
        digests = [digest_of(entity, key) for key in asked] if self.request else []
        for channel in self.request:
            if not known.get(channel, _NONE).isdisjoint(digests):
                return f"`unless: in_request`: channel `{channel}` has it"
        return ""

    def _is_of_domain(self, domain: str) -> bool:
        below = (f"*.{domain[place + 1 :]}" for place, char in enumerate(domain) if char == ".")
        return any(_stands_in(self.domains, name) for name in (domain, *below))


def spared_with(span: Span, spared: Iterable[Span]) -> Span | None:
    """Return the spared value that has a span within it, and spares with it what triggers that spare find there."""
    return next((whole for whole in spared if whole.start <= span.start and span.end <= whole.end), None)


_NONE = frozenset[bytes]()


def _stands_in(ordered: tuple[str, ...], item: str) -> bool:
    place = bisect_left(ordered, item)
    return place < len(ordered) and ordered[place] == item


def digest_of(entity: str, key: str) -> bytes:
    """Return what is kept of a value of the request."""
    entity = entity.removesuffix("_LOOSE")
    text = f"{entity}\x00{key}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
