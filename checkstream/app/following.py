"""The bundle that a node is at: which one that is, which files its programs are, and how a newer one becomes current.

`current` in the node's folder names a bundle by its digest. It changes at once, and only for a bundle that is signed,
approved, compiles here to what was approved, passes its own cases and fits the routes of this node; what is in force
follows it as it follows any file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from checkstream.app.bundles import opened
from checkstream.config import BUNDLE, BundleSettings, Config, RouteSettings
from checkstream.control.index import Index
from checkstream.errors import BundleError, BundleRefused, ConfigError, Fault

CURRENT = "current"
_BUNDLES = "bundles"
_KEPT = 2
"""Bundles besides the current one that stay: a process may still be reading the one before."""


def pointers(config: Config) -> tuple[Path, ...]:
    """Return the file that changes with the bundle, if there is one."""
    return () if config.bundles is None else (Path(config.bundles.dir) / CURRENT,)


def current(settings: BundleSettings) -> str | None:
    """Return the digest of the bundle that this node is at; None: it has none yet."""
    try:
        return (Path(settings.dir) / CURRENT).read_text("ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise _fault(
            f"`{CURRENT}` in `{settings.dir}` can't be read: {error}", "remove it; it is fetched anew"
        ) from error


def uses_bundle(config: Config) -> bool:
    """Tell whether a route asks for a program of a bundle."""
    return any(name.startswith(BUNDLE) for route in config.routes for name in route.policies)


def expanded(config: Config, digest: str | None = None) -> tuple[Config, str]:
    """Return the configuration with policy files in place of programs of a bundle, and the bundle: `name@version#hash`.

    Where routes ask for none, the configuration is as it was, and the bundle is empty.

    Args:
        config: As it is written.
        digest: Of the bundle; None: of the current one.

    Raises:
        ConfigError: there is none yet, it is damaged, or it has no such program.
    """
    settings = config.bundles
    if settings is None or not uses_bundle(config):
        return config, ""
    named = digest or current(settings)
    if named is None:
        raise _fault(f"no bundle `{settings.name}` has been fetched yet", "`checkstream bundle follow --once` says why")
    folder = Path(settings.dir) / _BUNDLES / named
    try:
        index, _ = opened(folder)
    except BundleRefused as error:
        raise _fault(str(error), f"remove `{Path(settings.dir) / CURRENT}`, and it is fetched anew") from error
    routes = tuple(_expanded(route, index, folder) for route in config.routes)
    return msgspec.structs.replace(config, routes=routes), f"{index.name}@{index.version}#{named[:12]}"


def _expanded(route: RouteSettings, index: Index, folder: Path) -> RouteSettings:
    return msgspec.structs.replace(route, policies=tuple(_files(route, index, folder)))


def _files(route: RouteSettings, index: Index, folder: Path) -> Iterator[str]:
    for name in route.policies:
        if not name.startswith(BUNDLE):
            yield name
            continue
        program = index.programs.get(name.removeprefix(BUNDLE))
        if program is None:
            known = ", ".join(f"`{BUNDLE}{each}`" for each in index.programs)
            raise _fault(f"route `{route.name}`: the bundle has no program `{name}`", f"it has {known}")
        yield from (str(folder / path) for path in program.policies)


def _fault(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="bundles", reason=reason, advice=advice),))


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What one look for a newer bundle came to."""

    outcome: str
    """`same`, `accepted`, `refused` or `unreachable`."""
    bundle: str
    version: str = ""
    digest: str = ""
    reason: str = ""
    """Why it is not accepted."""


class Follower:
    """Looks for newer bundles on behalf of a node. One at a time works in a folder, over all processes."""

    def __init__(
        self,
        settings: BundleSettings,
        fetch: Callable[[BundleSettings], tuple[str, Index, Path]],
        accept: Callable[[Path, str], None],
    ) -> None:
        """Look at nothing yet.

        Args:
            settings: Where bundles come from.
            fetch: Returns the digest, the index and the folder of the newest bundle.
            accept: Takes its folder and digest; raises where it is not to be in force.
        """
        self._settings = settings
        self._fetch = fetch
        self._accept = accept
        self._refused: dict[str, str] = {}
        """Digest of a bundle -> why it is refused; it is not tried each time anew."""

    def step(self) -> Step:
        """Look once, and make a newer bundle current if all is well with it. Blocks."""
        name = self._settings.name
        try:
            with _alone(Path(self._settings.dir)):
                digest, index, folder = self._fetch(self._settings)
                said = {"bundle": name, "version": index.version, "digest": digest}
                if digest == current(self._settings):
                    return Step(outcome="same", **said)
                return self._tried(digest, folder, said)
        except BundleRefused as error:
            return Step(outcome="refused", bundle=name, reason=str(error))
        except BundleError as error:
            return Step(outcome="unreachable", bundle=name, reason=str(error))

    def _tried(self, digest: str, folder: Path, said: Mapping[str, str]) -> Step:
        if digest not in self._refused:
            try:
                self._accept(folder, digest)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with a bundle, the node keeps what it has
                first = str(error).partition("\n")[0]
                self._refused = {digest: first or type(error).__name__}
            else:
                _point(Path(self._settings.dir), digest)
                return Step(outcome="accepted", **said)
        return Step(outcome="refused", reason=self._refused[digest], **said)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process works in a folder.

    Raises:
        BundleError: the folder can't be used.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BundleError(f"`{folder}` can't be used: {(error.strerror or 'no reason given').lower()}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _point(folder: Path, digest: str) -> None:
    """Make a bundle current, whole or not at all, and let old ones go.

    Raises:
        BundleError: it can't be written.
    """
    part = folder / f".{CURRENT}.part"
    try:
        with part.open("w", encoding="ascii") as file:
            file.write(f"{digest}\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / CURRENT)
    except OSError as error:
        raise BundleError(f"`{folder}` can't be written: {(error.strerror or 'no reason given').lower()}") from error
    others = sorted(
        (path for path in (folder / _BUNDLES).iterdir() if path.name != digest), key=lambda path: -path.stat().st_mtime
    )
    for path in others[_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
