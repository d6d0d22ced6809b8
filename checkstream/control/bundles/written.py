"""The two files that people write about bundles: `bundle.yaml`, what is in one, and `trust.yaml`, who may sign what."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.config.parts import Settings
from checkstream.config.reader import read_settings
from checkstream.control.bundles.index import Name
from checkstream.core.policy.program import Word

_Days = Annotated[int, Meta(ge=1, le=3650)]
_Bundles = Annotated[tuple[Annotated[str, Meta(pattern=r"\A([a-z0-9][a-z0-9-]{0,62}|\*)\Z")], ...], Meta(min_length=1)]
_ROOTS = 2
"""Keys that must sign who has which role."""
TOP = ("root", "targets", "snapshot", "timestamp")


class WrittenProgram(Settings, frozen=True):
    """Policies that are in force together."""

    policies: Annotated[tuple[str, ...], Meta(min_length=1, max_length=64)]
    """As a route names them: files, folders, `builtin:NAME`; relative to the file that names them."""
    tests: str | None = None
    """Cases for all of them together, besides those in `tests.yaml` beside each."""


class WrittenBundle(Settings, frozen=True):
    """The whole of `bundle.yaml`."""

    bundle: Name
    version: Word
    """Changes with what is in it; for people, logs and records."""
    programs: Annotated[dict[Name, WrittenProgram], Meta(min_length=1, max_length=64)]
    """A route asks for one as `bundle:NAME`."""
    models: str | None = None
    """A `models.yaml`, if policies ask models of your own."""


class Signers(Settings, frozen=True):
    """Who signs, and for how long that is good."""

    keys: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=64)]
    """Names of keys."""
    threshold: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many of them must have signed."""
    days: _Days = 365
    """After which it has to be signed anew."""

    def __post_init__(self) -> None:
        """As many keys as are needed, each once."""
        if len(set(self.keys)) < len(self.keys):
            raise ValueError("a key is named twice; name each once")
        if self.threshold > len(self.keys):
            raise ValueError(f"{self.threshold} signatures are needed, and there are {len(self.keys)} keys; name more")


class TopRoles(Settings, frozen=True):
    """The four roles that every repository has."""

    root: Signers
    """Say who has which role."""
    targets: Signers
    """Say which authors and approvers there are."""
    snapshot: Signers
    """Say what belongs together: whoever publishes."""
    timestamp: Signers
    """Say that this is the newest: whoever publishes, and at least as often as its `days`."""


class Delegated(Signers, frozen=True, kw_only=True):
    """A role for some bundles."""

    bundles: _Bundles
    """Names of bundles; `*` means every one."""


class WrittenTrust(Settings, frozen=True):
    """The whole of `trust.yaml`."""

    keys: Annotated[dict[Name, str], Meta(min_length=1, max_length=256)]
    """Name -> file of the public key (PEM); relative to this file."""
    roles: TopRoles
    authors: Annotated[dict[Name, Delegated], Meta(min_length=1, max_length=16)]
    """Who may sign bundles, by role: a team for each."""
    approvers: Annotated[dict[Name, Delegated], Meta(min_length=1, max_length=16)]
    """Who may approve of what bundles enforce, by role."""

    def __post_init__(self) -> None:
        """Every key is there, and nobody does alone what takes two."""
        delegated = {**self.authors, **self.approvers}
        if len(delegated) < len(self.authors) + len(self.approvers) or set(delegated) & {*TOP}:
            raise ValueError(f"a role is named twice, or as one of {', '.join(TOP)}; each needs a name of its own")
        top = {name: getattr(self.roles, name) for name in TOP}
        for signers in (*top.values(), *delegated.values()):
            for key in signers.keys:
                if key not in self.keys:
                    raise ValueError(f"there is no key `{key}` in `keys`; add it")
        for name in ("root", "targets"):
            if top[name].threshold < _ROOTS:
                raise ValueError(
                    f"`{name}` needs a `threshold` of {_ROOTS}, or one person could say who has which role"
                )
        self._check_delegated()

    def _check_delegated(self) -> None:
        for (author, own), (other, others) in combinations(self.authors.items(), 2):
            if _meet(own.bundles, others.bundles):
                raise ValueError(f"`{author}` and `{other}` may sign the same bundle; nodes would take one of the two")
        for author, own in self.authors.items():
            for approver, others in self.approvers.items():
                common = set(own.keys) & set(others.keys)
                if common and _meet(own.bundles, others.bundles):
                    raise ValueError(
                        f"`{min(common)}` would be of `{author}`, which signs bundles, and of `{approver}`, which "
                        "approves of them; use two keys"
                    )


def _meet(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return "*" in some or "*" in others or bool(set(some) & set(others))


def read_bundle_file(path: Path) -> WrittenBundle:
    """Return what a `bundle.yaml` says, with absolute paths.

    Raises:
        ConfigError: it can't be read, or holds faults; carries all of them.
    """
    written, base = read_settings(path, WrittenBundle), path.resolve().parent
    programs = {
        name: msgspec.structs.replace(
            program,
            policies=tuple(each if each.startswith("builtin:") else str(base / each) for each in program.policies),
            tests=None if program.tests is None else str(base / program.tests),
        )
        for name, program in written.programs.items()
    }
    models = None if written.models is None else str(base / written.models)
    return msgspec.structs.replace(written, programs=programs, models=models)


def read_trust_file(path: Path) -> WrittenTrust:
    """Return what a `trust.yaml` says, with absolute paths.

    Raises:
        ConfigError: it can't be read, or holds faults; carries all of them.
    """
    written, base = read_settings(path, WrittenTrust), path.resolve().parent
    return msgspec.structs.replace(written, keys={name: str(base / file) for name, file in written.keys.items()})
