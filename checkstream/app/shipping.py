"""Builds what ships a node's audit log to its control server, of the node's configuration."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from checkstream.app.witnessing import privacy_of
from checkstream.audit.keys import PublicKey, key_from_text, load_public_key
from checkstream.config import AuditSettings, Config, reveal
from checkstream.config.secrets import audit_key
from checkstream.control.client import opened_client
from checkstream.control.identity import NodeKey
from checkstream.control.telemetry.composing import Composer
from checkstream.control.telemetry.courier import Courier
from checkstream.control.telemetry.shipper import Shipper
from checkstream.errors import AuditError, ControlError
from checkstream.jobs.clock import wall_ms
from checkstream.proxy.witness import ENDING


@asynccontextmanager
async def opened_shipper(config: Config) -> AsyncIterator[Shipper]:
    """Open the way of a node's audit log to its control server.

    Raises:
        ConfigError: the audit key can't be read.
        ControlError: there is no control server, or the node's key can't be used.
    """
    control, told = config.control, config.telemetry
    if control is None:
        raise ControlError("the configuration names no control server; add `control`, with `url`, `node` and `key`")
    key = await asyncio.to_thread(NodeKey.load, control.node, Path(control.key))
    public = await asyncio.to_thread(public_key, config.audit)
    privacy = privacy_of(config)
    keys = () if public is None else (public.raw.hex(),)
    composer = Composer(Path(config.audit.dir), privacy, keys, spool_bytes=told.spool_bytes)
    async with opened_client(control, key) as client:
        yield Shipper(
            composer,
            client.post,
            now_ms=wall_ms,
            draw=random.random,
            batch_ms=told.batch_ms,
            batch_bytes=told.batch_bytes,
            batch_records=told.batch_records,
            courier=Courier(Path(told.evidence_dir), ENDING, client.post),
        )


def public_key(settings: AuditSettings) -> PublicKey | None:
    """Return the key that verifies a log's heads; None: there is none yet, for nothing was signed. Blocks.

    Raises:
        ConfigError: the secret can't be read.
        AuditError: it is no key.
    """
    place = audit_key(settings)
    if not isinstance(place, Path):
        return key_from_text(reveal(place), f"environment variable {place.env}").public
    try:
        return load_public_key(place.with_name(place.name + ".pub"))
    except AuditError:
        return None
