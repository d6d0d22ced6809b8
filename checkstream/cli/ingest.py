"""`checkstream ingest`: bring trusted documents into the store of evidence."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import Counter as Counts

import msgspec

from checkstream.app.evidence import evidence_embedder, open_evidence, tokenise_of
from checkstream.cli.parser import Parser
from checkstream.cli.progress import Counter
from checkstream.cli.results import counted, safe, write_json
from checkstream.config import EvidenceSettings, load_config
from checkstream.errors import ConfigError, Fault
from checkstream.evidence.chunking import Cutting
from checkstream.evidence.ingest import Change, Ingestion, Step
from checkstream.evidence.sandbox import Sandbox
from checkstream.evidence.sources import Sources
from checkstream.evidence.web import Web

_EXAMPLES = """examples:
  checkstream ingest docs/ handbook.pdf
  checkstream ingest --config checkstream.yaml
  checkstream ingest https://docs.example.com/refunds.html --allow-host docs.example.com
  checkstream ingest s3://company-docs/support --store https://search.example.com:9200/support
"""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did."""

    added: int
    replaced: int
    unchanged: int
    removed: int
    failed: int
    chunks: int
    """That the store holds now."""
    snapshot: str
    bytes: int
    """That were fetched."""
    seconds: float
    failures: tuple[Step, ...]


def add_arguments(parser: Parser) -> None:
    """Say what the command `ingest` takes."""
    parser.describe(
        "Read documents (HTML, Markdown, text, PDF, Word) from files, folders, https pages and s3 buckets, "
        "cut them into chunks and keep them in the store of evidence. What is unchanged is left, what has gone from a "
        "source is removed; a run that was broken off is gone on with by running it again. Exit 1: a document could "
        "not be read.",
        examples=_EXAMPLES,
    )
    parser.add_argument("sources", metavar="SOURCE", nargs="*", help="default: `evidence.sources` of the configuration")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--config", metavar="FILE", help="the configuration that names the store under `evidence`")
    where.add_argument(
        "--store", metavar="STORE", help="sqlite:FILE (default: sqlite:var/evidence.db), https://..., ..."
    )
    parser.add_argument("--allow-host", metavar="HOST", action="append", default=[], help="fetch pages from this host")
    parser.add_argument(
        "--allow-private-host",
        metavar="HOST",
        action="append",
        default=[],
        help="the same, for one of your own network",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: all documents are in the store; 1: some could not be read.

    Raises:
        ConfigError: the configuration or the arguments hold faults.
        EvidenceError: a source is not allowed or can't be listed, or the store can't be used.
        ScoringError: the embedder failed.
    """
    settings = _settings(args)
    sources = tuple(args.sources) or settings.sources
    if not sources:
        raise _wrong("no sources are given", "name files, folders or addresses, or `evidence.sources` in --config")
    summary = asyncio.run(_ingest(settings, sources))
    if args.json:
        write_json(summary)
    else:
        _print(summary)
    return 1 if summary.failed else 0


def _settings(args: argparse.Namespace) -> EvidenceSettings:
    settings = load_config(args.config).evidence if args.config is not None else EvidenceSettings()
    changes: dict[str, object] = {} if args.store is None else {"store": args.store}
    changes["hosts"] = (*settings.hosts, *args.allow_host)
    changes["private_hosts"] = (*settings.private_hosts, *args.allow_private_host)
    try:
        return msgspec.structs.replace(settings, **changes)
    except ValueError as error:
        raise _wrong(str(error)) from error


async def _ingest(settings: EvidenceSettings, sources: tuple[str, ...]) -> Summary:
    began = time.monotonic()
    steps: Counts[Change] = Counts()
    failures: list[Step] = []
    size = 0
    embedder = evidence_embedder(settings.embedder)
    store = await open_evidence(settings, embedder)
    processes = min(os.cpu_count() or 1, 4)
    try:
        async with Sandbox(processes, settings.document_ms / 1e3) as sandbox:
            with Counter() as line:

                def told(step: Step) -> None:
                    nonlocal size
                    steps[step.change] += 1
                    size += step.bytes
                    if step.change is Change.FAILED:
                        failures.append(step)
                    rate = steps.total() / max(time.monotonic() - began, 1e-3)
                    line.show(f"{counted(steps.total(), 'document')}, {rate:.0f} a second: {safe(step.source)[-60:]}")

                ingestion = Ingestion(
                    store,
                    embedder,
                    extractor=sandbox,
                    tokenise=tokenise_of(embedder),
                    cutting=Cutting(size=settings.chunk_tokens, overlap=settings.overlap_tokens),
                    at_once=processes,
                )
                reader = Sources(web=Web(settings.hosts, settings.private_hosts), max_bytes=settings.document_bytes)
                await ingestion.run(sources, reader, told)
        return Summary(
            added=steps[Change.ADDED],
            replaced=steps[Change.REPLACED],
            unchanged=steps[Change.UNCHANGED],
            removed=steps[Change.REMOVED],
            failed=steps[Change.FAILED],
            chunks=await store.count(),
            snapshot=await store.snapshot(),
            bytes=size,
            seconds=round(time.monotonic() - began, 3),
            failures=tuple(failures),
        )
    finally:
        await store.close()


def _print(summary: Summary) -> None:
    for step in summary.failures:
        sys.stderr.write(f"{safe(step.source)}: {safe(step.reason)}\n")
    counts = {change: getattr(summary, change.value) for change in Change}
    took = max(summary.seconds, 1e-3)
    sys.stdout.write(", ".join(f"{number} {change}" for change, number in counts.items() if number) or "nothing to do")
    sys.stdout.write(f"\n{counted(summary.chunks, 'chunk')}, snapshot {summary.snapshot}\n")
    rate = f"{sum(counts.values()) / took:.0f} documents/s, {summary.bytes / 1e6 / took:.1f} MB/s"
    sys.stdout.write(f"{summary.seconds:.1f} s, {rate}\n")


def _wrong(reason: str, advice: str = "") -> ConfigError:
    return ConfigError((Fault(file="command line", reason=reason, advice=advice),))
