"""The bundle that a node is at: which one that is, which files its programs are, and how a newer one becomes current.

`current` in the node's folder names a bundle by its digest, and what was approved of it. It changes at once, and only
for a bundle that is signed, approved, compiles here to what was approved, passes its own cases and fits the routes of
this node; what is in force follows it as it follows any file. Beside it `current` may name a second one, for a share of
the callers: both stand in one file, so that there is never the second without the first. INVARIANT: whenever they are
loaded, files are held to the digest and programs to the approval again: another package or other models may compile to
something else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.app.bundles import approved, compiled, opened
from checkstream.config import BUNDLE, BundleSettings, Config, RouteSettings, read_file
from checkstream.control.attestation import Candidate, Offered
from checkstream.control.bundles.index import Index
from checkstream.control.bundles.look import Look
from checkstream.core.policy.program import Digest
from checkstream.errors import BundleError, BundleRefused, ConfigError, Fault

CURRENT = "current"
_BUNDLES = "bundles"
_OLD = ".old-"
_LOCK_TRIES, _LOCK_S = 60, 0.5
_TRY_AGAIN = 10
"""Looks after which a bundle that was refused is tried once more: what was wrong may be this node's own."""
_KEPT = 2
"""Bundles besides the current one that stay: a process may still be reading the one before."""


def pointers(config: Config) -> tuple[Path, ...]:
    """Return the file that changes with the bundle, if there is one."""
    return () if config.bundles is None else (Path(config.bundles.dir) / CURRENT,)


