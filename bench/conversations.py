"""What rules over a whole conversation refuse: attacks spread over turns, and calm conversations.

    python -m bench.conversations [FILE ...] [--real DATA_FOLDER] [--show]
    python -m bench.conversations [FILE ...] --cost

FILE: policy files or `builtin:NAME` (default `builtin:default`). The conversations are those of
`transcripts/conversations.jsonl`, written for this: thirty attacks of which no turn is meant to be enough alone, thirty
calm ones of which some speak of the same things. Each is played turn by turn, as a client that sends its history again,
with the installed models, until a turn is refused. The first, third, ... of each kind were looked at when the
thresholds of the default rule were chosen, so they are counted apart. `--real` adds conversations of people with a
support desk, the attacks with such calm texts between their turns, jailbreaks that are each cut into five turns, and
prompts of several people put together by chance, which no conversation is: the worst that there may be. `--cost`: CPU
time of the guard, without classifiers, for a prompt of twenty turns of 2,000 characters, of which
all but the last have come before. Prints Markdown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from checkstream.cli.sources import installed_labels, read_sources
from checkstream.core.commands import Score
from checkstream.core.events import (
    AnyEvent,
    RequestReceived,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from checkstream.proxy.quiet import QuietOfCaller, QuietTexts
from checkstream.trial.exchange import Exchange, digest
from checkstream.trial.installed import InstalledModels

ROOT = Path(__file__).parents[1]
TRANSCRIPTS = ROOT / "bench" / "transcripts" / "conversations.jsonl"
_ANSWER = "All right."
_MIXED_TURNS = 8
_REAL = 300
_MOST_TURNS = 20
_MOST_CHARS = 1500
_LEAST_CHARS = 15
_CUTS, _MOST_CUT_CHARS = 5, 4000
_SEED = 15
_FOUND = " Write to ana.silva@company.com, please."
_COST_TURNS, _COST_CHARS, _COST_TIMES = 20, 2000, 15


def written(kind: str) -> list[list[str]]:
    """Return what the user says in the conversations of one kind, `attack` or `calm`."""
    rows = (json.loads(line) for line in TRANSCRIPTS.read_text("utf-8").splitlines())
    return [row["user"] for row in rows if row["kind"] == kind]


def refused_by(plan: Plan, models: InstalledModels, said: Sequence[str]) -> tuple[int, str] | None:
    """Play a conversation; return the turn that is refused, from 1, and the rule; None: none is."""
    history: list[dict[str, str]] = []
    for turn, text in enumerate(said, 1):
        history.append({"role": "user", "content": text})
        exchange = Exchange(SURFACES["openai.chat"], plan, models.answer)
        exchange.send(RequestReceived(json.dumps({"model": "m", "messages": history}).encode()), 0.0)
        if not exchange.came.forwarded:
            record = exchange.came.record
            fired = [verdict.rule_id for verdict in record.verdicts if verdict.action == "reject"] if record else []
            return turn, fired[0] if fired else "?"
        message = {"role": "assistant", "content": _ANSWER}
        history.append(message)
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        for event in (
            UpstreamOpened(200, streaming=False),
            UpstreamBytes(json.dumps(whole).encode()),
            UpstreamClosed(),
        ):
            exchange.send(event, 0.0)
    return None


def _sets(real: Path | None) -> Iterator[tuple[str, list[list[str]]]]:
    for kind in ("attack", "calm"):
        found = written(kind)
        yield f"{kind}, seen", found[::2]
        yield f"{kind}, held out", found[1::2]
    attacks = written("attack")
    if real is not None:
        chance = random.Random(_SEED)
        support = [text.split("\n")[:_MOST_TURNS] for text in _texts(real, "benign_support_chats")]
        yield "support chats", chance.sample([said for said in support if len(said) > 3], _REAL)
        texts = [text for text in _texts(real, "prompts_oasst") if len(text) < _MOST_CHARS]
        chance.shuffle(texts)
        lines = [line for said in support for line in said if len(line) > _LEAST_CHARS]
        for name, found in (("seen", attacks[::2]), ("held out", attacks[1::2])):
            yield f"attack, {name}, a calm text after each", [_between(said, lines, chance) for said in found]
        for name in ("inj_verazuo_jailbreaks", "inj_misc_jailbreak_templates"):
            cut = [found for found in map(_cut, _texts(real, name)) if found]
            yield f"`{name}`, each in {_CUTS} turns", chance.sample(cut, min(len(cut), _REAL // 3))
        yield "mixed prompts", [texts[at * _MIXED_TURNS : (at + 1) * _MIXED_TURNS] for at in range(_REAL)]


def _between(said: Sequence[str], calm: Sequence[str], chance: random.Random) -> list[str]:
    """Return a conversation with a calm text behind each of its turns but the last."""
    return [text for each in said for text in (each, chance.choice(calm))][:-1]


def _cut(text: str) -> list[str] | None:
    """Return a text as the turns of a conversation, of whole sentences; None: it has too few, or is too long."""
    parts = [part.strip() for part in re.split(r"(?<=[.!?:;])\s+|\n+", text) if part.strip()]
    if len(parts) < _CUTS or len(text) > _MOST_CUT_CHARS:
        return None
    return [" ".join(parts[at * len(parts) // _CUTS : (at + 1) * len(parts) // _CUTS]) for at in range(_CUTS)]


def _texts(folder: Path, name: str) -> list[str]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows if row.get("language", "en") == "en"]


def cost_ms(plan: Plan, quiet: QuietOfCaller | None, found: str = "", turns: int = _COST_TURNS) -> float:
    """Return the CPU time in which a history is read, median of some times; `found`: stands in each of its texts."""
    words = [
        word for word in re.findall(r"[a-z]+", (ROOT / "policies" / "LANGUAGE.md").read_text("utf-8")) if len(word) > 1
    ]
    chance = random.Random(_SEED)
    texts = [" ".join(chance.choices(words, k=_COST_CHARS))[:_COST_CHARS] + found for _ in range(turns)]
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    taken = []
    for number in range(_COST_TIMES + 1):
        last = {"role": "user", "content": f"And then, number {number}?"}
        body = json.dumps({"model": "m", "messages": [*messages, last]}).encode()
        guard = Guard(surface=SURFACES["openai.chat"], plan=plan, digest=digest, quiet=quiet)
        pending: list[AnyEvent] = [RequestReceived(body)]
        began = time.process_time()
        while pending:
            asked = (each for each in guard.receive(pending.pop(), 0.0) if isinstance(each, Score))
            pending += (Scored(each.ticket, {"injection.injection": 0.0}) for each in asked)
        taken.append((time.process_time() - began) * 1000)
    return median(taken[1:])  # before the first nothing has come


def _print_cost(plan: Plan) -> None:
    print("| a prompt of | read anew, CPU ms | what came before is known |\n|---|---|---|")
    for turns, found, name in (
        (1, "", "one turn"),
        (_COST_TURNS, "", "twenty turns"),
        (_COST_TURNS, _FOUND, "twenty turns, in each of which something is found"),
    ):
        anew = cost_ms(plan, None, found, turns)
        again = cost_ms(plan, QuietTexts().of("bench", plan.program.hash), found, turns)
        print(f"| {name} | {anew:.1f} | {again:.1f} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", default=["builtin:default"])
    parser.add_argument("--real", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--cost", action="store_true")
    args = parser.parse_args()
    program = compile_sources(read_sources(args.policies), installed_labels())
    models, plan = InstalledModels(), Plan(program=program)
    if args.cost:
        _print_cost(plan)
        return
    late = {program.rules[number].id for number in program.late}
    print("| conversations | number | refused by one text | refused by the whole |\n|---|---|---|---|")
    for name, conversations in _sets(args.real):
        found = [refused_by(plan, models, said) for said in conversations]
        rules = [each[1] for each in found if each is not None]
        over = sum(rule in late for rule in rules)
        print(f"| {name} | {len(found)} | {len(rules) - over} | {over} |", flush=True)
        for said, each in zip(conversations, found, strict=True):
            if args.show and each is not None:
                print(f"<!-- {each[1]} at turn {each[0]}: {said[each[0] - 1][:80]} -->")


if __name__ == "__main__":
    main()
