"""Makes what keeps drafts of policies at a control server, out of what its file says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from checkstream.config import ControlConfig
from checkstream.control.drafts.sources import Sources
from checkstream.control.drafts.trials import Trials
from checkstream.control.server.acts import Acts
from checkstream.control.server.database import Database
from checkstream.control.server.drafting import Drafting
from checkstream.processes.child import program


def open_drafting(config: ControlConfig, database: Database, acts: Acts, now_ms: Callable[[], int]) -> Drafting | None:
    """Return what keeps drafts; None: there are no sources to draft from."""
    policies = config.policies
    if policies is None:
        return None
    sources = Sources(Path(policies.sources))
    recordings = None if policies.recordings is None else Path(policies.recordings)
    models = None if policies.models is None else Path(policies.models)
    trials = Trials(program(), sources, recordings=recordings, models=models)
    return Drafting(sources, database, acts, trials, now_ms, keep_days=config.retention_days)
