"""Is a node what its fleet allows? Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from checkstream.config.control import Allowed
from checkstream.control.attestation import Attestation

Kind = Literal["package", "configuration", "image"]
KINDS: tuple[Kind, ...] = ("package", "configuration", "image")


def listed(allow: Allowed, kind: Kind) -> tuple[str, ...] | Literal["any"]:
    """Return the list of the file."""
    return {"package": allow.packages, "configuration": allow.configurations, "image": allow.images}[kind]


def objection(fleet: str, allow: Allowed, added: Mapping[str, Collection[str]], said: Attestation) -> str:
    """Return why a node gets no bundle; empty: it does.

    Args:
        fleet: Its name.
        allow: The lists of the file.
        added: What people have added: kind -> values.
        said: What the node has said.
    """
    for kind in KINDS:
        known = listed(allow, kind)
        value: str = getattr(said.running if kind == "configuration" else said, kind)
        if known != "any" and value not in known and value not in added.get(kind, ()):
            what = f"{kind} `{value}`" if value else f"{kind}, which it doesn't tell (`CHECKSTREAM_IMAGE_DIGEST`),"
            return (
                f"the node's {what} is not on the list of fleet `{fleet}`; if it should be, "
                f"`checkstream control allow {fleet} {kind} {value or 'DIGEST'}`"
            )
    return ""
