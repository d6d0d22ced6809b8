"""A folder from which bundles are published: `public` is what nodes read, `staged` is what waits for signatures.

`public` is plain files, served by any web server or object store, or read from a disk. Whoever reads it starts at
`timestamp.json`, which is written last, so that a reader sees the state before or the one after and nothing between.

Source: The Update Framework specification 1.0, section 6.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import msgspec
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import Key, Signer
from tuf.api.exceptions import LengthOrHashMismatchError, UnsignedMetadataError
from tuf.api.metadata import (
    DelegatedRole,
    Metadata,
    MetaFile,
    Role,
    Root,
    Snapshot,
    TargetFile,
    Targets,
    Timestamp,
    VerificationResult,
)

from checkstream.control.bundles.metadata import Kind, hashed, read_metadata, write_whole
from checkstream.control.bundles.trust import (
    approves,
    days_of,
    delegated_roles,
    may_provide,
    name_of,
    read_keys,
    root_of,
    targets_of,
)
from checkstream.control.bundles.written import TOP, WrittenTrust
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


class Repository:
    """The folder. Not for two at once: publishing is one person's, or one job's."""

    def __init__(self, folder: Path) -> None:
        """Use a folder that may not be there yet."""
        folder = folder.resolve()
        self.public = folder / "public"
        self._metadata = self.public / "metadata"
        self._staged = folder / "staged"
        self.ahead = folder / NEXT

    def establish(self, trust: WrittenTrust, now: datetime) -> None:
        """Stage who may sign what; of roles that are new, a first version without anything.

        Raises:
            BundleError: a key or the repository can't be read.
        """
        keys = read_keys(trust)
        root = root_of(trust, keys, self._next("root", Root), now)
        targets = targets_of(trust, keys, self._next("targets", Targets), now)
        self._stage("root", Metadata(root))
        self._stage("targets", Metadata(targets))
        for name, role in delegated_roles(targets).items():
            if self._published(name, Targets) is None and self._staged_of(name, Targets) is None:
                expires = now + timedelta(days=days_of(role))
                self._stage(name, Metadata(Targets(version=1, expires=expires)))

    def offer(
        self,
        role: str,
        targets: Mapping[str, bytes],
        replaced: str,
        now: datetime,
        kept: Mapping[str, TargetFile] = MappingProxyType({}),
    ) -> None:
        """Stage files that a role provides; what is staged as it is keeps its signatures.

        Args:
            role: Of an author or approver.
            targets: Path -> content, of each file.
            replaced: What the paths begin with that these replace.
            now: The time.
            kept: Path -> what is signed besides; the content of each is public, or among `targets`.

        Raises:
            BundleError: there is no such role, or it may not provide these.
        """
        delegated = self.delegated(role)
        for path in targets:
            if not may_provide(delegated, path):
                what = "approve of" if approves(delegated) else "sign"
                raise BundleError(f"`{role}` may not {what} `{path}`; `trust.yaml` says which bundles it may")
        files = {path: TargetFile.from_data(path, content, ["sha256"]) for path, content in targets.items()}
        files |= kept
        staged, published = self._staged_of(role, Targets), self._published(role, Targets)
        before = published
        if staged is not None and self._waiting(role).missing == 0:
            before = staged
        elif staged is not None and any(not path.startswith(replaced) for path in _changed(published, staged)):
            raise BundleError(f"something else waits for signatures as `{role}`; have that signed and published first")
        others = () if before is None else before.signed.targets.items()
        rest = {path: target for path, target in others if not path.startswith(replaced)}
        if staged is None or staged.signed.targets != {**rest, **files}:
            version = 1 if published is None else published.signed.version + 1
            expires = now + timedelta(days=days_of(delegated))
            self._stage(role, Metadata(Targets(version=version, expires=expires, targets={**rest, **files})))
        for path, content in targets.items():
            write_whole(self._staged / "targets" / hashed(files[path]), content)

    def public_targets(self, role: str) -> Mapping[str, TargetFile]:
        """Return the files that a role of authors or approvers has published, by path."""
        published = self._published(role, Targets)
        return {} if published is None else published.signed.targets

    def public_content(self, target: TargetFile) -> bytes:
        """Return the content of a file that is public.

        Raises:
            BundleError: it is not there, or is another.
        """
        place = self.public / "targets" / hashed(target)
        try:
            content = place.read_bytes()
            target.verify_length_and_hashes(content)
        except (OSError, LengthOrHashMismatchError) as error:
            raise BundleError(f"`{place}` is not what was signed; restore it from where it is published") from error
        return content

    def role_for(self, target: str) -> str:
        """Return the role of authors, or of approvers, that may sign a path.

        Raises:
            BundleError: there is none.
        """
        for name, role in delegated_roles(self._delegations()).items():
            if may_provide(role, target):
                return name
        raise BundleError(f"nobody may sign `{target}`; `trust.yaml` says whose bundles are whose")

    def sign(self, role: str, signer: Signer) -> None:
        """Add a signature to what is staged for a role.

        Raises:
            BundleError: nothing is staged for it, the key is none of its keys, or it does not sign as that one would.
        """
        staged = self._staged_any(role)
        if staged is None:
            raise BundleError(f"nothing waits to be signed as `{role}`; waiting: {self._names_waiting()}")
        allowed = self._keys_of(role)
        key = signer.public_key.keyid
        if key not in allowed:
            names = ", ".join(name_of(each) for each in allowed.values())
            raise BundleError(f"this key may not sign as `{role}`; that may {names}")
        try:
            staged.sign(signer, append=True)
        except UnsignedMetadataError as error:
            why = error.__cause__ or error
            said = str(why) or type(why).__name__  # errors of PKCS#11 are a name alone
            raise BundleError(f"the key could not sign as `{role}`: {said}") from error
        try:
            allowed[key].verify_signature(staged.signatures[key], staged.signed_bytes)
        except UnverifiedSignatureError as error:  # a token or a service that isn't whose public key is known
            raise BundleError(f"what the key signed as `{role}` doesn't go with its public key") from error
        self._stage(role, staged)

    def signable(self, signer: Signer) -> list[str]:
        """Return the staged roles that a key may sign without looking at a bundle: those that have no files."""
        return [
            role
            for role in self._waiting_roles()
            if signer.public_key.keyid in self._keys_of(role) and not self._files(role)
        ]

    def _files(self, role: str) -> Mapping[str, TargetFile]:
        staged = self._staged_of(role, Targets) if role != "root" else None
        return {} if staged is None else staged.signed.targets

    def said(self, role: str) -> Iterator[str]:
        """Yield what is staged for a role, for whoever is to sign it: who may do what, and until when.

        Raises:
            BundleError: it has files, so that it is to be signed with the bundle at hand.
        """
        if self._files(role):
            raise BundleError(f"`{role}` has files of a bundle; give that bundle, to sign what you have seen")
        staged = self._staged_any(role)
        if staged is None:
            return
        yield f"good until {staged.signed.expires:%Y-%m-%d}"
        if isinstance(staged.signed, Root):
            named: Mapping[str, Role] = staged.signed.roles
            keys = staged.signed.keys
        else:
            named = delegated_roles(staged.signed)
            keys = {} if staged.signed.delegations is None else staged.signed.delegations.keys
        for name, each in named.items():
            people = ", ".join(f"{name_of(keys[key])} ({key[:8]})" for key in each.keyids)
            what = f" for {' '.join(each.paths or ())}" if isinstance(each, DelegatedRole) else ""
            yield f"{name} are {each.threshold} of {people}{what}"

    def delegated(self, role: str) -> DelegatedRole:
        """Return the role of an author or approver.

        Raises:
            BundleError: there is none of this name.
        """
        roles = delegated_roles(self._delegations())
        if role not in roles:
            raise BundleError(f"there is no role `{role}`; known: {', '.join(roles) or 'none'}")
        return roles[role]

    def delegated_to(self, signer: Signer) -> list[str]:
        """Return the roles of authors and approvers that a key has."""
        roles = delegated_roles(self._delegations())
        return [name for name, role in roles.items() if signer.public_key.keyid in role.keyids]

    def newest_root(self) -> bytes:
        """Return the newest root that is public, or is to be.

        Raises:
            BundleError: there is none.
        """
        found = sorted(self.ahead.glob("metadata/*.root.json"))
        if found:
            return found[-1].read_bytes()
        published = self._published("root", Root)
        if published is None:
            raise BundleError("nothing is published yet")
        return (self._metadata / f"{published.signed.version}.root.json").read_bytes()

    def known_keys(self) -> list[Key]:
        """Return every public key that there is."""
        found: dict[str, Key] = {}
        root = self._staged_of("root", Root) or self._published("root", Root)
        if root is not None:
            found |= root.signed.keys
        targets = self._staged_of("targets", Targets) or self._published("targets", Targets)
        if targets is not None and targets.signed.delegations is not None:
            found |= targets.signed.delegations.keys
        return [*found.values()]

    def waiting(self) -> list[Waiting]:
        """Return what is staged, and what it waits for."""
        return [self._waiting(role) for role in self._waiting_roles()]

    def bundles(self, *, changed: bool = False) -> list[str]:
        """Return the names of the bundles that are staged or published; with `changed` those that are staged."""
        found: set[str] = set()
        every = not changed or bool({"root", "targets"} & {*self._waiting_roles()})
        for role in delegated_roles(self._delegations()):
            staged, published = self._staged_of(role, Targets), self._published(role, Targets)
            metadata = staged or published
            if metadata is not None:
                paths = metadata.signed.targets if every else () if staged is None else _changed(published, staged)
                kinds = ("bundles", "approvals") if changed else ("bundles",)
                parts = (PurePosixPath(path).parts for path in paths)
                found |= {each[1].removesuffix(".json") for each in parts if each[0] in kinds}
        return sorted(found)

    def publish(
        self, signers: Iterable[Signer], now: datetime, check: Callable[[], None], *, refresh: bool = False
    ) -> list[str]:
        """Make what is staged and signed public, and say anew that it is the newest.

        Args:
            signers: Keys of `snapshot` and `timestamp`.
            now: The time.
            check: Looks at the new state as a node will, with `Fetcher(ahead=...)`; raises where it would be refused.
            refresh: Say only that what is public is the newest; what is staged waits on.

        Returns:
            The roles that have a new version.

        Raises:
            BundleError: a role waits for signatures, a key is missing, or the state would be refused.
        """
        roles = [] if refresh else self._signed_roles()
        root = self._staged_of("root", Root) if "root" in roles else None
        root = root or self._published("root", Root)
        if root is None:
            raise BundleError("there is nothing to publish; `checkstream bundle init` says who may sign what")
        keys = {signer.public_key.keyid: signer for signer in signers}
        shutil.rmtree(self.ahead, ignore_errors=True)
        metadata = {f"{self._staged_now(role).signed.version}.{role}.json": self._content(role) for role in roles}
        snapshot = self._new_snapshot(root.signed, roles, keys, now)
        metadata |= snapshot
        metadata["timestamp.json"] = self._new_timestamp(root.signed, snapshot, keys, now)
        for name, content in metadata.items():
            write_whole(self.ahead / "metadata" / name, content)
        for path, content in self._new_targets(roles):
            write_whole(self.ahead / "targets" / path, content)
        if roles:
            check()
        self._put_public()
        if not refresh:
            shutil.rmtree(self._staged, ignore_errors=True)
        return roles

    def _signed_roles(self) -> list[str]:
        """Return the staged roles, each signed as it must be, and newer than what is public."""
        for each in self.waiting():
            if each.missing:
                more = f"{each.missing} more of {', '.join(each.others)}"
                raise BundleError(f"`{each.role}` waits for signatures: {more}; `checkstream bundle sign` adds one")
        roles = []
        for role in self._waiting_roles():
            staged, published = self._staged_now(role), self._published_any(role)
            if published is None or staged.signed.version > published.signed.version:
                roles.append(role)
            elif staged.signed_bytes != published.signed_bytes:  # else a publishing was broken off behind it
                raise BundleError(f"what is staged for `{role}` is older than what is public; sign it again")
        return roles

    def _new_targets(self, roles: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the files that staged roles name and that are not public yet."""
        for role in roles:
            staged = self._staged_of(role, Targets) if role != "root" else None
            for target in () if staged is None else staged.signed.targets.values():
                path = hashed(target)
                place = self._staged / "targets" / path
                if (self.public / "targets" / path).exists():
                    continue
                try:
                    content = b"" if place.is_symlink() else place.read_bytes()
                    target.verify_length_and_hashes(content)
                except (OSError, LengthOrHashMismatchError) as error:
                    raise BundleError(f"`{place}` is not what `{role}` has signed; sign the bundle again") from error
                yield path, content

    def _put_public(self) -> None:
        """Copy what is to be public: what is begun at last of all."""
        files = sorted(path for path in self.ahead.rglob("*") if path.is_file())
        order = sorted(
            files, key=lambda path: (path.name == "timestamp.json", ".root." in path.name, "metadata" in path.parts)
        )
        for path in order:
            write_whole(self.public / path.relative_to(self.ahead), path.read_bytes())
        shutil.rmtree(self.ahead, ignore_errors=True)

    # what is there

    def _published(self, role: str, type_: type[Kind]) -> Metadata[Kind] | None:
        if role == "root":
            versions = [int(path.name.partition(".")[0]) for path in self._metadata.glob("*.root.json")]
            return read_metadata(self._metadata / f"{max(versions)}.root.json", type_) if versions else None
        timestamp = read_metadata(self._metadata / "timestamp.json", Timestamp)
        if timestamp is None or role == "timestamp":
            return timestamp  # type: ignore[return-value]
        snapshot_version = timestamp.signed.snapshot_meta.version
        if role == "snapshot":
            return read_metadata(self._metadata / f"{snapshot_version}.snapshot.json", type_)
        snapshot = read_metadata(self._metadata / f"{snapshot_version}.snapshot.json", Snapshot)
        known = None if snapshot is None else snapshot.signed.meta.get(f"{role}.json")
        return None if known is None else read_metadata(self._metadata / f"{known.version}.{role}.json", type_)

    def _staged_of(self, role: str, type_: type[Kind]) -> Metadata[Kind] | None:
        return read_metadata(self._staged / f"{role}.json", type_)

    def _staged_any(self, role: str) -> Metadata[Root] | Metadata[Targets] | None:
        return self._staged_of(role, Root) if role == "root" else self._staged_of(role, Targets)

    def _published_any(self, role: str) -> Metadata[Root] | Metadata[Targets] | None:
        return self._published(role, Root) if role == "root" else self._published(role, Targets)

    def _staged_now(self, role: str) -> Metadata[Root] | Metadata[Targets]:
        """Return what is staged for a role that waits."""
        staged = self._staged_any(role)
        if staged is None:
            raise BundleError(f"what was staged for `{role}` is gone; somebody else is at work here")
        return staged

    def _next(self, role: str, type_: type[Kind]) -> int:
        published = self._published(role, type_)
        return 1 if published is None else published.signed.version + 1

    def _delegations(self) -> Targets:
        targets = self._staged_of("targets", Targets) or self._published("targets", Targets)
        if targets is None:
            raise BundleError("this is no repository of bundles; `checkstream bundle init` makes one")
        return targets.signed

    def _waiting_roles(self) -> list[str]:
        names = {path.stem for path in self._staged.glob("*.json")}
        return [role for role in TOP if role in names] + sorted(names - {*TOP})

    def _names_waiting(self) -> str:
        return ", ".join(self._waiting_roles()) or "none"

    def _keys_of(self, role: str) -> dict[str, Key]:
        """Return the keys that may sign a role as it will be; of the root's those before, too."""
        if role in TOP:
            roots = [self._staged_of("root", Root), self._published("root", Root)]
            found: dict[str, Key] = {}
            for root in roots if role == "root" else [next(each for each in roots if each is not None)]:
                if root is not None:
                    found |= {key: root.signed.keys[key] for key in root.signed.roles[role].keyids}
            return found
        delegations = self._delegations().delegations
        delegated = delegated_roles(self._delegations())
        if delegations is None or role not in delegated:
            return {}
        return {key: delegations.keys[key] for key in delegated[role].keyids}

    def _waiting(self, role: str) -> Waiting:
        staged = self._staged_now(role)
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
            return [self._delegations().get_verification_result(role, payload, signatures)]
        before, new = self._published("root", Root), self._staged_of("root", Root)
        if role != "root":
            root = new or before
            return [] if root is None else [root.signed.get_verification_result(role, payload, signatures)]
        roots = [each for each in (before, new) if each is not None]
        return [each.signed.get_verification_result(role, payload, signatures) for each in roots]

    # what is written

    def _stage(self, role: str, metadata: Metadata[Root] | Metadata[Targets]) -> None:
        write_whole(self._staged / f"{role}.json", metadata.to_bytes())

    def _content(self, role: str) -> bytes:
        return (self._staged / f"{role}.json").read_bytes()

    def _new_snapshot(
        self, root: Root, roles: list[str], keys: Mapping[str, Signer], now: datetime
    ) -> dict[str, bytes]:
        """Return what belongs together now, by its name; a new version where something has changed, or it gets old."""
        published, days = self._published("snapshot", Snapshot), days_of(root.roles["snapshot"])
        changed = [role for role in roles if role != "root"]
        if published is not None and not changed and published.signed.expires > now + timedelta(days=days / 2):
            name = f"{published.signed.version}.snapshot.json"
            return {name: (self._metadata / name).read_bytes()}
        meta = {} if published is None else dict(published.signed.meta)
        for role in changed:
            version = self._staged_now(role).signed.version
            meta[f"{role}.json"] = MetaFile.from_data(version, self._content(role), ["sha256"])
        version = 1 if published is None else published.signed.version + 1
        new = Metadata(Snapshot(version=version, expires=now + timedelta(days=days), meta=meta))
        _sign_by(root, "snapshot", new, keys)
        return {f"{version}.snapshot.json": new.to_bytes()}

    def _new_timestamp(
        self, root: Root, snapshot: Mapping[str, bytes], keys: Mapping[str, Signer], now: datetime
    ) -> bytes:
        published = self._published("timestamp", Timestamp)
        ((name, content),) = snapshot.items()
        meta = MetaFile.from_data(int(name.partition(".")[0]), content, ["sha256"])
        version = 1 if published is None else published.signed.version + 1
        expires = now + timedelta(days=days_of(root.roles["timestamp"]))
        new = Metadata(Timestamp(version=version, expires=expires, snapshot_meta=meta))
        _sign_by(root, "timestamp", new, keys)
        return new.to_bytes()


def _changed(published: Metadata[Targets] | None, staged: Metadata[Targets]) -> set[str]:
    """Return the paths of the targets that differ."""
    before = {} if published is None else published.signed.targets
    after = staged.signed.targets
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def _sign_by(root: Root, role: str, metadata: Metadata[Kind], keys: Mapping[str, Signer]) -> None:
    for key in root.roles[role].keyids:
        if key in keys:
            metadata.sign(keys[key], append=True)
    result = root.get_verification_result(role, metadata.signed_bytes, metadata.signatures)
    if not result:
        names = ", ".join(name_of(root.keys[key]) for key in root.roles[role].keyids)
        raise BundleError(f"`{role}` needs {result.missing} more of the keys {names}; give them with --key")
