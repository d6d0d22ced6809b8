"""Write what the shipped classifiers say of calm texts: the histograms that a running proxy's scores are held against.

    python -m models.training.reference [--data DIR]

Each exchange is a calm prompt and a calm answer of the pool, in English, none that a model learnt from. It runs through
the guard under `builtin:default` (and one rule that asks `domain`), the answer in pieces as a model server sends them,
and the scorer is asked as the proxy asks it, so that the windows are the proxy's. Writes `scores.json` beside each
model and its hash into the manifest, and prints how far calm exchanges by themselves are from the whole. Repeats from
`--seed`; takes some minutes of one core. To be run again after a model is rebuilt, whose recipe leaves the file out.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from checkstream.app.models import labels_of
from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.wire.surfaces import SURFACES
from checkstream.proxy.counts import Counted, StreamCounts
from checkstream.proxy.questions import Questions
from checkstream.scoring import Scorer, open_session
from checkstream.scoring.provenance import described_models, load_described
from checkstream.scoring.reference import ROLE, Calm, Reference
from checkstream.telemetry.drift import BINS, LEAST, Key, psi
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics
from checkstream.trial.exchange import Exchange
from models.training import corpus
from models.training.export import MODELS, put_entry

NAMES = ("domain", "injection", "safety")
PROMPTS = (
    "benign_prompts",
    "benign_support_chats",
    "domain_banking77",
    "domain_clinc150",
    "prompts_code_agents",
    "prompts_misc",
    "prompts_oasst",
    "prompts_questions",
    "prompts_tasks",
)
ANSWERS = (
    "documents_reference",
    "documents_varied",
    "domain_medquad",
    "ground_begin",
    "ground_halueval_qa",
    "out_hh_harmless_test",
)
"""Sets of prose beside what models said: the pool has few calm answers."""
_FIELDS = {"ground_begin": "premise", "ground_halueval_qa": "premise"}
MOST, MOST_CHARS = 200, 1200
"""Texts of each set, and characters of each."""
EXTRA = b"""
pack: {name: extra, version: 1.0.0}
policies:
  - name: domain
    id: DOM-1
    stage: [ingress, midstream]
    classifiers: [{name: domain.medical, threshold: 0.99}]
    actions: [{type: log_event}]
