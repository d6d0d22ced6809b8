"""The agent beside a proxy: says to the control server what the node is and has, and makes current what it is told.

What it was told last stays in the bundles' folder, so that a node whose server is away goes on, and starts, with it.
INVARIANT: nothing becomes current that the control server has not named to this node, nor what is not signed and
approved: each alone can only keep a bundle out.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

import checkstream
from checkstream.app.following import Follower, current
from checkstream.config import BundleSettings
from checkstream.control.attestation import Attestation, Desired, Running
from checkstream.control.bundles.look import Look
from checkstream.control.client import ControlClient
from checkstream.control.package import image_digest, package_hash
from checkstream.errors import ConfigError, ControlError, ControlUnusable

_PATH = "/v1/attestations"
_DESIRED, _SEQUENCE = "desired", "sequence"
_SAID = 900


class Told(NamedTuple):
    """What a proxy has said of itself."""

    running: Running
    """What it has in force, as far as it has said so."""
    silence: str = ""
    """That it has said nothing for too long; empty: it speaks."""


def attested(settings: BundleSettings) -> int:
    """Return the number of the node's last attestation; 0: there is none. Blocks."""
    try:
        return int((Path(settings.dir) / _SEQUENCE).read_bytes()[:20])
    except (OSError, ValueError):
        return 0


class Agent:
    """One node's agent."""

    def __init__(
        self, settings: BundleSettings, follower: Follower, client: ControlClient, told: Callable[[], Told]
    ) -> None:
        """Say nothing yet.

        Args:
            settings: Where bundles are kept.
            follower: Fetches bundles and makes them current.
            client: Asks the control server.
            told: Returns what the proxy has said of itself.
        """
        self._settings = settings
        self._follower = follower
        self._client = client
        self._told = told
        self._package = ""
        self._error = ""

    async def step(self) -> Look:
        """Attest once, and have what is wanted; return what came of it."""
        name = self._settings.name
        try:
            desired, away = await self._asked(), ""
            if not desired.bundle and not self._follower.offered:  # it can only name what it has heard of
                await asyncio.to_thread(self._follower.step, take=False)
                desired = await self._asked()
        except ControlUnusable as error:
            desired, away = await asyncio.to_thread(self._remembered), str(error)
        except ControlError as error:
            self._error = str(error)[:_SAID]
            return Look(outcome="refused", bundle=name, reason=str(error))
        wanted = desired.bundle, desired.candidate
        look = await asyncio.to_thread(self._follower.step, *wanted, take=bool(desired.bundle))
        self._error = look.reason[:_SAID]
        if away:
            return Look(outcome="unreachable", bundle=name, reason=away)
        if not desired.bundle and look.outcome == "same":
            return await asyncio.to_thread(self._unled)
        return look

    async def _asked(self) -> Desired:
        """Attest, and return what the server wants.

        Raises:
            ControlError: it gives this node nothing.
            ControlUnusable: it can't be reached, or its store can't.
        """
        body = await asyncio.to_thread(self._attestation)
        answer = await self._client.post(_PATH, body)
        if answer.status == 200:
            try:
                desired = msgspec.json.decode(answer.body, type=Desired)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ControlUnusable(f"the control server's answer can't be read: {error}") from error
            await asyncio.to_thread(self._write, _DESIRED, msgspec.json.encode(desired))
            return desired
        if answer.status >= 500 or answer.status in {408, 429}:
            raise ControlUnusable(f"the control server can't answer: {answer.reason}")
        raise ControlError(f"the control server gives this node no bundle: {answer.reason}")

    def _attestation(self) -> bytes:
        self._package = self._package or package_hash()
        told = self._told()
        said = Attestation(
            sequence=self._next(),
            time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=checkstream.__version__,
            package=self._package,
            image=image_digest(),
            running=told.running,
            offered=self._follower.offered,
            error=self._error or told.running.left_out or told.silence,
        )
        return msgspec.json.encode(said)

    def _next(self) -> int:
        """Return the number of the next attestation: more than any before, also where the clock was set back."""
        number = max(attested(self._settings) + 1, time.time_ns() // 1000)
        self._write(_SEQUENCE, str(number).encode())
        return number

    def _remembered(self) -> Desired:
        """Return what the server wanted when it was there last; what this node has, if it was never there."""
        try:
            return msgspec.json.decode(self._path(_DESIRED).read_bytes(), type=Desired)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return Desired()

    def _unled(self) -> Look:
        """Return what is said where no bundle is wanted yet."""
        name = self._settings.name
        try:
            if current(self._settings) is not None:
                return Look(outcome="same", bundle=name)
        except ConfigError:
            pass
        newest = self._follower.offered[0].version if self._follower.offered else "VERSION"
        reason = f"the control server names no bundle yet; `checkstream control rollout FLEET {newest}` begins"
        return Look(outcome="refused", bundle=name, reason=reason)

    def _path(self, name: str) -> Path:
        return Path(self._settings.dir) / name

    def _write(self, name: str, content: bytes) -> None:
        """Write a small file, whole or not at all.

        Raises:
            ControlUnusable: it can't be written.
        """
        path = self._path(name)
        part = path.with_name(f".{name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            raise ControlUnusable(
                f"`{path}` can't be written: {(error.strerror or 'no reason given').lower()}"
            ) from error
