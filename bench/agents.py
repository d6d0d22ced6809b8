"""A hundred agents at one control server: what it answers in which time, and whether it stays as large as it was.

The server is the real process, `checkstream control serve` on SQLite. Agents are those of one process beside it, each
with a key and an audit log of its own: they sign, ask by HTTP, and ship what their logs have, by the code that nodes
run. Each attests every 15 to 60 s, by chance, and tells of one exchange a second, in a delivery every five seconds.
At the end every exchange has to be there, once, and each log proven to its end; where it isn't so this fails.

    python -m bench.agents [--agents N] [--seconds N]
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import mean

import msgspec
import uvloop

from bench.report import machine
from checkstream.audit.entries import StreamEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.config import ControlSettings
from checkstream.control.client import Answer, ControlClient, opened_client
from checkstream.control.identity import NodeKey
from checkstream.control.telemetry.composing import Composer
from checkstream.control.telemetry.privacy import Privacy
from checkstream.control.telemetry.shipper import Shipper
from checkstream.jobs.clock import wall_ms
from checkstream.proxy.ids import new_id
from tests.controlled import attestation, node_key
from tests.e2e.harness import running
from tests.e2e.telling import Control, files_in
from tests.records import KEY, stream

_ATTESTS_S = (15.0, 60.0)
_EXCHANGE_S = 1.0
_DELIVERY_MS = 5000
_SAMPLE_S = 2.0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen."""

    agents: int
    seconds: float
    exchanges: int
    attested_s: list[float]
    """Time of each attestation's answer."""
    delivered_s: list[float]
    """Time of each delivery's answer."""
    refused: dict[str, int]
    """Answers other than 200, and requests without one, by what they were."""
    cpu: list[float]
    """Share of a core that the server had, each fifth of the time."""
    memory: list[int]
    """Its resident bytes, at the end of each fifth."""
    drained_s: float
    """From the last exchange until all of them were there."""