class Beside(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second bundle, the candidate of a rollout, and by whom it is chosen."""

    digest: Digest
    """Of the bundle."""
    weight: Digest
    """Of what may be enforced, as it was approved."""
    share: Annotated[int, Meta(ge=1, le=99)]
    """Percent of the callers."""
    salt: Annotated[str, Meta(max_length=64)]
    """Of the hash that chooses them."""

    @property
    def pointer(self) -> Pointer:
        """The bundle alone."""
        return Pointer(digest=self.digest, weight=self.weight)


class Pointer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `current` says."""

    digest: Digest
    """Of the bundle."""
    weight: Digest
    """Of what may be enforced, as it was approved."""
    candidate: Beside | None = None
    """Another one for a share of the callers; null: there is none."""

    @property
    def base(self) -> Pointer:
        """The same without a candidate."""
        return msgspec.structs.replace(self, candidate=None)


def current(settings: BundleSettings) -> Pointer | None:
    """Return the bundle that this node is at; None: it has none yet.

    Raises:
        ConfigError: that can't be read.
    """
    path = Path(settings.dir) / CURRENT
    try:
        return msgspec.json.decode(read_file(path), type=Pointer)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _fault(f"`{path}` can't be read: {error}", "remove it; the bundle is fetched anew") from error


def uses_bundle(config: Config) -> bool:
    """Tell whether a route asks for a program of a bundle."""
    return any(name.startswith(BUNDLE) for route in config.routes for name in route.policies)


def expanded(config: Config, pointer: Pointer | None = None) -> tuple[Config, str, str]:
    """Return the configuration with policy files in place of programs of a bundle, the bundle, and its digest.

    The bundle is told as `name@version#hash`. Where routes ask for none, the configuration is as it was, and bundle and
    digest are empty.

    Args:
        config: As it is written.
        pointer: To the bundle; None: to the current one.

    Raises:
        ConfigError: there is none yet, it is damaged, it is not what was approved, or it has no such program.
        ModelError: a model can't be used.
    """
    settings = config.bundles
    if settings is None or not uses_bundle(config):
        return config, "", ""
    named = pointer or current(settings)
    if named is None:
        advice = "`checkstream bundle follow --config FILE --once` fetches it, or says why not"
        raise _fault(f"no bundle `{settings.name}` has been fetched yet", advice)
    folder = Path(settings.dir) / _BUNDLES / named.digest
    try:
        index, files = opened(folder, named.digest)
        approved(index, compiled(index, files, config.models), named.weight)
    except BundleRefused as error:
        raise _fault(str(error), "`checkstream bundle follow --config FILE --once` looks for another") from error
    routes = tuple(_expanded(route, index, folder) for route in config.routes)
    said = f"{index.name}@{index.version}#{named.digest[:12]}"
    return msgspec.structs.replace(config, routes=routes), said, named.digest


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


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The newest bundle, as it was fetched."""

    pointer: Pointer
    version: str
    folder: Path
    offered: tuple[Offered, ...] = ()
    """All versions that the signed state names, the newest first."""


class Follower:
    """Looks for newer bundles on behalf of a node. One at a time works in a folder, over all processes."""

    def __init__(
        self,
        settings: BundleSettings,
        fetch: Callable[[BundleSettings, Collection[str], str], Found],
        accept: Callable[[Found], None],
    ) -> None:
        """Look at nothing yet.

        Args:
            settings: Where bundles come from.
            fetch: Returns a bundle; gets the digests of those whose files are known to be sound, and the digest of the
                one that is wanted, empty for the newest.
            accept: Raises where a bundle is not to be in force.
        """
        self._settings = settings
        self._fetch = fetch
        self._accept = accept
        self._refused: dict[Pointer, str] = {}
        self._looks = 0
        self._had: set[str] = set()
        self.offered: tuple[Offered, ...] = ()
        """All versions that the signed state named at the last look, the newest first."""

    def step(self, wanted: str = "", candidate: Candidate | None = None, *, take: bool = True) -> Look:
        """Look once, and make another bundle current if all is well with it. Blocks.

        A candidate that is not wanted any more goes at once, since that needs nothing that could be away. Otherwise it
        stays until there is a base that it may stand beside, or one that takes its place.

        Args:
            wanted: Digest of the one to have; empty: the newest.
            candidate: The one to have beside it for a share of the callers, if there is to be one.
            take: Make it current; else it is only fetched, for whoever says later that it is to be had.
        """
        name = self._settings.name
        self._looks += 1
        try:
            with _alone(Path(self._settings.dir)):
                if take:
                    self._let_go(wanted, candidate)
                had = self._had
                found = self._found(had, wanted)
                self._had, self.offered = {found.pointer.digest}, found.offered
                if not take:
                    _tidy(Path(self._settings.dir), {found.pointer.digest, *_digests(_readable(self._settings))})
                    return Look(outcome="same", bundle=name)
                look = self._taken(found)
                if candidate is None or look.outcome == "refused":
                    return look
                return self._taken_beside(candidate, found.pointer, had)
        except BundleRefused as error:
            return Look(outcome="refused", bundle=name, reason=str(error))
        except (BundleError, ConfigError) as error:
            return Look(outcome="unreachable", bundle=name, reason=str(error).partition("\n")[0])
        except OSError as error:
            reason = f"`{self._settings.dir}` can't be written: {(error.strerror or 'no reason given').lower()}"
            return Look(outcome="unreachable", bundle=name, reason=reason)

    def _found(self, had: Collection[str], wanted: str) -> Found:
        """Fetch a bundle; where the one that is wanted is refused, hear all the same which there are.

        Else a node whose own version is not signed any more could never be told of a newer one.

        Raises:
            BundleError: it can't be had.
        """
        try:
            return self._fetch(self._settings, had, wanted)
        except BundleRefused:
            if wanted:
                with contextlib.suppress(BundleError):
                    self.offered = self._fetch(self._settings, had, "").offered
            raise

    def _taken(self, found: Found) -> Look:
        said = {"bundle": self._settings.name, "version": found.version, "digest": found.pointer.digest}
        here = _readable(self._settings)
        if here is not None and found.pointer == here.base:
            return Look(outcome="same", **said)
        if reason := self._objection(found):
            return Look(outcome="refused", reason=reason, **said)
        _point(Path(self._settings.dir), found.pointer)
        return Look(outcome="accepted", **said)

    def _taken_beside(self, wanted: Candidate, base: Pointer, had: Collection[str]) -> Look:
        """Have a candidate beside the base, which is current; one that is refused leaves the base alone."""
        folder, here = Path(self._settings.dir), _readable(self._settings) or base
        said = {"bundle": self._settings.name, "version": wanted.version, "digest": wanted.bundle}
        try:
            found = self._fetch(self._settings, had, wanted.bundle)
        except BundleRefused:
            if here.candidate is not None:
                _point(folder, base)
            raise
        self._had = {*self._had, found.pointer.digest}
        beside = Beside(digest=found.pointer.digest, weight=found.pointer.weight, share=wanted.share, salt=wanted.salt)
        if here.candidate == beside:
            return Look(outcome="same", **said)
        is_known = here.candidate is not None and here.candidate.pointer == found.pointer
        if not is_known and (reason := self._objection(found)):
            return Look(outcome="refused", reason=reason, **said)
        _point(folder, msgspec.structs.replace(base, candidate=beside))
        return Look(outcome="accepted", **said)

    def _let_go(self, wanted: str, candidate: Candidate | None) -> None:
        """Have the base alone, if it is to stay and the candidate beside it is not."""
        here = _readable(self._settings)
        if here is None or here.candidate is None or wanted not in {"", here.digest}:
            return
        if candidate is None or candidate.bundle != here.candidate.digest:
            _point(Path(self._settings.dir), here.base)

    def _objection(self, found: Found) -> str:
        """Return why a bundle can't be in force here; empty: it can."""
        if found.pointer not in self._refused or self._looks % _TRY_AGAIN == 0:
            self._refused.pop(found.pointer, None)
            try:
                self._accept(found)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with a bundle, the node keeps what it has
                first = str(error).partition("\n")[0]
                others = list(self._refused.items())[-1:]  # a base and a candidate, each of which is looked at again
                self._refused = {**dict(others), found.pointer: first or type(error).__name__}
        return self._refused.get(found.pointer, "")


def _readable(settings: BundleSettings) -> Pointer | None:
    try:
        return current(settings)
    except ConfigError:  # it is written anew
        return None


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
        for left in range(_LOCK_TRIES, -1, -1):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if not left:
                    raise BundleError(f"another process has been at work in `{folder}` for too long") from error
                time.sleep(_LOCK_S)
        yield
    finally:
        os.close(lock)


def _point(folder: Path, pointer: Pointer) -> None:
    """Make a bundle current, whole or not at all, and let old ones go.

    Raises:
        BundleError: it can't be written.
    """
    part = folder / f".{CURRENT}.part"
    try:
        with part.open("wb") as file:
            file.write(msgspec.json.encode(pointer))
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / CURRENT)
        _tidy(folder, _digests(pointer))
    except OSError as error:
        raise BundleError(f"`{folder}` can't be written: {(error.strerror or 'no reason given').lower()}") from error


def _tidy(folder: Path, kept: Collection[str]) -> None:
    """Let old bundles go.

    Raises:
        OSError: the folder can't be written.
    """
    for path in folder.glob(f"{_OLD}*"):  # its end was broken off
        shutil.rmtree(path, ignore_errors=True)
    others = [path for path in (folder / _BUNDLES).iterdir() if path.name not in kept]
    for path in sorted(others, key=lambda path: -path.stat().st_mtime)[_KEPT:]:
        shutil.rmtree(path.rename(folder / f"{_OLD}{path.name}"), ignore_errors=True)


def _digests(pointer: Pointer | None) -> tuple[str, ...]:
    if pointer is None:
        return ()
    return (pointer.digest,) if pointer.candidate is None else (pointer.digest, pointer.candidate.digest)
