"""Sends evidence that waits, sealed, in a folder: the oldest first, each until the server says that it has it.

A file goes when it was taken, so an end at any moment loses nothing; what is sent twice the server keeps once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from checkstream.control.telemetry.evidence import MOST_PARCEL
from checkstream.control.telemetry.packing import packed
from checkstream.errors import ControlUnusable

PATH = "/v1/evidence"
_HEADERS = {"content-type": "application/zstd"}
_AT_ONCE = 8
"""Parcels between two deliveries of records, which nobody keeps waiting."""
_FOR_GOOD = frozenset({400, 409, 413, 422})
"""Statuses of what no server will ever take."""


class Answered(Protocol):
    """What the server has said of a parcel."""

    @property
    def status(self) -> int:
        """Of HTTP."""

    @property
    def reason(self) -> str:
        """What it says is wrong."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What one round came to."""

    sent: int = 0
    refused: int = 0
    """That the server will not have, and that are gone."""
    more: bool = False
    reason: str = ""
    """Why the rest waits; empty: nothing is wrong."""


class Courier:
    """Sends what is in one folder."""

    def __init__(
        self, folder: Path, ending: str, post: Callable[[str, bytes, dict[str, str]], Awaitable[Answered]]
    ) -> None:
        """Send the files of `folder` whose names end with `ending`; `post` sends a signed body to a path."""
        self._folder = folder
        self._ending = ending
        self._post = post
        self._stuck: set[str] = set()
        """What has been taken and can't be removed."""

    async def round(self) -> Carried:
        """Send a few.

        Raises:
            OSError: the folder can't be used.
        """
        waiting = [path for path in await asyncio.to_thread(self._waiting) if path.name not in self._stuck]
        sent = refused = 0
        reason = ""
        for path in waiting[:_AT_ONCE]:
            content = await asyncio.to_thread(_read, path)
            if content is None:  # it was dropped to make room
                continue
            body = await asyncio.to_thread(packed, content)
            try:
                answer = await self._post(PATH, body, _HEADERS)
            except ControlUnusable as error:
                return Carried(sent=sent, refused=refused, reason=str(error))
            if answer.status != 200 and answer.status not in _FOR_GOOD:
                return Carried(sent=sent, refused=refused, reason=answer.reason)
            try:
                await asyncio.to_thread(path.unlink, missing_ok=True)
            except OSError as error:  # it has been taken, and is not to go again and again before all others
                self._stuck.add(path.name)
                reason = f"evidence that was sent can't be removed: {error.strerror or error}"
            sent += answer.status == 200
            refused += answer.status != 200
        return Carried(sent=sent, refused=refused, more=len(waiting) > _AT_ONCE, reason=reason)

    def _waiting(self) -> Sequence[Path]:
        """Return what waits, the oldest first: names begin with the time."""
        try:
            return sorted(path for path in self._folder.iterdir() if path.name.endswith(self._ending))
        except FileNotFoundError:
            return ()


def _read(path: Path) -> bytes | None:
    """Return a parcel; None: there is none any more. What is none would be sent for ever, so it goes.

    Raises:
        OSError: it can't be read.
    """
    try:
        if path.stat().st_size > MOST_PARCEL:
            path.unlink()
            return None
        return path.read_bytes()
    except FileNotFoundError:
        return None
