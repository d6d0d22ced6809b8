"""Makes the console of a control server, out of what the server is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from checkstream.config.control import Role
from checkstream.console.access import Access, Door
from checkstream.console.control.acts import ActPages
from checkstream.console.control.alerts import AlertPages
from checkstream.console.control.drafts import DraftPages
from checkstream.console.control.exchanges import ToldPages
from checkstream.console.control.fleets import FleetPages
from checkstream.console.control.live import FleetLivePages
from checkstream.console.control.overview import TrafficPages
from checkstream.console.control.provided import WAY, ProvidedPages
from checkstream.console.control.quality import GradePages
from checkstream.console.control.review import ReviewPages
from checkstream.console.control.rollouts import RolloutPages
from checkstream.console.face import Console
from checkstream.console.pages import Entry
from checkstream.console.serving.shell import Shell
from checkstream.console.sessions import Person
from checkstream.control.server.acts import Acts
from checkstream.control.server.alerting import Alerting
from checkstream.control.server.drafting import Drafting
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.gate_runs import GateRuns
from checkstream.control.server.provided import Provided
from checkstream.control.server.reviewing import Reviewing
from checkstream.control.server.telemetry import Telemetry
from checkstream.listen import Callers
from checkstream.telemetry.logs import Log

MENU = (
    Entry("overview", "", "Overview"),
    Entry("live", "live", "Live"),
    Entry("exchanges", "exchanges", "Exchanges"),
    Entry("review", "review", "Review"),
    Entry("quality", "quality", "Quality"),
    Entry("fleets", "fleets", "Fleets"),
    Entry("rollouts", "rollouts", "Rollouts"),
    Entry("policies", "policies", "Policies"),
    Entry("alerts", "alerts", "Alerts"),
    Entry("acts", "acts", "Acts"),
)


def open_control_console(
    shell: Shell,
    *,
    fleets: Fleets,
    acts: Acts,
    alerting: Alerting,
    audit: Path,
    telemetry: Telemetry,
    reviewing: Reviewing,
    gate_runs: GateRuns,
    drafting: Drafting | None,
    now_ms: Callable[[], int],
    provided: Provided | None,
) -> Console:
    """Return the console; nothing of it goes on before its `open`.

    Args:
        shell: Makes its pages.
        fleets: What nodes have said.
        acts: What people do.
        telemetry: What nodes have told of their exchanges.
        reviewing: What people say of it.
        gate_runs: What runs of the gate came to.
        drafting: Keeps drafts of policies; None: there are no sources of them.
        alerting: What is wrong.
        audit: Folder of the chain in which acts stand.
        now_ms: The server's clock.
        provided: Knows those who log in over a provider; None: nobody does.
    """
    return Console(
        shell,
        (
            TrafficPages(shell, fleets, telemetry, now_ms),
            FleetLivePages(shell, fleets, telemetry),
            ToldPages(shell, fleets, telemetry),
            ReviewPages(shell, reviewing),
            GradePages(shell, fleets, telemetry, gate_runs, now_ms),
            FleetPages(shell, fleets, acts),
            RolloutPages(shell, fleets, acts),
            DraftPages(shell, drafting),
            AlertPages(shell, alerting, fleets, now_ms),
            ActPages(shell, fleets, audit),
            *(() if provided is None else (ProvidedPages(shell, provided),)),
        ),
    )


def control_shell(
    callers: Callers,
    roles: Mapping[str, Role],
    log: Log,
    *,
    secure: bool,
    gateway: bool = False,
    provided: bool = False,
) -> Shell:
    """Return what makes the pages, for people who are known by their keys, or by a provider.

    Args:
        callers: Whose key it is.
        roles: What they may do, by name.
        log: Where it is told what nobody else is to know.
        secure: Browsers come by TLS alone.
        gateway: All come from one address.
        provided: The login page leads to a provider, too.
    """

    def whose(key: str) -> Person | None:
        name = callers.whose(key)
        return None if name is None else Person(name, roles[name])

    door = Door(
        whose=whose,
        label="Key",
        says="This console shows all nodes, and what people have them do. It takes your own key, as it was made by",
        code="checkstream control key",
        wrong="That is nobody's key. `people` of the control server's file has who may look.",
        ways=(WAY,) if provided else (),
    )
    return Shell(Access(door, secure=secure, gateway=gateway), MENU, log)
