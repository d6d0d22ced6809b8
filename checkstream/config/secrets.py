"""Secrets: where the settings have some, and what they are. Their values are never part of the settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from checkstream.config.parts import Secret
from checkstream.config.settings import AuditSettings
from checkstream.errors import ConfigError, Fault


def reveal(secret: Secret) -> str:
    """Return the value of a secret, with its prefix.

    Raises:
        ConfigError: the environment variable or the file is not there, or is empty.
    """
    if secret.env is not None:
        value, origin = os.environ.get(secret.env, ""), f"environment variable `{secret.env}`"
    else:
        origin = f"file `{secret.file}`"
        try:
            value = Path(secret.file or "").read_text("utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise _missing(f"{origin} can't be read: {error}", "check the path and its rights") from error
    if not value:
        raise _missing(f"{origin} is not set", "set it before the start")
    if not value.isprintable():
        raise _missing(f"{origin} holds line breaks or control characters", "put one line into it")
    return secret.prefix + value


def audit_key(settings: AuditSettings) -> Path | Secret:
    """Return the file of the audit key, or what names the environment variable that holds it."""
    if settings.key is None:
        directory = Path(settings.dir)
        return directory.with_name(directory.name + ".key")
    return settings.key if settings.key.file is None else Path(settings.key.file)


def secrets_in(settings: object) -> Iterator[tuple[tuple[str | int, ...], Secret]]:
    """Yield each secret of settings, with its path: names of keys, places in lists."""
    below: Iterator[tuple[str | int, object]]
    if isinstance(settings, Secret):
        yield (), settings
        return
    if isinstance(settings, msgspec.Struct):
        fields = msgspec.structs.fields(settings)
        below = ((field.encode_name, getattr(settings, field.name)) for field in fields)
    elif isinstance(settings, Mapping):
        below = iter(settings.items())
    elif isinstance(settings, list | tuple):
        below = iter(enumerate(settings))
    else:
        return
    for step, part in below:
        for path, secret in secrets_in(part):
            yield (step, *path), secret


def _missing(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="secret", reason=reason, advice=advice),))
