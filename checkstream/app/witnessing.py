"""Builds what keeps evidence of exchanges, of the node's configuration: whose it is, and who may read it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import msgspec

from checkstream.config import Config, read_file
from checkstream.control.telemetry.evidence import (
    MOST_SEALED,
    Exhibit,
    Parcel,
    SealingKey,
    info_of,
    sealing_key,
)
from checkstream.control.telemetry.privacy import Privacy
from checkstream.errors import ConfigError, ControlError, Fault
from checkstream.proxy.witness import Seal, Told, Witness, Witnessed

_KEEP = dt.timedelta(days=7)
"""So long evidence waits for a control server."""


def privacy_of(config: Config) -> Privacy:
    """Return what leaves this node."""
    told = config.telemetry
    return Privacy(usual=told.privacy, routes=told.privacy_of_routes, callers=told.privacy_of_callers)


def open_witness(config: Config, told: Told) -> Witness | None:
    """Return what keeps evidence; None: none is to be kept. Blocks.

    Raises:
        ConfigError: a key can't be read, or the folder can't be made.
    """
    control, settings = config.control, config.telemetry
    privacy = privacy_of(config)
    if control is None or not privacy.tells_all:
        return None
    own = {name: _key(file) for name, file in settings.evidence_keys.items()}
    other = None if settings.evidence_key is None else _key(settings.evidence_key)
    sealers = {name: sealer(control.node, key) for name, key in own.items()}
    usual = None if other is None else sealer(control.node, other)

    def sealing(route: str, caller: str | None) -> Seal | None:
        if privacy.of(route, caller) != "full_evidence":
            return None
        return usual if caller is None else sealers.get(caller, usual)

    try:
        return Witness(Path(settings.evidence_dir), settings.evidence_bytes, _KEEP, sealing, told)
    except OSError as error:
        reason = f"`{settings.evidence_dir}` can't be used: {(error.strerror or 'no reason given').lower()}"
        raise ConfigError((Fault(file="telemetry", reason=reason, advice="give another `evidence_dir`"),)) from error


def sealer(node: str, key: SealingKey) -> Callable[[Witnessed], bytes | None]:
    """Return what makes parcels that only the holder of a key's other half can open."""

    def seal(found: Witnessed) -> bytes | None:
        exhibit = Exhibit(
            stream=found.stream,
            route=found.route,
            caller=found.caller,
            transcript=found.transcript.decode("utf-8", "replace"),
            released=found.released,
        )
        content = key.seal(exhibit, info_of(node, found.chain, found.seq, found.hash))
        if len(content) > MOST_SEALED:
            return None
        parcel = Parcel(
            chain=found.chain,
            seq=found.seq,
            hash=found.hash,
            stream=found.stream,
            route=found.route,
            caller=found.caller,
            key=key.name,
            at_ms=int(found.began.timestamp() * 1000),
            sealed=content,
        )
        return msgspec.json.encode(parcel)

    return seal


def _key(file: str) -> SealingKey:
    """Read a public key. Blocks.

    Raises:
        ConfigError: it can't be read, or is none.
    """
    try:
        return sealing_key(read_file(Path(file)), file)
    except OSError as error:
        reason, advice = f"`{file}` can't be read: {(error.strerror or 'no reason given').lower()}", "check the path"
        raise ConfigError((Fault(file="telemetry", reason=reason, advice=advice),)) from error
    except ControlError as error:
        reason, _, advice = str(error).partition("; ")
        raise ConfigError((Fault(file="telemetry", reason=reason, advice=advice),)) from error