class _Seen:
    """What all agents have seen."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {"/v1/attestations": [], "/v1/telemetry": []}
        self.refused: Counter[str] = Counter()
        self.asked: list[str] = []


class _Agent:
    """One node's agent, and what its proxy writes."""

    def __init__(self, node: str, folder: Path, client: ControlClient, seen: _Seen) -> None:
        self._client = client
        self._seen = seen
        self._chance = random.Random(node)
        self._numbers = 0
        self.journal = Journal(JournalSettings(directory=folder, fsync_ms=1000.0, head_ms=1000.0), KEY, process=node)
        composer = Composer(folder, Privacy(), (KEY.public.raw.hex(),), spool_bytes=1 << 30)
        self.shipper = Shipper(composer, self._post, now_ms=wall_ms, draw=self._chance.random, batch_ms=_DELIVERY_MS)

    async def _post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        begin = time.perf_counter()
        try:
            answer = await self._client.post(path, body, headers)
        except Exception as error:
            self._seen.refused[f"{path} {type(error).__name__}"] += 1
            raise
        self._seen.took[path].append(time.perf_counter() - begin)
        if answer.status != 200:
            self._seen.refused[f"{path} {answer.status}: {answer.reason}"] += 1
        return answer

    async def attesting(self) -> None:
        """Say for ever what the node is."""
        while True:
            await asyncio.sleep(self._chance.uniform(0, 1) * _ATTESTS_S[1] if not self._numbers else self._pause())
            self._numbers = max(self._numbers + 1, time.time_ns() // 1000)
            await self._post("/v1/attestations", msgspec.json.encode(attestation(self._numbers)))

    def _pause(self) -> float:
        return self._chance.uniform(*_ATTESTS_S)

    async def serving(self) -> None:
        """Have for ever an exchange, and then another."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * _EXCHANGE_S)
            entry = StreamEntry(stream=new_id(), route="chat", caller="app1", record=stream(1).record)
            self.journal.append(entry)
            self._seen.asked.append(entry.stream)

    async def shipping(self) -> None:
        """Ship for ever."""
        await asyncio.sleep(self._chance.uniform(0, _DELIVERY_MS / 1000))
        await self.shipper.run(lambda _: None)

    async def drained(self) -> None:
        """End the log, and ship what is left of it."""
        await self.journal.aclose()
        step = await self.shipper.step()
        while step.shipping != "idle" or step.waiting:
            await asyncio.sleep(0 if step.shipping == "sent" else step.wait_s)
            step = await self.shipper.step()


async def run(agents: int, seconds: float) -> Figures:
    """Have so many agents for so long."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = files_in(folder / "control")
        names = [f"n{number}" for number in range(1, agents + 1)]
        files.nodes = {each: node_key(each, folder / "control" / "keys") for each in names}
        files.written["fleets"]["shop"]["nodes"] = {each: f"keys/{each}.pub" for each in names}
        with running(await asyncio.to_thread(Control, files)) as control:
            return await _loaded(control, files.nodes, folder, seconds)


async def _loaded(control: Control, nodes: Mapping[str, NodeKey], folder: Path, seconds: float) -> Figures:
    seen = _Seen()
    async with AsyncExitStack() as stack:
        made = []
        for name, key in nodes.items():
            settings = ControlSettings(url=control.url, node=name, key="")
            client = await stack.enter_async_context(opened_client(settings, key))
            made.append(await asyncio.to_thread(_Agent, name, folder / "logs" / name, client, seen))
        tasks = [
            asyncio.create_task(work) for each in made for work in (each.attesting(), each.serving(), each.shipping())
        ]
        cpu, memory = await _watched(control.popen.pid, seconds, tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        begin = time.perf_counter()
        await asyncio.gather(*(each.drained() for each in made))
        drained_s = time.perf_counter() - begin
    await asyncio.to_thread(_whole, control, seen.asked, len(nodes))
    return Figures(
        agents=len(nodes), seconds=seconds, exchanges=len(seen.asked), attested_s=seen.took["/v1/attestations"],
        delivered_s=seen.took["/v1/telemetry"], refused=dict(seen.refused), cpu=cpu, memory=memory, drained_s=drained_s,
    )  # fmt: skip


async def _watched(pid: int, seconds: float, tasks: list[asyncio.Task[None]]) -> tuple[list[float], list[int]]:
    """Look at the server for so long; return its share of a core and its memory, each fifth of the time.

    Raises:
        RuntimeError: an agent has ended.
    """
    cpu, memory = [], []
    for _ in range(5):
        begin, used = time.monotonic(), _used_s(pid)
        while time.monotonic() < begin + seconds / 5:
            await asyncio.sleep(min(_SAMPLE_S, seconds / 5))
            ended = [task for task in tasks if task.done()]
            if ended:
                raise RuntimeError("an agent has ended") from ended[0].exception()
        cpu.append((_used_s(pid) - used) / (time.monotonic() - begin))
        memory.append(_resident(pid))
    return cpu, memory


def _used_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _whole(control: Control, asked: list[str], agents: int) -> None:
    """Hold what the server has to what was there."""
    kept = control.streams()
    assert len(kept) == len(asked), "each once"
    assert set(kept) == set(asked), "none is lost"
    chains = control.told("/v1/chains?most=1000")["chains"]
    assert len(chains) == agents
    for chain in chains:
        assert (chain["signed"], chain["flaws"], chain["missing"]) == (chain["seq"], [], 0), chain
    kinds = {each["kind"] for each in control.told("/v1/events")["events"]}
    assert not kinds & {"chain_broken", "chain_gap", "chain_silent", "audit_key_new"}, kinds


def quantile(values: list[float], share: float) -> float:
    """Return the least value that so many are not above; NaN: there is none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]


def lines(figures: Figures) -> list[str]:
    """Return the report, as lines of Markdown."""

    def times(took: list[float]) -> str:
        return " | ".join(f"{quantile(took, share) * 1000:.0f}" for share in (0.5, 0.95, 0.99, 1.0))

    deliveries, attestations = (len(each) / figures.seconds for each in (figures.delivered_s, figures.attested_s))
    each_ms = mean(figures.cpu) * figures.seconds / figures.exchanges * 1000
    refused = ", ".join(f"{count} of {what}" for what, count in sorted(figures.refused.items()))
    told = (
        f"{figures.exchanges:,} exchanges, each there once, every log proven to its end. {deliveries:.0f} deliveries "
        f"and {attestations:.1f} attestations a second."
    )
    rest = (
        f"An exchange takes {each_ms:.1f} ms of a core. What was left at the end was there {figures.drained_s:.1f} s "
        f"later. Answers other than 200: {refused or 'none'}."
    )
    return [
        f"## {figures.agents} agents, {figures.seconds:,.0f} s",
        "",
        told,
        "",
        "| time of an answer, ms | how many | p50 | p95 | p99 | most |",
        "|---|---:|---:|---:|---:|---:|",
        f"| attestation | {len(figures.attested_s):,} | {times(figures.attested_s)} |",
        f"| delivery | {len(figures.delivered_s):,} | {times(figures.delivered_s)} |",
        "",
        "| the server, each fifth of the time | 1 | 2 | 3 | 4 | 5 |",
        "|---|---:|---:|---:|---:|---:|",
        f"| of a core, % | {' | '.join(f'{each * 100:.0f}' for each in figures.cpu)} |",
        f"| memory, MB | {' | '.join(f'{each / 1e6:.0f}' for each in figures.memory)} |",
        "",
        rest,
        "",
    ]


def main(given: list[str]) -> int:
    """Run it, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    parser.add_argument("--agents", type=int, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="N", help="how long (default: ten minutes)")
    args = parser.parse_args(given)
    figures = uvloop.run(run(args.agents, args.seconds))
    options = (f" --agents {args.agents}" if args.agents != 100 else "") + (
        f" --seconds {args.seconds:.0f}" if args.seconds != 600 else ""
    )
    made = f"Made by `python -m bench.agents{options}`."
    sys.stdout.write("\n".join([made, "", *machine(), "", *lines(figures)]).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
