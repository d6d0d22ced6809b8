"""`checkstream bundle follow`: look for newer bundles, again and again, on behalf of a proxy: its agent.

With a control server it attests to it, has the bundle that it names, and ships the audit log to it: each is a task of
`_beside`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from checkstream.app import load
from checkstream.app.agent import Agent, Told, attested
from checkstream.app.bundles import approved, compiled, opened
from checkstream.app.following import Follower, Found, Pointer
from checkstream.app.force import configuration_hash
from checkstream.app.shipping import opened_shipper
from checkstream.cli.bundle_test import failing
from checkstream.cli.results import safe, write_json
from checkstream.cli.telemetry import say_shipped
from checkstream.config import BundleSettings, Config, ControlSettings, load_config, read_file
from checkstream.control.attestation import Running
from checkstream.control.bundles import fetching
from checkstream.control.bundles.look import Look
from checkstream.control.client import opened_client
from checkstream.control.identity import NodeKey, reading
from checkstream.control.telemetry.shipper import Shipped
from checkstream.errors import BundleError, BundleRefused, CheckstreamError

_AGAIN_S = 60.0
_SILENT_S = 30.0
"""A proxy that says nothing of itself for so long may hang."""
_SPREAD = 0.2
"""Of `poll_s`: nodes that began together don't ask together."""


class _Proxy:
    """What the proxy says of itself, a line each time; it ends this process by closing what it says it by."""

    def __init__(self, config: Config) -> None:
        """It has said nothing: it may not have started."""
        self._running = Running(configuration=configuration_hash(config))
        self._at: float | None = None
        self._heard = threading.Event()

    def listen(self, *, first: bool) -> None:
        """Hear it from now on, on a thread; with `first` wait for its first word.

        What it was started with counts, which may differ from what is written in its file.
        """
        self._at = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()
        if first:
            self._heard.wait(_SILENT_S)

    def _listen(self) -> None:
        try:
            for line in sys.stdin.buffer:
                self._running = msgspec.json.decode(line, type=Running)
                self._at = time.monotonic()
                self._heard.set()
        finally:  # whoever has started this process is gone, whatever it waits for
            os._exit(0)

    def told(self) -> Told:
        """Return what it has said last."""
        silent_s = 0.0 if self._at is None else time.monotonic() - self._at
        silence = f"the proxy has said nothing of itself for {silent_s:.0f} s" if silent_s > _SILENT_S else ""
        return Told(self._running, silence)


def run(args: argparse.Namespace) -> int:
    """Look until told to stop.

    Returns:
        0: stopped, or what is newest is current; 2: with `--once`, it is not.

    Raises:
        ConfigError: the configuration can't be used.
        BundleError: it names no bundle.
        ControlError: the node's key can't be used.
    """
    config = load_config(args.config)
    if config.bundles is None:
        raise BundleError(f"`{args.config}` names no bundle; add `bundles`, with `source`, `root` and `name`")
    proxy = _Proxy(config)
    if args.while_open:
        os.nice(10)  # streams come first
        proxy.listen(first=config.control is not None)
    if args.once:
        look = asyncio.run(looked_once(args.config, config, proxy.told))
        _say(look, as_json=args.json)
        return 0 if look.outcome in {"same", "accepted"} else 2
    asyncio.run(_beside(args.config, config, proxy, as_json=args.json))
    return 0


async def looked_once(file: Path, config: Config, told: Callable[[], Told]) -> Look:
    """Look once, and return what came of it.

    Raises:
        ControlError: the node's key can't be used.
    """
    async with _looking(file, config, told) as look:
        return await look()


async def _beside(file: Path, config: Config, proxy: _Proxy, *, as_json: bool) -> None:
    """Do all that is done beside a proxy, each as a task, for ever."""
    async with _looking(file, config, proxy.told) as look, asyncio.TaskGroup() as tasks:
        tasks.create_task(_again_and_again(look, config, as_json=as_json))
        if config.control is not None:
            tasks.create_task(_ship(config, as_json=as_json))


