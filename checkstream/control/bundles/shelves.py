"""What lies in a repository: metadata that is public, and metadata that is staged and waits for signatures."""

from __future__ import annotations

from pathlib import Path

import msgspec
from securesystemslib.signer import Key
from tuf.api.metadata import Metadata, Root, Snapshot, Targets, Timestamp, VerificationResult

from checkstream.control.bundles.metadata import Kind, read_metadata, write_whole
from checkstream.control.bundles.trust import delegated_roles, name_of
from checkstream.control.bundles.written import TOP
from checkstream.errors import BundleError

NEXT = "next"
"""Folder beside `public` of what is to be public, until it has been looked at."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A role whose new version is staged."""

    role: str
    version: int
    signed: tuple[str, ...]
    """Names of the keys that have."""
    missing: int
    """How many more are needed."""
    others: tuple[str, ...]
    """Names of the keys that may."""


class Shelves:
    """The files of a folder. Whatever is read raises BundleError where it can't be, or is of another kind."""

    def __init__(self, folder: Path) -> None:
        """Use a folder that may not be there yet."""
        folder = folder.resolve()
        self.public = folder / "public"
        self.metadata = self.public / "metadata"
        self.staged = folder / "staged"
        self.ahead = folder / NEXT

    def published(self, role: str, type_: type[Kind]) -> Metadata[Kind] | None:
        """Return what is public of a role; None: nothing."""
        if role == "root":
            versions = [int(path.name.partition(".")[0]) for path in self.metadata.glob("*.root.json")]
            return read_metadata(self.metadata / f"{max(versions)}.root.json", type_) if versions else None
        timestamp = read_metadata(self.metadata / "timestamp.json", Timestamp)
        if timestamp is None or role == "timestamp":
            return timestamp  # type: ignore[return-value]
        snapshot_version = timestamp.signed.snapshot_meta.version
        if role == "snapshot":
            return read_metadata(self.metadata / f"{snapshot_version}.snapshot.json", type_)
        snapshot = read_metadata(self.metadata / f"{snapshot_version}.snapshot.json", Snapshot)
        known = None if snapshot is None else snapshot.signed.meta.get(f"{role}.json")
        return None if known is None else read_metadata(self.metadata / f"{known.version}.{role}.json", type_)

    def staged_of(self, role: str, type_: type[Kind]) -> Metadata[Kind] | None:
        """Return what is staged for a role; None: nothing."""
        return read_metadata(self.staged / f"{role}.json", type_)

    def staged_any(self, role: str) -> Metadata[Root] | Metadata[Targets] | None:
        """Return what is staged for any role that people sign."""
        return self.staged_of(role, Root) if role == "root" else self.staged_of(role, Targets)

    def published_any(self, role: str) -> Metadata[Root] | Metadata[Targets] | None:
        """Return what is public of any role that people sign."""
        return self.published(role, Root) if role == "root" else self.published(role, Targets)

    def staged_now(self, role: str) -> Metadata[Root] | Metadata[Targets]:
        """Return what is staged for a role that waits."""
        staged = self.staged_any(role)
        if staged is None:
            raise BundleError(f"what was staged for `{role}` is gone; somebody else is at work here")
        return staged

    def next_version(self, role: str, type_: type[Kind]) -> int:
        """Return the version that follows the public one."""
        published = self.published(role, type_)
        return 1 if published is None else published.signed.version + 1

    def delegations(self) -> Targets:
        """Return who may provide bundles and approvals, as it will be.

        Raises:
            BundleError: nobody has said so yet.
        """
        targets = self.staged_of("targets", Targets) or self.published("targets", Targets)
        if targets is None:
            raise BundleError("this is no repository of bundles; `checkstream bundle init` makes one")
        return targets.signed

    def waiting_roles(self) -> list[str]:
        """Return the roles for which something is staged, in the order of their weight."""
        names = {path.stem for path in self.staged.glob("*.json")}
        return [role for role in TOP if role in names] + sorted(names - {*TOP})

    def keys_of(self, role: str) -> dict[str, Key]:
        """Return the keys that may sign a role as it will be; of the root's those before, too."""
        if role in TOP:
            roots = [self.staged_of("root", Root), self.published("root", Root)]
            found: dict[str, Key] = {}
            for root in roots if role == "root" else [next(each for each in roots if each is not None)]:
                if root is not None:
                    found |= {key: root.signed.keys[key] for key in root.signed.roles[role].keyids}
            return found
        delegations = self.delegations().delegations
        delegated = delegated_roles(self.delegations())
        if delegations is None or role not in delegated:
            return {}
        return {key: delegations.keys[key] for key in delegated[role].keyids}

    def waiting_for(self, role: str) -> Waiting:
        """Return what a staged role waits for."""
        staged = self.staged_now(role)
        missing, signed, unsigned = 0, dict[str, Key](), dict[str, Key]()
        for result in self._results(role, staged):
            missing = max(missing, result.missing)
            signed |= result.signed
            unsigned |= result.unsigned
        names = tuple(sorted(name_of(key) for key in signed.values()))
        others = tuple(sorted(name_of(key) for number, key in unsigned.items() if number not in signed))
        return Waiting(role=role, version=staged.signed.version, signed=names, missing=missing, others=others)

    def _results(self, role: str, staged: Metadata[Root] | Metadata[Targets]) -> list[VerificationResult]:
        payload, signatures = staged.signed_bytes, staged.signatures
        if role not in TOP:
            return [self.delegations().get_verification_result(role, payload, signatures)]
        before, new = self.published("root", Root), self.staged_of("root", Root)
        if role != "root":
            root = new or before
            return [] if root is None else [root.signed.get_verification_result(role, payload, signatures)]
        roots = [each for each in (before, new) if each is not None]
        return [each.signed.get_verification_result(role, payload, signatures) for each in roots]

    def stage(self, role: str, metadata: Metadata[Root] | Metadata[Targets]) -> None:
        """Stage metadata for a role."""
        write_whole(self.staged / f"{role}.json", metadata.to_bytes())

    def content(self, role: str) -> bytes:
        """Return the bytes that are staged for a role."""
        return (self.staged / f"{role}.json").read_bytes()
