"""Facts of no process at all, for tests of the console's pages, and a console that is served from them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from checkstream.config import Address, AuditSettings
from checkstream.console import Places, Policies, ProgramFacts, RuleFacts, Source
from checkstream.console.opening import console_of, public_key
from checkstream.console.records import Folder
from checkstream.listen import Hosts, Listener, Times
from checkstream.proxy.health import Admin, ReloadStatus, RouteStatus, Status
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Figures, figures

HOSTILE = "<script>alert(1)</script>\"'`{{7*7}}{% raw %}\u202eevil\u2066\x1b[31m\x00\ud800" + "<b>x" * 3000
"""A name that tries whatever names can try."""


def status(**more: Any) -> Status:
    given: dict[str, Any] = {
        "version": "1.0",
        "uptime_s": 61.0,
        "ready": True,
        "not_ready": (),
        "streams": 0,
        "held_bytes": 0,
        "generation": 1,
        "routes": (),
        "models": (),
        "unheard": (),
        "reload": None,
        "bundle": "",
        "audit_chain": "c1",
        "warnings": (),
    }
    return Status(**given | more)


def hostile_status() -> Status:
    route = RouteStatus(
        name=HOSTILE, path=HOSTILE, method="POST", upstream=HOSTILE, guarded=True, policies=HOSTILE, program="p"
    )
    return status(
        routes=(route, msgspec.structs.replace(route, guarded=False)),
        models=(HOSTILE,),
        unheard=(HOSTILE,),
        bundle=HOSTILE,
        warnings=(HOSTILE,),
        reload=ReloadStatus(at="2026", accepted=False, faults=(HOSTILE,)),
        ready=False,
        not_ready=(HOSTILE,),
    )


def rule(**more: Any) -> RuleFacts:
    given: dict[str, Any] = {
        "id": "R-1",
        "name": "r",
        "pack": "p@1",
        "stages": ("midstream",),
        "channels": ("content",),
        "mode": "enforce",
        "actions": ("redact",),
        "triggers": ("entity:EMAIL",),
    }
    return RuleFacts(**given | more)


def policies(*rules: RuleFacts, files: tuple[str, ...] = ("ours.yaml",), text: str = "pack: {}\n") -> Policies:
    program = ProgramFacts(hash="f" * 64, routes=("chat",), packs=("p@1",), files=files, rules=rules or (rule(),))
    return Policies(programs=(program,), sources=tuple(Source(name=name, text=text) for name in files))


class MadeUp:
    """Facts as a test wants them. Also what an admin listener shows."""

    def __init__(self) -> None:
        self.listen = "127.0.0.1:8080"
        self.status = status()
        self.counted = Metrics()
        self.known = policies()

    async def shown(self) -> Status:
        return self.status

    async def totals(self) -> Figures:
        return figures(self.counted)

    async def policies(self) -> Policies:
        return self.known

    async def metrics(self) -> bytes:
        return b""

    async def entries(self, _: int) -> list[object]:
        return []

    async def reload(self) -> None:
        """There is nothing to load."""


@asynccontextmanager
async def served(facts: MadeUp, folder: Path, *, token: str | None = None, **places: Any) -> AsyncIterator[str]:
    """Serve a console as the admin listener does, and yield its address."""
    given: dict[str, Any] = {
        "audit": folder / "audit",
        "key": folder / "audit.key.pub",
        "runs": folder / "gate.db",
        "models": None,
        "jobs": folder / "jobs.db",
        "program": ("false",),
    }
    at = Places(**given | places)
    audit = AuditSettings(dir=str(at.audit))
    console = console_of(facts, Folder(at.audit, lambda: public_key(audit)), at, token)
    times = Times(header_s=5, write_s=5)
    listener = Listener(Admin(facts, token, console).respond, times, Hosts() if token is None else None)
    await listener.open(Address("127.0.0.1", 0))
    await console.open()
    try:
        yield f"http://{listener.address}"
    finally:
        await console.close()
        await listener.close()
