"""What a run of the gate over 60 claims costs beside its models: a scripted target and judge on this machine.

The models answer at once, so what is left is the gate: prompts, 60 different claims, their vectors by the model that
is shipped, searches in the store, and the file of runs on disk. Wall time, since it waits for the disk and for
sockets; the best of the rounds.

    python -m bench.gate [FOLDER]

FOLDER is where the file of runs lies (default: a temporary one).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from checkstream.app.evidence import evidence_embedder
from checkstream.app.verifiers import open_reader
from checkstream.gate.ledger import Ledger
from checkstream.gate.opening import Connections
from checkstream.gate.running import Gate
from tests.gate_models import fill, serving, settings

_ROUNDS = 3
_PROMPTS = 30


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a run, and of the CPU within them."""

    judged_by: str
    claims: int
    wall_s: float
    cpu_s: float


def _say(model: str, system: str, question: str) -> Any:
    if model == "target":
        kind = question.rstrip("?")
        return f"Goods of {kind} can be returned within 30 days. Refunds of {kind} are paid within 90 working days."
    if '"verdict": one of' in system:
        said = "contradicted" if "90 working" in question else "supported"
        return f'{{"verdict": "{said}", "reason": "read", "passages": [1]}}'
    return "no list of claims, so that rules take the answer apart"


async def run(folder: Path) -> list[Cost]:
    """Measure runs with a judge and without."""
    embedder = evidence_embedder()
    await fill(str(folder / "evidence.db"), embedder)
    (folder / "prompts.txt").write_text("".join(f"question {number}?\n" for number in range(_PROMPTS)))
    costs = []
    async with serving(_say) as url:
        gate = Gate(Ledger(folder / "gate.db"), Connections(folder, {}, lambda _kind: embedder, open_reader).open)
        for judge in ({}, {"judge": None}):
            config = settings(url, evaluation={"prompt_library": "prompts.txt"}, **judge)
            found = [await _once(gate, config) for _ in range(_ROUNDS)]
            costs.append(min(found, key=lambda cost: cost.wall_s))
    return costs


async def _once(gate: Gate, config: Any) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    report = await gate.evaluate(config)
    return Cost(
        judged_by=report.verifier,
        claims=report.total_claims,
        wall_s=time.perf_counter() - wall,
        cpu_s=time.process_time() - cpu,
    )


def main(given: list[str]) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=given[0] if given else None) as folder:
        costs = asyncio.run(run(Path(folder)))
    print("| judged by | claims | wall, s | CPU, s |\n|---|--:|--:|--:|")
    for cost in costs:
        print(f"| {cost.judged_by} | {cost.claims} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
