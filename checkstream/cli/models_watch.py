"""`checkstream models watch`: do the texts that classifiers score still look like those that they were made for?"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec

from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import safe, write_json
from checkstream.errors import FileUnreadable, MetricsUnreadable
from checkstream.telemetry.drift import CHANGED, LEAST, MOVED, Counts, Drift, Key, drifts
from checkstream.telemetry.reading import Day, read_day

_MOST_BYTES = 1 << 26
_TIMEOUT_S = 10.0
_ADMIN = "http://127.0.0.1:9090"


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `models`."""
    parser = commands.add_parser(
        "watch",
        help="hold the scores of the last 24 hours against those of calm texts; exit 1 when they have changed",
        description="Read the metrics of a running proxy, and say of each classifier's label how far the scores of the "
        f"last 24 hours are from those of calm texts: `steady`, `moved` (PSI {MOVED} and up) or `changed` "
        f"(PSI {CHANGED} and up). Exit 0: none has changed. 1: one has. 2: wrong use, or there are no such metrics.",
        epilog="""examples:
  checkstream models watch
  checkstream models watch --admin https://proxy.internal:9090 --token-env ADMIN_TOKEN --json
  curl -s http://127.0.0.1:9090/metrics > monday.prom && checkstream models watch --against monday.prom
""",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--admin", metavar="URL", default=_ADMIN, help=f"admin listener of the proxy ({_ADMIN})")
    source.add_argument("--metrics", metavar="FILE", type=Path, help="metrics that were saved, in place of a proxy's")
    parser.add_argument("--token-env", metavar="NAME", help="environment variable with the admin listener's token")
    parser.add_argument(
        "--against", metavar="FILE", type=Path, help="hold the day against that of these saved metrics, of any model"
    )
    parser.add_argument("--psi", metavar="P", type=_bound, default=CHANGED, help=f"`changed` from this on ({CHANGED})")
    parser.add_argument(
        "--ks", metavar="D", type=_bound, help="`changed` from this Kolmogorov-Smirnov distance on, too"
    )
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")
    return parser


def _bound(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"`{text}` is no bound; write a number above 0, such as 0.25")
    return number


Verdict = Literal["steady", "moved", "changed", "unknown"]


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to say of one label at one stage."""

    classifier: str
    stage: str
    scores: int
    psi: float | None = None
    ks: float | None = None
    verdict: Verdict = "unknown"
    reason: str = ""
    """Why it is unknown."""


def run(args: argparse.Namespace) -> int:
    """Print what has drifted.

    Returns:
        0: nothing has changed; 1: something has.

    Raises:
        MetricsUnreadable: there are no such metrics.
        FileUnreadable: a file can't be read.
    """
    day = _day(args.metrics) if args.metrics is not None else asyncio.run(_asked(args.admin, args.token_env))
    reference = day.reference if args.against is None else _day(args.against).today
    found = watched(day.today, reference, psi=args.psi, ks=args.ks)
    if args.json:
        write_json(found)
    else:
        _print(found)
    return 1 if any(each.verdict == "changed" for each in found) else 0


def watched(
    today: Mapping[Key, Counts], reference: Mapping[Key, Counts], *, psi: float = CHANGED, ks: float | None = None
) -> list[Watched]:
    """Return what there is to say of each label that has been scored today, by name."""
    known = drifts(reference, today)
    found = []
    for key in sorted(today):
        told = Watched(classifier=key[0], stage=key[1], scores=int(sum(today[key])))
        drift = known.get(key)
        if drift is None:
            found.append(msgspec.structs.replace(told, reason=_reason(key, today, reference)))
        else:
            verdict = _verdict(drift, psi, ks)
            found.append(msgspec.structs.replace(told, psi=round(drift.psi, 4), ks=round(drift.ks, 4), verdict=verdict))
    return found


def _verdict(drift: Drift, psi: float, ks: float | None) -> Verdict:
    if drift.psi >= psi or (ks is not None and drift.ks >= ks):
        return "changed"
    return "moved" if drift.psi >= MOVED else "steady"


def _reason(key: Key, today: Mapping[Key, Counts], reference: Mapping[Key, Counts]) -> str:
    least = LEAST.get(key[1], 0)
    if key not in reference:
        return "no reference; see --against"
    few, of_what = (today, "") if sum(today[key]) < least else (reference, " in the reference")
    return f"too few scores{of_what}: {sum(few[key]):.0f} of {least}"


def _print(found: list[Watched]) -> None:
    if not found:
        sys.stdout.write("no classifier has scored a text in the last 24 hours\n")
        return
    rows: list[tuple[str, ...]] = [("classifier", "stage", "scores", "PSI", "KS", "verdict")]
    for each in found:
        figures = ("-" if value is None else f"{value:.3f}" for value in (each.psi, each.ks))
        told = f"{each.verdict} ({each.reason})" if each.reason else each.verdict
        rows.append((safe(each.classifier), safe(each.stage), str(each.scores), *figures, told))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1]), *map(str.rjust, row[2:5], widths[2:])]
        sys.stdout.write("  ".join((*cells, row[5])) + "\n")


def _day(file: Path) -> Day:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FileUnreadable(f"`{file}` can't be read: {(error.strerror or 'no such file').lower()}") from error
    _check_size(data, f"`{file}`")
    return read_day(data, f"`{file}`")


async def _asked(admin: str, token_env: str | None) -> Day:
    url = _metrics_of(admin)
    headers = {} if token_env is None else {"authorization": f"Bearer {_token(token_env)}"}
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
            session.get(url, allow_redirects=False) as response,  # a token goes nowhere else
        ):
            if response.status != 200:
                raise _refused(url, response.status)
            data = bytearray()
            async for chunk in response.content.iter_any():
                data += chunk
                _check_size(data, url)
    except TimeoutError as error:
        raise MetricsUnreadable(
            f"{url} has not answered within {_TIMEOUT_S:.0f} s; is that the admin listener?"
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        said = safe(str(error).splitlines()[0]) if str(error) else type(error).__name__
        advice = "name its admin listener with --admin"
        raise MetricsUnreadable(f"no proxy answers at {url}: {said}; {advice}") from error
    return read_day(bytes(data), url)


def _check_size(data: bytes | bytearray, source: str) -> None:
    if len(data) > _MOST_BYTES:
        raise MetricsUnreadable(f"{source}: more than {_MOST_BYTES >> 20} MiB; these are no metrics of a proxy")


def _metrics_of(admin: str) -> str:
    """Return the address of metrics of an admin listener."""
    try:
        parts = urlsplit(admin)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        port_fits = False
    if not port_fits or parts.scheme not in ("http", "https") or not parts.hostname:
        raise MetricsUnreadable(f"`{safe(admin)}` is no address of an admin listener; write {_ADMIN}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/metrics')}/metrics"


def _token(name: str) -> str:
    token = os.environ.get(name, "")
    if not token or not token.isprintable():
        raise MetricsUnreadable(f"environment variable `{safe(name)}` holds no token; set it")
    return token


def _refused(url: str, status: int) -> MetricsUnreadable:
    if status == 401:
        return MetricsUnreadable(f"{url} asks for a token; name the environment variable that has it with --token-env")
    return MetricsUnreadable(f"{url} answers {status}; name the admin listener of a proxy with --admin")
