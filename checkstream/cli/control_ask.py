"""What people ask a control server: how fleets stand, and what is to be done with a rollout."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from checkstream.cli.results import safe, write_json
from checkstream.control.attestation import Candidate
from checkstream.control.server.showing import FleetShown, NodeShown, RolloutShown
from checkstream.errors import ControlError, ControlUnusable

URL, KEY = "CHECKSTREAM_CONTROL_URL", "CHECKSTREAM_CONTROL_KEY"
"""Environment variables with the server's address, and with who asks."""
_TIMEOUT = aiohttp.ClientTimeout(total=40, connect=10)
_MOST_BYTES = 64 << 20


def status(args: argparse.Namespace) -> int:
    """Show how fleets stand.

    Returns:
        0: every node has what it should have; 1: some haven't, are refused, or are stale.
    """
    names = [args.fleet] if args.fleet is not None else ask(args, "GET", "/v1/fleets")["fleets"]
    fleets = [msgspec.convert(ask(args, "GET", f"/v1/fleets/{quote(name, safe='')}"), FleetShown) for name in names]
    for fleet in fleets:
        if args.json:
            write_json(fleet)
        else:
            sys.stdout.write("\n".join(map(safe, _told(fleet))) + "\n")
    return 1 if any(node.drifted or node.refused or node.stale for fleet in fleets for node in fleet.nodes) else 0


def _told(fleet: FleetShown) -> Iterator[str]:
    signed = ", ".join(f"{each.version} ({each.digest[:12]})" for each in fleet.offered) or "nothing is known of"
    yield f"fleet {fleet.fleet}, bundle {fleet.bundle}; signed now: {signed}"
    if fleet.rollout is not None:
        yield _told_of(fleet.rollout)
    known = {each.digest: each.version for each in fleet.offered}
    if fleet.rollout is not None:
        known |= {fleet.rollout.digest: fleet.rollout.version, fleet.rollout.before: fleet.rollout.before_version}
    rows = [("node", "ring", "has", "should have", "heard of", ""), *(_row(node, known) for node in fleet.nodes)]
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {'  '.join([*cells, row[5]])}".rstrip()


def _row(node: NodeShown, known: dict[str, str]) -> tuple[str, ...]:
    heard = "never" if node.heard_s is None else f"{node.heard_s:.0f} s ago"
    should = f"{known.get(node.desired, '?')} ({node.desired[:12]})" if node.desired else "-"
    should += _beside(node.desired_candidate)
    has = (f"{node.version} ({node.reported[:12]})" if node.reported else "-") + _beside(node.candidate)
    mark = "STALE" if node.stale else "REFUSED" if node.refused else "DRIFTED" if node.drifted else ""
    return node.node, node.ring, has, should, heard, f"{mark} {node.why}".strip()


def _beside(candidate: Candidate | None) -> str:
    if candidate is None:
        return ""
    return f", for {candidate.share} % {candidate.version} ({candidate.bundle[:12]})"


def _told_of(rollout: RolloutShown) -> str:
    where = f", ring {rollout.ring} of {', '.join(rollout.rings)}" if rollout.ring else ""
    where += "" if rollout.callers is None else f" with {rollout.callers} % of callers"
    who = f"asked for by {rollout.asked_by}"
    who += f", approved by {rollout.approved_by}" if rollout.approved_by else ""
    why = f": {rollout.why}" if rollout.why else ""
    return f"rollout {rollout.id} of {rollout.version} ({rollout.digest[:12]}), {who}: {rollout.stage}{where}{why}"


def rollout(args: argparse.Namespace) -> int:
    """Ask for a rollout."""
    body = {"fleet": args.fleet, "version": args.version, "reason": args.reason}
    _show(args, ask(args, "POST", "/v1/rollouts", body))
    return 0


def move(args: argparse.Namespace) -> int:
    """Approve of a rollout, have it go on, or take it back."""
    path = {"approve": "/v1/approvals", "promote": "/v1/promotions", "rollback": "/v1/rollbacks"}[args.control_command]
    _show(args, ask(args, "POST", path, {"rollout": _number(args), "reason": args.reason}))
    return 0


def _number(args: argparse.Namespace) -> int:
    """Return the number of the rollout that is meant; a fleet means its newest, but for who approves."""
    said: str = args.rollout
    if said.isascii() and said.isdecimal():
        return int(said[:15])
    if args.control_command == "approve":
        raise ControlError("an approval is of one rollout; give its number, which `checkstream control status` shows")
    newest = ask(args, "GET", f"/v1/fleets/{quote(said, safe='')}")["rollout"]
    if newest is None:
        raise ControlError(f"fleet `{said}` has had no rollout")
    return int(newest["id"])


def _show(args: argparse.Namespace, body: Any) -> None:
    shown = msgspec.convert(body, RolloutShown)
    if args.json:
        write_json(shown)
    else:
        sys.stdout.write(safe(_told_of(shown)) + "\n")


def allow(args: argparse.Namespace) -> int:
    """Say what nodes of a fleet may be, or may no longer."""
    body = {"fleet": args.fleet, "kind": args.kind, "value": args.value, "reason": args.reason}
    ask(args, "POST", "/v1/allowances", {**body, "allowed": not args.remove})
    return 0


def events(args: argparse.Namespace) -> int:
    """Show what has happened, the newest last."""
    query = urlencode({"most": args.most, **({} if args.fleet is None else {"fleet": args.fleet})})
    for each in reversed(ask(args, "GET", f"/v1/events?{query}")["events"]):
        if args.json:
            write_json(each)
            continue
        at = datetime.fromtimestamp(each["at_ms"] / 1000, UTC)
        who = " ".join(filter(None, (each["fleet"], each["node"])))
        sys.stdout.write(safe(f"{at:%Y-%m-%d %H:%M:%S}Z  {each['kind']}  {who}: {each['reason']}") + "\n")
    return 0


def ask(args: argparse.Namespace, method: str, path: str, body: object = None) -> Any:
    """Return what the server answers.

    Raises:
        ControlError: it refuses.
        ControlUnusable: it can't be reached.
    """
    url = (args.server or os.environ.get(URL, "")).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ControlError(f"which control server? Give `--server https://...`, or set `{URL}`")
    key = os.environ.get(KEY, "").strip()
    if not key.isascii() or not key.isprintable() or not key:
        raise ControlError(f"who asks? Set `{KEY}` to your key; `checkstream control key` makes one")
    return asyncio.run(_asked(method, url + path, key, body))


async def _asked(method: str, url: str, key: str, body: object) -> Any:
    data = None if body is None else msgspec.json.encode(body)
    headers = {"authorization": f"Bearer {key}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as client,
            client.request(method, url, data=data, headers=headers, allow_redirects=False) as response,
        ):
            answer = await response.content.read(_MOST_BYTES)
            found = msgspec.json.decode(answer)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise ControlUnusable(f"`{url}` can't be asked: {str(error) or type(error).__name__}") from error
    if response.status != 200:
        said = found.get("error", {}).get("message") if isinstance(found, dict) else None
        raise ControlError(str(said or f"`{url}` answers {response.status}"))
    return found
