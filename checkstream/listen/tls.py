"""TLS of what listens: how, with which certificate, and how a fresh one takes the place of an old one.

A connection has the certificate that was current when it began, to its end. The files are looked at, beside the event
loop, when somebody connects and the last look is a while ago; so nothing goes round where nobody asks.

INVARIANT: a pair that can't be used never takes the place of one that can.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from cryptography import x509
from prometheus_client import Counter, Gauge

from checkstream.config.identity import TlsSettings
from checkstream.errors import CertificateUnusable, ConfigError, Fault
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Family

LOOK_S = 1.0
"""A changed file is in use after so long, if somebody connects; or at the next connection."""
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: forward secret and authenticated; TLS 1.3 has no others."""
Told = Callable[[str], None]
"""Hears why fresh files are not used; empty: they are."""


class ServerTls:
    """The context of TLS for connections that begin now."""

    def __init__(self, settings: TlsSettings, told: Told = lambda _: None) -> None:
        """Read nothing yet; `told` hears, on the event loop, of each change of the files."""
        self._settings = settings
        self._told = told
        self._marks: Sequence[object] = ()
        self._refused: Sequence[object] = ()
        self._looked = 0.0
        self._looking: asyncio.Future[str | None] | None = None
        self.context: ssl.SSLContext
        """The one for the next connection; behind `open`."""
        self.ends = 0.0
        """When its certificate does, seconds since 1970."""

    def open(self) -> None:
        """Read the files for the first time. Blocks.

        Raises:
            CertificateUnusable: they can't be used.
        """
        self._marks = self._mark()
        self.context, self.ends = self._made()

    def look_soon(self) -> None:
        """Look beside the event loop whether the files have changed, if it is time."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._looked < LOOK_S or self._looking is not None:
            return
        self._looked = loop.time()
        self._looking = loop.run_in_executor(None, self.look)
        self._looking.add_done_callback(self._has_looked)

    def look(self) -> str | None:
        """Take changed files; return why they can't be used, empty if they can, None if nothing is new. Blocks."""
        marks = self._mark()
        if marks in (self._marks, self._refused):
            return None
        self._refused = marks
        try:
            made = self._made()
        except CertificateUnusable as error:
            return str(error)
        if self._mark() != marks:  # in the midst of a change: the next look sees it whole
            self._refused = ()
            return None
        self.context, self.ends = made
        self._marks, self._refused = marks, ()
        return ""

    def _has_looked(self, looked: asyncio.Future[str | None]) -> None:
        self._looking = None
        if not looked.cancelled() and (fault := looked.result()) is not None:
            self._told(fault)

    def _mark(self) -> Sequence[object]:
        marks: list[object] = []
        for file in (self._settings.certificate, self._settings.key, self._settings.client_ca):
            try:
                marks.append(None if file is None else mark_of(file))
            except OSError as error:
                marks.append(error.errno)
        return marks

    def _made(self) -> tuple[ssl.SSLContext, float]:
        settings = self._settings
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_3 if settings.minimum == "1.3" else ssl.TLSVersion.TLSv1_2
            context.set_ciphers(_CIPHERS)
            context.set_alpn_protocols(["http/1.1"])
            context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
            context.load_cert_chain(settings.certificate, settings.key, password=no_password)
            if settings.client_ca is not None:
                context.verify_mode = ssl.CERT_REQUIRED if settings.clients == "required" else ssl.CERT_OPTIONAL
                context.load_verify_locations(settings.client_ca)
                # what is resumed is not verified anew, though who may come can have changed since
                context.options |= ssl.OP_NO_TICKET
                context.num_tickets = 0
            leaf = x509.load_pem_x509_certificates(Path(settings.certificate).read_bytes())[0]
        except (OSError, ValueError) as error:  # `ssl.SSLError` is an `OSError`
            files = (settings.certificate, settings.key, settings.client_ca)
            named = ", ".join(f"`{file}`" for file in files if file is not None)
            raise CertificateUnusable(f"the certificates {named} can't be used: {_why(error)}") from error
        return context, leaf.not_valid_after_utc.timestamp()


class Counting(Protocol):
    """Tells of certificates."""

    @property
    def tls_reloads(self) -> Family[Counter]:
        """Changes, by listener and outcome."""

    @property
    def tls_ends(self) -> Family[Gauge]:
        """When a certificate ends, by listener."""


def open_tls(settings: TlsSettings | None, face: str, log: Log, metrics: Counting | None = None) -> ServerTls | None:
    """Return TLS with its files read; None: there is none. What becomes of them is logged and counted. Blocks.

    Args:
        settings: What the configuration says.
        face: Which listener it is for, such as `proxy`.
        log: Is told of each change.
        metrics: Are told, too, and when the certificate ends; None: who serves counts nothing.

    Raises:
        ConfigError: the files can't be used.
    """
    if settings is None:
        return None

    def told(fault: str) -> None:
        if metrics is not None:
            metrics.tls_reloads.of(face, "refused" if fault else "accepted").inc()
            metrics.tls_ends.of(face).set(found.ends)
        if fault:
            log.error("tls.refused", face=face, detail=fault, advice="the certificate before stays in use")
        else:
            log.info("tls.renewed", face=face, certificate=settings.certificate)

    found = ServerTls(settings, told)
    try:
        found.open()
    except CertificateUnusable as error:
        advice = "give a certificate and its key, both in PEM"
        raise ConfigError((Fault(file="configuration", reason=str(error), advice=advice),)) from error
    if metrics is not None:
        metrics.tls_ends.of(face).set(found.ends)
    return found


def _why(error: Exception) -> str:
    """Return what is wrong with certificates, in words."""
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key is not that of the certificate"
        why = error.reason or ""  # OpenSSL gives none where it found nothing to read
        if why in {"", "NO_START_LINE", "PEM_LIB"}:
            return "one of them holds nothing of that kind in PEM"
        return why.lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)


def mark_of(file: str) -> object:
    """Return what changes when a file is replaced or written.

    Raises:
        OSError: it can't be looked at.
    """
    found = Path(file).stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def no_password() -> str:
    """Refuse a key that asks for a passphrase: nobody is there to be asked.

    Raises:
        ValueError: always.
    """
    raise ValueError("the private key has a passphrase; give one without")