"""
Histogram = np.ndarray[tuple[int], np.dtype[np.int64]]


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.reference", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=corpus.data_folder(), help="folder of the pool of labelled data")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance = Random(asked.seed)
    prompts, answers = (calm(asked.data, names, chance) for names in (PROMPTS, ANSWERS))
    found = asyncio.run(scored(prompts, answers))
    keys = sorted({key for one in found for key in one})
    whole = {key: sum((one.get(key, _NONE) for one in found), _NONE) for key in keys}
    for name in NAMES:
        put(name, whole)
    for key, counts in whole.items():
        print(f"{key[0]:26} {key[1]:10} {counts.sum():7}  {noise(found, key, counts, chance)}")
    return 0


_NONE = np.zeros(BINS, np.int64)


def calm(folder: Path, names: Iterable[str], chance: Random) -> list[str]:
    """Return calm texts in English of each set that nobody learnt from, in random order."""
    found: list[str] = []
    for name in names:
        texts: list[str] = []
        for row in corpus.rows(folder, name):
            text = row.get(_FIELDS.get(name, "text"))
            innocent = row.get("label") not in (1, "1", "rejected") and row.get("language", "en") == "en"
            if isinstance(text, str) and text.strip() and innocent and corpus.part_of(text) == "dev":
                texts.append(text[:MOST_CHARS])
        texts = sorted(set(texts))
        chance.shuffle(texts)
        found += texts[:MOST]
    chance.shuffle(found)
    return found


async def scored(prompts: Sequence[str], answers: Sequence[str]) -> list[dict[Key, Histogram]]:
    """Return what is counted of each exchange, as a proxy counts it."""
    described = {name: described_models()[name] for name in NAMES}
    program = _program()
    sessions = {name: open_session(load_described(model)) for name, model in described.items()}
    scorer = Scorer([load_described(model) for model in described.values()], lambda model: sessions[model.name])
    metrics = Metrics()
    counted = Counted(metrics, open_log("json", sys.stderr.buffer, level="warning"))
    found: list[dict[Key, Histogram]] = []
    before: dict[Key, Histogram] = {}
    for number, (prompt, answer) in enumerate(itertools.zip_longest(prompts, answers, fillvalue="")):
        counts = counted.begun(str(number), "chat", None)
        await _exchange(program, scorer, counts, prompt, answer)
        now = {key: np.array(tally.counts) for key, tally in metrics.scores.total.items()}
        found.append({key: counts - before.get(key, _NONE) for key, counts in now.items()})
        before = now
        if not number % 200:
            print(f"{number} exchanges", file=sys.stderr)
    await scorer.close()
    return found


def _program() -> Program:
    default = MODELS.parent / "policies" / "default" / "policy.yaml"
    sources = [("default", default.read_bytes()), ("extra", EXTRA)]
    return compile_sources(sources, labels_of(described_models().values()))


async def _exchange(program: Program, scorer: Scorer, counts: StreamCounts, prompt: str, answer: str) -> None:
    """Run one exchange as the proxy does: each score is asked for as it asks, and counted as it counts."""
    came: asyncio.Queue[AnyEvent] = asyncio.Queue()
    async with asyncio.TaskGroup() as tasks:
        questions = Questions(scorer, None, tasks=tasks, counts=counts, post=came.put_nowait)
        open_ = 0

        def ask(score: Score) -> None:
            nonlocal open_
            open_ += 1
            questions.score(score)

        exchange = Exchange(SURFACES["openai.chat"], Plan(program=program), ask)
        now = 0.0

        async def send(event: AnyEvent) -> None:
            nonlocal open_, now
            now += 0.02
            exchange.send(event, now)
            while open_:
                said = await came.get()
                open_ -= 1
                exchange.send(said, now)

        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
        await send(RequestReceived(msgspec.json.encode(body)))
        if not exchange.came.forwarded:
            return
        await send(UpstreamOpened(200, streaming=True))
        for piece in (*re.findall(r"\s*\S{1,5}", answer), None):
            if exchange.over:
                return
            await send(UpstreamBytes(_event(piece)))
        await send(UpstreamBytes(b"data: [DONE]\n\n"))
        if not exchange.over:
            await send(UpstreamClosed())


def _event(text: str | None) -> bytes:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": None if text else "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + msgspec.json.encode(head) + b"\n\n"


def put(name: str, whole: dict[Key, Histogram], models: Path = MODELS) -> None:
    """Write the file of a model, and its hash into the manifest."""
    histograms = tuple(
        Calm(
            label=classifier.removeprefix(f"{name}."),
            stage="ingress" if stage == "ingress" else "midstream",
            counts=tuple(counts.tolist()),
        )
        for (classifier, stage), counts in whole.items()
        if classifier.startswith(f"{name}.")
    )
    (models / name / "scores.json").write_bytes(msgspec.json.encode(Reference(histograms=histograms)) + b"\n")
    manifest = msgspec.json.decode((models / "manifest.json").read_bytes())
    entry = next(entry for entry in manifest["models"] if entry["name"] == name)
    roles = {file["role"]: file["path"] for file in entry.pop("files")} | {ROLE: f"{name}/scores.json"}
    put_entry(entry, roles, models)


def noise(found: Sequence[dict[Key, Histogram]], key: Key, whole: Histogram, chance: Random) -> str:
    """Return how far calm exchanges are from all of them, for several numbers of scores: the 99th of 100."""
    own = [one[key] for one in found if key in one and one[key].sum()]
    told: list[str] = []
    for least in (LEAST[key[1]] // 2, LEAST[key[1]], LEAST[key[1]] * 2):
        distances = []
        for _ in range(200):
            drawn = _NONE
            while drawn.sum() < least:
                drawn = drawn + chance.choice(own)
            distances.append(psi(whole.tolist(), drawn.tolist()))
        told.append(f"{least}: {np.quantile(distances, 0.99):.3f}")
    return "  ".join(told)


if __name__ == "__main__":
    sys.exit(main())
