"""What runs of the gate came to: `checkstream gate search | runs | trend | compare`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from checkstream.cli.results import safe, write_json
from checkstream.cli.workflow import as_text
from checkstream.errors import GateError
from checkstream.gate.history import comparison
from checkstream.gate.ledger import Ledger
from checkstream.gate.past import LocalPast, Past, is_shared
from checkstream.gate.report import Report
from checkstream.gate.shared_past import HISTORY_SECRET, SharedPast


def tell(args: argparse.Namespace) -> int:
    """Tell of runs.

    Raises:
        GateError: there is no such history, or no such run.
        StoreUnusable: the history of many machines can't be reached.
    """
    found = asyncio.run(_told(args))
    if args.json:
        write_json(found)
    return 0


async def _told(args: argparse.Namespace) -> object:
    actions: Mapping[str, Callable[[Past, argparse.Namespace], Awaitable[object]]] = {
        "search": _search,
        "runs": _runs,
        "trend": _trend,
        "compare": _compare,
    }
    async with opened_past(args.history) as past:
        with nullcontext() if args.json else as_text(sys.stdout):
            return await actions[args.action](past, args)


@asynccontextmanager
async def opened_past(where: str) -> AsyncIterator[Past]:
    """Open a file of runs, or a history of many machines.

    Raises:
        GateError: there is no such file.
        StoreUnusable: the history can't be reached.
    """
    if is_shared(where):
        shared = SharedPast.of(where, api_key=os.environ.get(HISTORY_SECRET))
        try:
            yield shared
        finally:
            await shared.close()
        return
    if not await asyncio.to_thread(Path(where).exists):
        raise GateError(f"there is no file of runs `{where}`; name the one that `checkstream gate` wrote")
    yield LocalPast(await asyncio.to_thread(Ledger, Path(where)))


async def _search(past: Past, args: argparse.Namespace) -> object:
    found = await past.search(" ".join(args.words), kind=args.kind, since=args.since, until=args.until)
    if not args.json:
        for each in found:
            print(f"{_day(each.at)}  {each.kind:9} {safe(each.run_id)} {safe(each.item)}: {safe(each.text)}")
    if not found:
        sys.stderr.write("no run said anything with all of these words\n")
    return found


async def _runs(past: Past, args: argparse.Namespace) -> object:
    found = await past.runs(since=args.since)
    if not args.json:
        for each in found:
            how = each.decision or ("failed" if each.failure else "not ended")
            risk = "" if each.risk is None else f"{each.risk:.4f}"
            print(
                f"{_day(each.begun)}  {each.run_id}  {how:9} {risk:6}  {safe(each.target)}  {safe(each.failure or '')}"
            )
    return found


async def _trend(past: Past, args: argparse.Namespace) -> object:
    found = await past.trends(since=args.since)
    if not args.json:
        for trend in found:
            slope = "" if trend.slope is None else f", {trend.slope:+.4f} a run"
            print(f"configuration {trend.config_hash}{slope}")
            for point in trend.points:
                mark = "  regression" if point.regression else ""
                print(f"  {_day(point.begun)}  {point.risk:.4f}  {point.decision:6}  {safe(point.target)}{mark}")
            for model in trend.models:
                came = ", ".join(f"{count} {name}" for name, count in sorted(model.decisions.items()))
                print(f"  {safe(model.target)}: {model.runs} runs, mean risk {model.mean_risk:.4f} ({came})")
    return found


async def _compare(past: Past, args: argparse.Namespace) -> object:
    reports = []
    for run_id in (args.first, args.second):
        text = await past.report(run_id)
        if text is None:
            raise GateError(f"there is no decided run `{run_id}`; `checkstream gate runs` lists them")
        reports.append(msgspec.json.decode(text, type=Report))
    found = comparison(*reports)
    if not args.json:
        print(f"{'':12} {safe(found.first):30} {safe(found.second)}")
        print(f"{'risk':12} {found.risk[0]:<30.4f} {found.risk[1]:.4f}  ({found.difference:+.4f})")
        print(f"{'decision':12} {found.decision[0]:30} {found.decision[1]}")
        if not found.comparable:
            print("the two ran by other configurations or over other documents")
    return found


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
