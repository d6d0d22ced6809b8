"""`checkstream score`: serve this machine's models to many proxies, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import uvloop

from checkstream.cli.parser import Parser
from checkstream.config import Address, parse_address
from checkstream.config.identity import TlsSettings
from checkstream.detect import Detection
from checkstream.errors import ConfigError, Fault
from checkstream.listen import Admission, Callers, Hosts, Listener, Times
from checkstream.listen.tls import open_tls
from checkstream.scoring import Model, ModelKind, Scorer, open_session
from checkstream.scoring.provenance import installed_models
from checkstream.telemetry.logs import LibraryLogs, open_log

_DRAIN_S = 10.0
_TIMES = Times(header_s=10.0, write_s=30.0)
_NOT_SERVED = frozenset({ModelKind.REMOTE, ModelKind.EMBEDDING, ModelKind.PAIR})
"""They score no single text, or are another service's."""
_BODY_BYTES = 1 << 24
_HELD_BYTES = 1 << 28
_EXAMPLES = """examples:
  checkstream score
  SCORE_TOKEN=... checkstream score --listen 0.0.0.0:8090 --token-env SCORE_TOKEN --model safety
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command `score` takes."""
    parser.describe(
        "Serve `POST /v1/detect` until SIGTERM or SIGINT, for models of kind `remote` of other proxies. "
        "`/livez` and `/readyz` ask for no token.",
        examples=_EXAMPLES,
    )
    parser.add_argument(
        "--listen", metavar="HOST:PORT", type=_address, default="127.0.0.1:8090", help="default: 127.0.0.1:8090"
    )
    parser.add_argument("--model", metavar="NAME", action="append", help="serve this model (default: all there are)")
    parser.add_argument("--models", metavar="FILE", type=Path, help="a models.yaml with models of your own")
    parser.add_argument(
        "--token-env",
        metavar="VARIABLE",
        help="environment variable with the token that proxies send; needed where others can reach the address",
    )
    parser.add_argument("--tls-certificate", metavar="FILE", help="certificate of this service, with its chain (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key (PEM, without a passphrase)")
    parser.add_argument(
        "--client-ca", metavar="FILE", help="let in only those whose certificate is signed with one of these"
    )
    parser.add_argument(
        "--requests", metavar="N", type=_count, default=256, help="most requests at once (default: 256)"
    )


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= 65_536:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of requests; write 1 to 65536")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve.

    Returns:
        0: stopped in good order.

    Raises:
        ConfigError: models.yaml, the token or the address can't be used.
        ModelError: a model can't be used.
    """
    callers = _callers(args.token_env, args.listen)
    models = installed_models(args.models, args.model)
    served = tuple(model for model in models if model.entry.kind not in _NOT_SERVED)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(served, args.listen, callers, args.requests, _tls(args)))


def _tls(args: argparse.Namespace) -> TlsSettings | None:
    if args.tls_certificate is None and args.tls_key is None and args.client_ca is None:
        return None
    if args.tls_certificate is None or args.tls_key is None:
        raise _wrong("TLS needs a certificate and its key", "give `--tls-certificate` and `--tls-key`")
    return TlsSettings(certificate=args.tls_certificate, key=args.tls_key, client_ca=args.client_ca)


def _callers(variable: str | None, address: Address) -> Callers:
    if variable is None:
        if not address.loopback:
            raise _wrong(f"others can reach `{address}`", "give `--token-env`, or listen on 127.0.0.1")
        return Callers(None)
    token = os.environ.get(variable, "").strip()
    if not token or not token.isprintable():
        raise _wrong(f"environment variable `{variable}` holds no token", "set it to one line before the start")
    return Callers({"proxy": token})


def _wrong(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="command line", reason=reason, advice=advice),))


async def _serve(
    models: tuple[Model, ...], address: Address, callers: Callers, requests: int, certificate: TlsSettings | None
) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log = open_log("auto", sys.stderr.buffer, terminal=sys.stderr.isatty())
    library = LibraryLogs(log)
    logging.getLogger().addHandler(library)
    scorer = Scorer(models, open_session)
    admission = Admission(streams=requests, held_bytes=_HELD_BYTES)
    detection = Detection(models, scorer, callers=callers, admission=admission, times=_TIMES, body_bytes=_BODY_BYTES)
    tls = await asyncio.to_thread(open_tls, certificate, "score", log)
    listener = Listener(detection.respond, _TIMES, None if callers.known else Hosts(), tls=tls)
    try:
        try:
            await listener.open(address)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise _wrong(f"can't listen on `{address}`: {reason}", "give another address") from error
        log.info("listening", listen=str(listener.address), models=[model.name for model in models])
        await stop.wait()
        detection.draining = True
        log.info("draining", requests=admission.streams)
        listener.stop_accepting()
        await admission.wait_idle(_DRAIN_S)
    finally:
        await listener.close()
        await scorer.close()
        logging.getLogger().removeHandler(library)
    return 0
