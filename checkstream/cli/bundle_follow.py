"""`checkstream bundle follow`: look for newer bundles, again and again, on behalf of a proxy."""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path

from checkstream.app import load
from checkstream.app.bundles import approved, compiled, opened
from checkstream.app.following import Follower, Found, Pointer
from checkstream.cli.bundle_test import failing
from checkstream.cli.results import safe, write_json
from checkstream.config import BundleSettings, load_config, read_file
from checkstream.control.bundles import fetching
from checkstream.control.bundles.look import Look
from checkstream.errors import BundleError, BundleRefused

_SPREAD = 0.2
"""Of `poll_s`: nodes that began together don't ask together."""


def run(args: argparse.Namespace) -> int:
    """Look until told to stop.

    Returns:
        0: stopped, or what is newest is current; 2: with `--once`, it is not.

    Raises:
        ConfigError: the configuration can't be used.
        BundleError: it names no bundle.
    """
    config = load_config(args.config)
    if config.bundles is None:
        raise BundleError(f"`{args.config}` names no bundle; add `bundles`, with `source`, `root` and `name`")
    settings = config.bundles
    follower = follower_of(args.config, settings)
    if args.while_open:
        os.nice(10)  # streams come first
        threading.Thread(target=_end_with_input, daemon=True).start()
    while True:
        step = follower.step()
        if args.json:
            write_json(step)
            sys.stdout.flush()
        else:
            _show(step)
        if args.once:
            return 0 if step.outcome in {"same", "accepted"} else 2
        wait_s = settings.poll_s * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - no secret
        time.sleep(wait_s)


def _end_with_input() -> None:
    """End as soon as whoever has started this process is gone, whatever it waits for."""
    sys.stdin.buffer.read()
    os._exit(0)


def follower_of(file: Path, settings: BundleSettings) -> Follower:
    """Return what looks for newer bundles for the proxy of a configuration file."""

    def fetch(settings: BundleSettings, had: Collection[str]) -> Found:
        try:
            root = read_file(Path(settings.root))
        except OSError as error:
            reason = (error.strerror or "it can't be opened").lower()
            raise BundleError(f"the root `{settings.root}` can't be read: {reason}") from error
        found = fetching.fetch(settings.source, root, settings.name, Path(settings.dir), had=had)
        pointer = Pointer(digest=found.digest, weight=found.weight)
        return Found(pointer=pointer, version=found.index.version, folder=found.folder)

    def accept(found: Found) -> None:
        models = load_config(file).models
        index, files = opened(found.folder, found.pointer.digest)
        approved(index, compiled(index, files, models), found.pointer.weight)
        failed = failing(index, files, found.folder, None if models is None else Path(models))
        if failed:
            raise BundleRefused(f"its case `{failed[0]}` fails; `checkstream bundle test {found.folder}` says how")
        load(lambda: load_config(file), found.pointer)

    return Follower(settings, fetch, accept)


def _show(step: Look) -> None:
    named = f"{step.bundle} {step.version}".strip()
    digest = f" ({step.digest[:12]})" if step.digest else ""
    reason = f": {step.reason}" if step.reason else ""
    sys.stdout.write(safe(f"{named}{digest} {step.outcome}{reason}") + "\n")
    sys.stdout.flush()
