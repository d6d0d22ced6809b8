"""The process of a worker: takes jobs from the queue that the configuration names, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator

from checkstream.app.api import GateFolder, serve_api
from checkstream.app.evidence_search import open_search
from checkstream.app.measuring import serve_metrics
from checkstream.app.profiles import profiles, scorers
from checkstream.app.rescoring import opened_record, opened_rescoring
from checkstream.app.verifiers import Verifiers, open_verifiers
from checkstream.config import Address, Config, JobsSettings, reveal
from checkstream.config.identity import TlsSettings
from checkstream.errors import ConfigError, Fault
from checkstream.jobs import Reaction, Scoring, Watching, WebhookCaller, Worker, WorkerSettings, open_queue
from checkstream.jobs.backoff import Backoff
from checkstream.listen.tls import open_tls
from checkstream.telemetry.logs import LibraryLogs, Log, open_log
from checkstream.telemetry.metrics import Metrics
from checkstream.webhooks import Hook, signing_key


def reactions_of(config: Config) -> dict[str, Reaction]:
    """Return what each route does about high risks."""
    return {
        route.name: Reaction(
            high=route.grounding.high,
            on_high=route.grounding.on_high,
            marker_s=route.grounding.marker_ms / 1000,
        )
        for route in config.routes
        if route.grounding is not None
    }


def hooks_of(config: Config) -> dict[str, Hook]:
    """Return the webhook of each route that has one.

    Raises:
        ConfigError: a secret can't be read.
        NoticeUnsent: a secret holds no key.
    """
    return {
        route.name: Hook(route.grounding.webhook.url, signing_key(reveal(route.grounding.webhook.secret)))
        for route in config.routes
        if route.grounding is not None and route.grounding.webhook is not None
    }


def settings_of(jobs: JobsSettings) -> WorkerSettings:
    """Return how a worker works."""
    return WorkerSettings(
        concurrency=jobs.concurrency,
        lease_s=jobs.lease_ms / 1000,
        keep_ms=jobs.retention_days * 86_400_000,
        backoff=Backoff(attempts=jobs.attempts),
    )


async def run_worker(
    config: Config, metrics_at: Address | None, api_at: Address | None = None, gate: GateFolder | None = None
) -> None:
    """Work until SIGTERM or SIGINT.

    Args:
        config: Which queue, and what routes do about high risks.
        metrics_at: Where metrics are served; None: nowhere.
        api_at: Where the scoring API is served; None: nowhere.
        gate: What its `/evaluate` evaluates; None: nothing.

    Raises:
        ConfigError: a secret can't be read, or an address can't be bound.
        JobError: the queue can't be opened.
        StoreUnusable: the store of evidence can't be used.
        GateError: the file of runs can't be used.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    reactions = reactions_of(config)
    metrics = Metrics()
    log = open_log(config.telemetry.log, sys.stderr.buffer, terminal=sys.stderr.isatty())
    library = LibraryLogs(log)
    logging.getLogger().addHandler(library)
    queue = await asyncio.to_thread(open_queue, config.jobs)
    try:
        weakness = await asyncio.to_thread(lambda: queue.weakness)
        if weakness:
            log.warning("jobs.weakness", detail=weakness)
        async with (
            open_verifiers(config.verifier, config.models) as verifiers,
            open_search(config) as evidence,
            opened_rescoring(config) as rescorers,
            opened_record(config, log) as record,
            _api(config, api_at, verifiers, gate, metrics=metrics, log=log) as api,
            _metrics(metrics, metrics_at, config.server.admin_tls, log) as address,
        ):
            known = scorers(profiles(verifiers, evidence)) | rescorers
            worker = Worker(
                queue,
                {"score": Scoring(known, reactions), "webhook": WebhookCaller(hooks_of(config))},
                settings_of(config.jobs),
                Watching(metrics, log, reactions, record),
            )
            log.info("working", store=config.jobs.store, profiles=sorted(known), metrics=address, api=api)
            await worker.run(stop)
            log.info("stopped")
    finally:
        await asyncio.to_thread(queue.close)
        logging.getLogger().removeHandler(library)


@contextlib.asynccontextmanager
async def _api(
    config: Config,
    address: Address | None,
    verifiers: Verifiers,
    gate: GateFolder | None,
    *,
    metrics: Metrics,
    log: Log,
) -> AsyncIterator[str]:
    """Serve the scoring API meanwhile, if it is asked for.

    Raises:
        ConfigError: the address can't be used.
        GateError: the file of runs can't be used.
    """
    if address is None:
        yield ""
        return
    async with serve_api(config, address, verifiers, gate, os.environ, metrics=metrics, log=log) as where:
        yield where


@contextlib.asynccontextmanager
async def _metrics(
    metrics: Metrics, address: Address | None, certificate: TlsSettings | None, log: Log
) -> AsyncIterator[str]:
    """Serve metrics meanwhile.

    Raises:
        ConfigError: the address can't be bound.
    """
    if address is None:
        yield ""
        return

    tls = await asyncio.to_thread(open_tls, certificate, "metrics", log, metrics)
    async with contextlib.AsyncExitStack() as stack:
        serving = serve_metrics(address, lambda: asyncio.to_thread(metrics.render), tls=tls)
        try:
            where = await stack.enter_async_context(serving)
        except OSError as error:
            fault = Fault(
                file="command line",
                reason=f"can't listen on `{address}`: {(error.strerror or str(error)).lower()}",
                advice="give another address",
            )
            raise ConfigError((fault,)) from error
        yield where
