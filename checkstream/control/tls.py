"""TLS of a client whose certificates may be replaced while it runs."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from checkstream.errors import ControlUnusable
from checkstream.listen.tls import mark_of, no_password


class ClientTls:
    """Gives a context of TLS that has what the files hold now."""

    def __init__(self, ca: str | None, certificate: str | None = None, key: str | None = None) -> None:
        """Read nothing yet.

        Args:
            ca: File with the certificates that a server's may be signed with; None: those of the system.
            certificate: File of the client's own (PEM, with those that it is signed with); None: it has none.
            key: File of its private key.
        """
        self._ca, self._certificate, self._key = ca, certificate, key
        self._marks: Sequence[object] = ()
        self._context: ssl.SSLContext | None = None

    def current(self) -> ssl.SSLContext:
        """Return a context; another one if a file has changed. Blocks.

        Files that don't go together, as in the midst of a replacement, leave what was there before in use.

        Raises:
            ControlUnusable: the files can't be read, and there was nothing before.
        """
        try:
            marks = [mark_of(file) for file in (self._ca, self._certificate, self._key) if file is not None]
            if self._context is None or marks != self._marks:
                context = ssl.create_default_context(cafile=self._ca)
                if self._certificate is not None:
                    context.load_cert_chain(self._certificate, self._key, password=no_password)
                self._context, self._marks = context, marks
        except (OSError, ssl.SSLError, ValueError) as error:
            if self._context is None:
                named = ", ".join(f"`{file}`" for file in (self._ca, self._certificate, self._key) if file is not None)
                raise ControlUnusable(f"the certificates {named} can't be used: {error}") from error
        return self._context
