"""Personal data and secrets, each with a regex that finds candidates and a validator that decides.

`ENTITIES` is the whole list, by the name that policies use. Validators keep to the text that a stream has at hand
(see `entity`), so a finding never depends on how the text was cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from checkstream.core.match.entities import (
    cards,
    cloud,
    contacts,
    documents,
    hidden,
    national,
    national_eu,
    network,
    payment,
    secrets,
    ssn,
    tokens,
    wallets,
    web,
)
from checkstream.core.match.entities.entity import Entity

__all__ = ["ENTITIES", "Entity"]

ENTITIES: Mapping[str, Entity] = MappingProxyType({
    entity.name: entity
    for group in (
        *(contacts, ssn, national, national_eu, cards, payment, network, wallets, documents, tokens, cloud, secrets),
        *(web, hidden),
    )
    for entity in group.ENTITIES
})  # fmt: skip
"""Every entity, by name."""
