"""A control server that is away for an hour, while a proxy goes on: what waits, what comes after, and what it costs.

A real proxy with a request a second, the process beside it that ships its log, and a real control server that is
stopped and started again. At the end every exchange has to have arrived, once, and the log to be proven to its end;
where it isn't so this fails.

    python -m bench.outage [--away SECONDS]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec

from bench.report import machine
from tests.e2e.harness import Llm, Proxy, running, until
from tests.e2e.telling import CALLERS, MODEL, Control, ask, files_in, log_of, settings_of, shown

_AROUND_S = 30.0
"""Of traffic before, and after."""
_LONGEST_S = 120.0
"""Until what has waited must have arrived."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen."""

    away_s: float
    asked: int
    """Exchanges, over all of it."""
    meanwhile: int
    """Exchanges while the server was away."""
    waited: int
    """Bytes of the log that waited at the end of it."""
    attempts: int
    """Deliveries that found nobody."""
    behind_s: float
    """From the server's start until all that had waited was there."""
    records: int
    """Of the log, of which the server has proven all."""
    memory: tuple[int, int]
    """Bytes of the proxy and of what it has started: before the outage, and at its end."""


class _Traffic:
    """Asks once a second, on a thread."""

    def __init__(self, proxy: Proxy) -> None:
        self.asked: list[str] = []
        self._proxy = proxy
        self._stop = threading.Event()
        self._wrong: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(1.0):
                self.asked.append(ask(self._proxy))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised again at the end
            self._wrong = error

    def ended(self) -> list[str]:
        """Stop, and return the ids of all exchanges."""
        self._stop.set()
        self._thread.join()
        if self._wrong is not None:
            raise self._wrong
        return self.asked


def run(away_s: float, around_s: float = _AROUND_S) -> Figures:
    """Have the server away for so long."""
    os.environ |= {f"KEY_{name}": name for name in CALLERS}
    with tempfile.TemporaryDirectory() as name, running(Llm()) as llm:
        folder = Path(name)
        llm.put(MODEL, {"choices": [{"content": "All is blue."}]})
        files = files_in(folder / "control")
        settings = settings_of(files, llm, folder / "node")
        settings["control"]["poll_s"] = 15
        control = Control(files)
        try:
            with running(Proxy(settings, folder / "node")) as proxy:
                traffic = _Traffic(proxy)
                time.sleep(around_s)
                assert control.stop() == 0
                before, memory = len(traffic.asked), _memory(proxy.popen.pid)
                time.sleep(away_s)
                meanwhile, full = len(traffic.asked), _memory(proxy.popen.pid)
                waited = _figure(proxy, "checkstream_telemetry_waiting_bytes")
                attempts = _figure(proxy, 'checkstream_telemetry_attempts_total{outcome="unreachable"}')
                control, back = Control(files), time.monotonic()
                known = set(traffic.asked)
                until(lambda: known <= set(control.streams()), what="what has waited", timeout_s=_LONGEST_S)
                behind_s = time.monotonic() - back
                time.sleep(around_s)
                asked = traffic.ended()
                assert _figure(proxy, 'checkstream_telemetry_records_total{outcome="skipped"}') == 0
                until(lambda: set(asked) <= set(control.streams()), what="the last exchanges", timeout_s=_LONGEST_S)
                assert sorted(control.streams()) == sorted(asked), "each once"
            records = _proven(control, folder / "node" / "audit", asked)
        finally:
            control.stop()
    return Figures(
        away_s=away_s, asked=len(asked), meanwhile=meanwhile - before, waited=waited, attempts=attempts,
        behind_s=behind_s, records=records, memory=(memory, full),
    )  # fmt: skip


def _proven(control: Control, audit: Path, asked: list[str]) -> int:
    """Hold the chain that the server has to the log; return how many of its records the server has."""
    records = log_of(audit)
    assert sorted(str(record.body["stream"]) for record in records if record.kind == "stream") == sorted(asked)
    (chain,) = control.told("/v1/chains")["chains"]
    assert (chain["flaws"], chain["missing"]) == ([], 0), chain
    assert len(records) - chain["signed"] <= 3, (chain, len(records))  # what the proxy wrote as it ended
    kinds = {each["kind"] for each in control.told("/v1/events")["events"]}
    assert not kinds & {"chain_broken", "chain_gap", "audit_key_new", "clock_wrong"}, kinds
    return int(chain["seq"])


def _figure(proxy: Proxy, name: str) -> int:
    """Return a figure of the proxy's metrics; 0: it has none."""
    lines = [line for line in shown(proxy).splitlines() if line.startswith(name + " ")]
    return int(float(lines[0].rpartition(" ")[2])) if lines else 0


def _memory(pid: int) -> int:
    """Return the resident bytes of a process and all that it has started."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            resident = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        if pid in {int(folder.name), int(state[1])}:
            found += resident * os.sysconf("SC_PAGE_SIZE")
    return found


def lines(figures: Figures) -> list[str]:
    """Return the report, as lines of Markdown."""
    before, full = figures.memory
    return [
        f"## The control server away for {figures.away_s:,.0f} s",
        "",
        f"A request a second: {figures.asked:,} exchanges, of which {figures.meanwhile:,} while it was away.",
        "",
        "| | |",
        "|---|---:|",
        f"| exchanges that arrived, each once | {figures.asked:,} |",
        f"| records proven by the server | {figures.records:,} |",
        f"| bytes of the log that waited at its end | {figures.waited:,} |",
        f"| deliveries that found nobody | {figures.attempts:,} |",
        f"| from the server's start until all that had waited was there, s | {figures.behind_s:.1f} |",
        f"| memory of the proxy and the process beside it before, MB | {before / 1e6:.0f} |",
        f"| the same at its end, MB | {full / 1e6:.0f} |",
        "",
    ]


def main(given: list[str]) -> int:
    """Run it, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.outage", description=__doc__)
    parser.add_argument("--away", type=float, default=3600.0, metavar="SECONDS", help="how long (default: an hour)")
    away_s = parser.parse_args(given).away
    figures = run(away_s)
    made = "Made by `python -m bench.outage" + ("" if away_s == 3600 else f" --away {away_s:.0f}") + "`."
    sys.stdout.write("\n".join([made, "", *machine(), "", *lines(figures)]).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
