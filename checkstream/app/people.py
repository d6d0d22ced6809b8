"""Who asks a control server: people with keys, with certificates, and those whom a provider knows."""

from __future__ import annotations

import hashlib

from checkstream.config import ControlConfig, reveal
from checkstream.config.certificates import read_pattern
from checkstream.control.server.people import People
from checkstream.control.server.provided import Provided
from checkstream.errors import ConfigError, Fault
from checkstream.listen import Callers
from checkstream.telemetry.logs import Log

_KEY_CHARS = 20


def provided_by(config: ControlConfig, people: People, log: Log) -> Provided | None:
    """Return who tells of a provider's people; None: there is no provider. Blocks on files.

    Raises:
        ConfigError: the console's secret can't be read.
    """
    oidc = config.oidc
    if oidc is None:
        return None
    secret = None if oidc.client_secret is None else reveal(oidc.client_secret)
    return Provided(config, oidc, secret, people, log)


def callers_of(config: ControlConfig, tokens: Provided | None) -> Callers:
    """Return who may ask. Blocks on files.

    Raises:
        ConfigError: a key can't be read, is short, or two people have the same.
    """
    digests: dict[str, bytes] = {}
    for name, person in config.people.items():
        if person.key is not None:
            key = reveal(person.key)
            if len(key) < _KEY_CHARS:
                raise _wrong(f"the key of `{name}` is short", "`checkstream control key` makes one")
            digest = hashlib.sha256(key.encode()).digest()
        elif person.key_sha256 is not None:
            digest = bytes.fromhex(person.key_sha256)
        else:
            continue
        if digest in digests.values():
            raise _wrong(f"`{name}` has the key of somebody else", "give everybody their own")
        digests[name] = digest
    shown = {name: each.certificate for name, each in config.people.items() if each.certificate is not None}
    return Callers.hashed(
        digests, tokens=tokens, certificates={name: read_pattern(pattern) for name, pattern in shown.items()}
    )


def _wrong(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="control", reason=reason, advice=advice),))
