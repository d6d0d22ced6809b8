"""How much of what agents and coding assistants rightly write a policy alters: over-blocking on benign exchanges.

    python -m bench.overblocking [FILE ...] [--real DATA_FOLDER] [--show]

FILE: policy files or `builtin:NAME` (default `builtin:default`). The exchanges are those of `transcripts/`, fifty of
agents with tools and fifty about code; all are harmless, so that each alteration is one too many, but for what only a
document or a tool has named. `--real` adds the model answers of a folder of gzipped JSON lines, which are read and
never kept. Prints Markdown: altered exchanges with the policy as it is, and as it would be if no trigger spared what
the caller has; `--show` prints what was altered. Classifiers say nothing here: what they cost is measured with them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkstream.cli.sources import installed_labels, read_sources
from checkstream.core.events import RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.policy.stored import assemble
from checkstream.core.wire.surfaces import SURFACES
from checkstream.trial.exchange import Exchange

TRANSCRIPTS = Path(__file__).parent / "transcripts"
KINDS = ("agents", "coding")
REAL = ("out_refusals", "out_gptfuzz_responses", "out_hh_harmless_test", "benign_support_chats")
"""Answers of models, in the folder of `--real`."""
REAL_TEXTS = 500
_SEED = 14


class Altered(msgspec.Struct, frozen=True):
    """An exchange whose answer did not come as the model wrote it."""

    rules: tuple[str, ...]
    before: str
    after: str


def transcripts(kind: str) -> list[dict[str, Any]]:
    """Return the exchanges of one kind."""
    return [json.loads(line) for line in (TRANSCRIPTS / f"{kind}.jsonl").read_text("utf-8").splitlines()]


def request_of(exchange: dict[str, Any]) -> bytes:
    """Return the request that an exchange's answer is to."""
    messages: list[dict[str, Any]] = []
    if "system" in exchange:
        messages.append({"role": "system", "content": exchange["system"]})
    messages.append({"role": "user", "content": exchange["user"]})
    if "tool" in exchange:
        call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": exchange["tool"]})
    return json.dumps({"model": "m", "messages": messages}, ensure_ascii=False).encode()


def answer_of(exchange: dict[str, Any]) -> bytes:
    """Return the whole answer of the model."""
    message: dict[str, Any] = {"role": "assistant", "content": exchange["say"]}
    if "call" in exchange:
        name, arguments = exchange["call"]
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        message["tool_calls"] = [{"id": "call_2", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(body, ensure_ascii=False).encode()


def calm(program: Program) -> Callable[[Any], Scored]:
    """Return what answers every check: nothing was seen."""
    names = dict.fromkeys(signal.name for signal in program.signals if signal.kind == "classifier")
    labels = dict.fromkeys(label.name for label in installed_labels() if isinstance(label, ClassifierLabel))
    scores = dict.fromkeys((*names, *labels), 0.0)
    return lambda score: Scored(score.ticket, scores)


def altered(program: Program, exchanges: Sequence[dict[str, Any]]) -> list[Altered]:
    """Return the exchanges whose answers a program alters."""
    found: list[Altered] = []
    scorer = calm(program)
    for exchange in exchanges:
        played = Exchange(SURFACES["openai.chat"], Plan(program=program), scorer)
        played.send(RequestReceived(request_of(exchange)), 0.001)
        if not played.over:
            played.send(UpstreamOpened(200, streaming=False), 0.002)
            played.send(UpstreamBytes(answer_of(exchange)), 0.003)
            played.send(UpstreamClosed(), 0.004)
        record = played.came.record
        if record is None:
            raise AssertionError("an exchange that has ended leaves a record")
        body = played.came.reply.body if played.came.reply is not None else b""
        if body != answer_of(exchange):
            rules = tuple(dict.fromkeys(v.rule_id for v in record.verdicts if v.action != "log_event"))
            found.append(Altered(rules, answer_of(exchange).decode(), body.decode()))
    return found


def without_spares(program: Program) -> Program:
    """Return the program as it would be if no trigger spared anything."""
    return assemble(
        signals=tuple(msgspec.structs.replace(signal, spares=None) for signal in program.signals),
        rules=program.rules,
        constants=program.constants,
        variables=program.variables,
        code=program.code,
        entries=program.entries,
        packs=program.packs,
    )


def real(folder: Path) -> list[dict[str, Any]]:
    """Return a sample of real answers as exchanges; the prompt says nothing."""
    chance = random.Random(_SEED)
    found: list[dict[str, Any]] = []
    for name in REAL:
        path = folder / f"{name}.jsonl.gz"
        if path.exists():
            texts = list(_texts(path))
            chosen = chance.sample(texts, min(REAL_TEXTS, len(texts)))
            found += ({"user": "Go on.", "say": text.encode("utf-8", "replace").decode()} for text in chosen)
    return found


def _texts(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line).get("text")
            if isinstance(text, str) and text:
                yield text


def main(given: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.overblocking", description=__doc__)
    parser.add_argument("files", nargs="*", default=["builtin:default"], metavar="FILE")
    parser.add_argument("--real", type=Path, metavar="DATA_FOLDER")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args(given)
    program = compile_sources(read_sources(args.files), installed_labels())
    sets = {kind: transcripts(kind) for kind in KINDS} | ({"real answers": real(args.real)} if args.real else {})
    print(f"Over-blocking of {', '.join(program.packs)} on benign exchanges\n")
    print("| exchanges | of them | altered | if nothing were spared | rules |\n|---|---|---|---|---|")
    shown: list[Altered] = []
    for name, exchanges in sets.items():
        now, then = altered(program, exchanges), altered(without_spares(program), exchanges)
        rules = Counter(rule for each in now for rule in each.rules)
        told = ", ".join(f"{rule} {count}" for rule, count in rules.most_common()) or "none"
        share = f"{len(now)} ({len(now) / max(1, len(exchanges)):.1%})"
        print(f"| {name} | {len(exchanges)} | {share} | {len(then)} | {told} |")
        shown += now
    for each in shown if args.show else ():
        print(f"\n{', '.join(each.rules)}\n- {each.before}\n+ {each.after}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
