"""Makes the console of a proxy, out of its configuration."""

from __future__ import annotations

from pathlib import Path

from checkstream.audit.keys import key_from_text, load_public_key
from checkstream.config import AuditSettings, Config, reveal
from checkstream.config.secrets import audit_key
from checkstream.console.access import Access, token_door
from checkstream.console.face import Console
from checkstream.console.facts import Facts, Places
from checkstream.console.pages import Entry
from checkstream.console.records import Folder, Log
from checkstream.console.serving.exchanges import ExchangePages
from checkstream.console.serving.live import LivePages
from checkstream.console.serving.overview import OverviewPages
from checkstream.console.serving.policies import PolicyPages
from checkstream.console.serving.quality import QualityPages
from checkstream.console.serving.shell import Shell
from checkstream.errors import AuditError, ConfigError

_RUNS = Path("var/gate.db")
"""Where `checkstream gate` keeps runs unless it is told otherwise, below the folder that it runs in."""

MENU = (
    Entry("overview", "", "Overview"),
    Entry("live", "live", "Live"),
    Entry("exchanges", "exchanges", "Exchanges"),
    Entry("policies", "policies", "Policies"),
    Entry("quality", "quality", "Quality"),
)


def open_console(facts: Facts, config: Config, token: str | None, program: tuple[str, ...]) -> Console:
    """Return the console; it counts nothing before its `open`.

    Args:
        facts: What the process, or the parent of several, knows of itself.
        config: What it began with.
        token: Of the admin listener; None: none is asked for.
        program: Command line that starts checkstream, without arguments.
    """
    places = places_of(config, program)
    log = Folder(places.audit, lambda: public_key(config.audit))
    return console_of(facts, log, places, token, secure=config.server.admin_tls is not None)


def console_of(facts: Facts, log: Log, places: Places, token: str | None, *, secure: bool = False) -> Console:
    """Return the console that shows what `facts` say and `log` has; `token` None: none is asked for."""
    shell = Shell(Access(None if token is None else token_door(token), secure=secure), MENU)
    overview = OverviewPages(shell, facts)
    return Console(
        shell,
        (
            overview,
            LivePages(shell, facts, log),
            PolicyPages(shell, facts, places),
            QualityPages(shell, places, overview.now),
            ExchangePages(shell, facts, places, log),
        ),
    )


def public_key(settings: AuditSettings) -> str:
    """Return the key that heads are signed with as PEM; empty: it can't be had. Blocks."""
    place = audit_key(settings)
    try:
        if isinstance(place, Path):
            return load_public_key(place.with_name(place.name + ".pub")).pem().decode("ascii")
        return key_from_text(reveal(place), f"environment variable {place.env}").public.pem().decode("ascii")
    except (AuditError, ConfigError):
        return ""


def places_of(config: Config, program: tuple[str, ...]) -> Places:
    """Return where the rest is that the console reads."""
    key = audit_key(config.audit)
    return Places(
        audit=Path(config.audit.dir),
        key=key.with_name(key.name + ".pub") if isinstance(key, Path) else None,
        runs=_RUNS,
        models=None if config.models is None else Path(config.models),
        jobs=None if config.jobs.file is None else Path(config.jobs.file),
        program=program,
        scored=tuple(route.name for route in config.routes if route.grounding is not None),
    )
