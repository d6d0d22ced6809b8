"""What an entity trigger lets pass: what the caller already has, and what the policy's author allows.

What validators find is the same where its keys are (`entities.canonical`); what models find has no form, and is the
same where its words are (`match.names`). So a request need not be read by the model that reads the answer: a name that
was found is looked up in its words.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.core.conversation import VALUE_BYTES
from checkstream.core.match.entities.canonical import Keys, domain_of, keys
from checkstream.core.match.names import name_key, tells, tells_digests
from checkstream.core.terms import Span, Told

MAX_VALUES = 10_000
MAX_VALUE_CHARS = 320
MAX_DOMAINS = 1_000

OF_DOMAIN = "`allow` has its domain"
"""Why it counts for nothing, where nothing but its domain is known."""

Said = Literal["system", "user", "assistant", "tool_result", "document"]
Value = Annotated[str, Meta(min_length=1, max_length=MAX_VALUE_CHARS)]
Domain = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"\A(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*\Z")]


class Spares(msgspec.Struct, frozen=True, kw_only=True):
    """What is found as an entity and counts for nothing."""

    request: tuple[Said, ...] = ()
    """Ingress channels: a value that stands in a message of one of them; sorted."""
    values: Annotated[tuple[Value, ...], Meta(max_length=4 * MAX_VALUES)] = ()
    """Keys of the values that are allowed (see `keys_of`); sorted."""
    domains: Annotated[tuple[Domain, ...], Meta(max_length=MAX_DOMAINS)] = ()
    """Domains of e-mail and web addresses; `*.` before one stands for those below it. Sorted."""

    def let_pass(self, entity: str, text: str, told: Told, *, by_model: bool = False) -> str:
        """Return why what was found as `entity` counts for nothing, in words; empty: it counts.

        Args:
            entity: Its name.
            text: What was found, as it says.
            told: What stands in the request.
            by_model: A model has found it.
        """
        asked = keys_of(entity, text, by_model=by_model).asked
        if any(_stands_in(self.values, key) for key in asked):
            return "`allow` has this value"
        if self.domains and self._is_of_domain(domain_of(entity, text)):
            return OF_DOMAIN
        digests = [digest_of(entity, key, told.key) for key in asked] if self.request and not by_model else []
        for channel in self.request:
            words, heard = (told.words.get(channel, ""), told.heard.get(channel, b"")) if by_model else ("", b"")
            if any(tells(words, key) or tells_digests(heard, key, told.key) for key in asked):
                return f"`unless: in_request`: channel `{channel}` has it"
            if not told.values.get(channel, _NONE).isdisjoint(digests):
                return f"`unless: in_request`: channel `{channel}` has it"
        return ""

    def _is_of_domain(self, domain: str) -> bool:
        below = (f"*.{domain[place + 1 :]}" for place, char in enumerate(domain) if char == ".")
        return any(_stands_in(self.domains, name) for name in (domain, *below))


def keys_of(entity: str, text: str, *, by_model: bool) -> Keys:
    """Return the keys of what was found as `entity`, by its validator or by a model."""
    if not by_model:
        return keys(entity, text)
    key = name_key(text)
    return Keys((key,), (key,))


def covers(why: str) -> bool:
    """Tell whether what counts for nothing is known whole, with all that stands within it; of a domain it is not."""
    return bool(why) and why != OF_DOMAIN


def spared_with(span: Span, spared: Iterable[Span]) -> Span | None:
    """Return the spared value that has a span within it, and spares with it what triggers that spare find there."""
    return next((whole for whole in spared if whole.start <= span.start and span.end <= whole.end), None)


_NONE = frozenset[bytes]()


def _stands_in(ordered: tuple[str, ...], item: str) -> bool:
    place = bisect_left(ordered, item)
    return place < len(ordered) and ordered[place] == item


def digest_of(entity: str, key: str, secret: bytes = b"") -> bytes:
    """Return what is kept of a value of the request, `VALUE_BYTES` long; `secret` is the key of what is kept longer."""
    entity = entity.removesuffix("_LOOSE")
    text = f"{entity}\x00{key}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=VALUE_BYTES, key=secret).digest()
