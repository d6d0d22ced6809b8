"""Where the console has its facts from: an interface, and what is told through it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from checkstream.proxy.health import Status
from checkstream.telemetry.totals import Figures


class RuleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is in force."""

    id: str
    name: str
    pack: str
    """`name@version`."""
    stages: tuple[str, ...]
    channels: tuple[str, ...]
    mode: str
    """`enforce`, `shadow` or `disabled`."""
    actions: tuple[str, ...]
    triggers: tuple[str, ...]
    """Titles of what it asks for, such as `entity:EMAIL`."""
    conditions: tuple[str, ...] = ()
    severity: str = ""
    regulation: str = ""
    citation: str = ""
    description: str = ""


class ProgramFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Policies that were compiled together, and the routes that they guard."""

    hash: str
    routes: tuple[str, ...]
    packs: tuple[str, ...]
    files: tuple[str, ...]
    """As the configuration names them, and as `policy explain` takes them."""
    rules: tuple[RuleFacts, ...]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A policy file as it was when it came in force."""

    name: str
    """As the configuration names it."""
    text: str


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """All policies in force."""

    programs: tuple[ProgramFacts, ...]
    sources: tuple[Source, ...]
    unguarded: tuple[str, ...] = ()
    """Routes that pass all on unread."""


class Facts(Protocol):
    """What a process, or the parent of several, knows of itself."""

    @property
    def listen(self) -> str:
        """Where callers connect, `host:port`; empty: nobody serves yet."""

    async def shown(self) -> Status:
        """Return what is in force, and how much runs."""

    async def totals(self) -> Figures:
        """Return what has been counted, of the metrics in `console.totals.NAMES`. Asked each few seconds."""

    async def policies(self) -> Policies:
        """Return the policies in force.

        Raises:
            NotReady: nobody serves who could tell.
        """


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where on this machine the rest is, which a process writes and the console only reads."""

    audit: Path
    """Folder of the audit chains."""
    key: Path | None
    """The public key of their heads; None: the key is given in the environment, and is in no file."""
    runs: Path
    """File of the gate's runs, if there is one."""
    models: Path | None
    """The `models.yaml` that names models besides those of the package."""
    jobs: Path | None
    """File of the queue of answers to be scored; None: it is on another server."""
    program: tuple[str, ...]
    """Command line that starts checkstream, without arguments."""
    scored: tuple[str, ...] = ()
    """Routes of which answers are scored."""