async def _ship(config: Config, *, as_json: bool) -> None:
    """Ship for ever; where it can't be begun, bundles are looked for all the same."""
    while True:
        try:
            async with opened_shipper(config) as shipper:
                await shipper.run(lambda shipped: say_shipped(shipped, as_json=as_json))
        except CheckstreamError as error:
            failed = Shipped(shipping="unreadable", reason=str(error), wait_s=_AGAIN_S)
            say_shipped(failed, as_json=as_json)
            await asyncio.sleep(failed.wait_s)


async def _again_and_again(look: Callable[[], Awaitable[Look]], config: Config, *, as_json: bool) -> None:
    led = config.control or config.bundles
    while led is not None:
        _say(await look(), as_json=as_json)
        await asyncio.sleep(led.poll_s * random.uniform(1 - _SPREAD, 1 + _SPREAD))  # noqa: S311 - no secret


@asynccontextmanager
async def _looking(
    file: Path, config: Config, told: Callable[[], Told]
) -> AsyncIterator[Callable[[], Awaitable[Look]]]:
    """Give what looks once: for the newest, or for what a control server names.

    Raises:
        ControlError: the node's key can't be used.
    """
    settings, control = config.bundles, config.control
    if settings is None:
        raise BundleError(f"`{file}` names no bundle")
    if control is None:
        follower = follower_of(file, settings)
        yield lambda: asyncio.to_thread(follower.step)
        return
    async with AsyncExitStack() as stack:
        key = await asyncio.to_thread(NodeKey.load, control.node, Path(control.key))
        client = await stack.enter_async_context(opened_client(control, key))
        follower = follower_of(file, settings, _fetcher(control, settings, key))
        yield Agent(settings, follower, client, told).step


def _fetcher(control: ControlSettings, settings: BundleSettings, key: NodeKey) -> Callable[[], fetching.Fetcher]:
    """Return what makes readers of the source; what the control server serves is asked for as the node."""
    own = control.url.rstrip("/") + "/"
    if not settings.source.startswith(own):
        return fetching.Fetcher

    def headers(url: str) -> dict[str, str]:
        return reading(key, urlsplit(url).path, attested(settings)) if url.startswith(own) else {}

    own_files = control.certificate, control.certificate_key
    certificate = None if own_files[0] is None or own_files[1] is None else (own_files[0], own_files[1])
    return lambda: fetching.Fetcher(headers=headers, ca=control.ca, certificate=certificate)


def follower_of(
    file: Path, settings: BundleSettings, fetcher: Callable[[], fetching.Fetcher] = fetching.Fetcher
) -> Follower:
    """Return what looks for bundles for the proxy of a configuration file."""

    def fetch(settings: BundleSettings, had: Collection[str], wanted: str) -> Found:
        try:
            root = read_file(Path(settings.root))
        except OSError as error:
            reason = (error.strerror or "it can't be opened").lower()
            raise BundleError(f"the root `{settings.root}` can't be read: {reason}") from error
        folder = Path(settings.dir)
        found = fetching.fetch(settings.source, root, settings.name, folder, fetcher=fetcher(), had=had, wanted=wanted)
        pointer = Pointer(digest=found.digest, weight=found.weight)
        return Found(pointer=pointer, version=found.index.version, folder=found.folder, offered=found.offered)

    def accept(found: Found) -> None:
        models = load_config(file).models
        index, files = opened(found.folder, found.pointer.digest)
        approved(index, compiled(index, files, models), found.pointer.weight)
        failed = failing(index, files, found.folder, None if models is None else Path(models))
        if failed:
            raise BundleRefused(f"its case `{failed[0]}` fails; `checkstream bundle test {found.folder}` says how")
        load(lambda: load_config(file), found.pointer)

    return Follower(settings, fetch, accept)


def _say(look: Look, *, as_json: bool) -> None:
    if as_json:
        write_json(look)
    else:
        named = f"{look.bundle} {look.version}".strip()
        digest = f" ({look.digest[:12]})" if look.digest else ""
        reason = f": {look.reason}" if look.reason else ""
        sys.stdout.write(safe(f"{named}{digest} {look.outcome}{reason}") + "\n")
    sys.stdout.flush()
