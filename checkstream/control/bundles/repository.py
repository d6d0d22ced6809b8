"""A folder from which bundles are published: `public` is what nodes read, `staged` is what waits for signatures.

`public` is plain files, served by any web server or object store, or read from a disk. Whoever reads it starts at
`timestamp.json`, which is written last, so that a reader sees the state before or the one after and nothing between.

Source: The Update Framework specification 1.0, section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import Key, Signer
from tuf.api.exceptions import LengthOrHashMismatchError, UnsignedMetadataError
from tuf.api.metadata import (
    DelegatedRole,
    Metadata,
    Role,
    Root,
    TargetFile,
    Targets,
)

from checkstream.control.bundles.metadata import hashed, write_whole
from checkstream.control.bundles.publishing import publish
from checkstream.control.bundles.shelves import Shelves, Waiting
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
from checkstream.control.bundles.written import WrittenTrust
from checkstream.errors import BundleError


class Repository:
    """The folder. Not for two at once: publishing is one person's, or one job's."""

    def __init__(self, folder: Path) -> None:
        """Use a folder that may not be there yet."""
        self._shelves = Shelves(folder)
        self.public = self._shelves.public
        self.ahead = self._shelves.ahead

    def establish(self, trust: WrittenTrust, now: datetime) -> None:
        """Stage who may sign what; of roles that are new, a first version without anything.

        Raises:
            BundleError: a key or the repository can't be read.
        """
        keys = read_keys(trust)
        root = root_of(trust, keys, self._shelves.next_version("root", Root), now)
        targets = targets_of(trust, keys, self._shelves.next_version("targets", Targets), now)
        self._shelves.stage("root", Metadata(root))
        self._shelves.stage("targets", Metadata(targets))
        for name, role in delegated_roles(targets).items():
            if self._shelves.published(name, Targets) is None and self._shelves.staged_of(name, Targets) is None:
                expires = now + timedelta(days=days_of(role))
                self._shelves.stage(name, Metadata(Targets(version=1, expires=expires)))

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
        staged, published = self._shelves.staged_of(role, Targets), self._shelves.published(role, Targets)
        before = published
        if staged is not None and self._shelves.waiting_for(role).missing == 0:
            before = staged
        elif staged is not None and any(not path.startswith(replaced) for path in _changed(published, staged)):
            raise BundleError(f"something else waits for signatures as `{role}`; have that signed and published first")
        others = () if before is None else before.signed.targets.items()
        rest = {path: target for path, target in others if not path.startswith(replaced)}
        if staged is None or staged.signed.targets != {**rest, **files}:
            version = 1 if published is None else published.signed.version + 1
            expires = now + timedelta(days=days_of(delegated))
            self._shelves.stage(role, Metadata(Targets(version=version, expires=expires, targets={**rest, **files})))
        for path, content in targets.items():
            write_whole(self._shelves.staged / "targets" / hashed(files[path]), content)

    def public_targets(self, role: str) -> Mapping[str, TargetFile]:
        """Return the files that a role of authors or approvers has published, by path."""
        published = self._shelves.published(role, Targets)
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
        for name, role in delegated_roles(self._shelves.delegations()).items():
            if may_provide(role, target):
                return name
        raise BundleError(f"nobody may sign `{target}`; `trust.yaml` says whose bundles are whose")

    def sign(self, role: str, signer: Signer) -> None:
        """Add a signature to what is staged for a role.

        Raises:
            BundleError: nothing is staged for it, the key is none of its keys, or it does not sign as that one would.
        """
        staged = self._shelves.staged_any(role)
        if staged is None:
            raise BundleError(
                f"nothing waits to be signed as `{role}`; waiting: {', '.join(self._shelves.waiting_roles()) or 'none'}"
            )
        allowed = self._shelves.keys_of(role)
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
        self._shelves.stage(role, staged)

    def signable(self, signer: Signer) -> list[str]:
        """Return the staged roles that a key may sign without looking at a bundle: those that have no files."""
        return [
            role
            for role in self._shelves.waiting_roles()
            if signer.public_key.keyid in self._shelves.keys_of(role) and not self._files(role)
        ]

    def _files(self, role: str) -> Mapping[str, TargetFile]:
        staged = self._shelves.staged_of(role, Targets) if role != "root" else None
        return {} if staged is None else staged.signed.targets

    def said(self, role: str) -> Iterator[str]:
        """Yield what is staged for a role, for whoever is to sign it: who may do what, and until when.

        Raises:
            BundleError: it has files, so that it is to be signed with the bundle at hand.
        """
        if self._files(role):
            raise BundleError(f"`{role}` has files of a bundle; give that bundle, to sign what you have seen")
        staged = self._shelves.staged_any(role)
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
        roles = delegated_roles(self._shelves.delegations())
        if role not in roles:
            raise BundleError(f"there is no role `{role}`; known: {', '.join(roles) or 'none'}")
        return roles[role]

    def delegated_to(self, signer: Signer) -> list[str]:
        """Return the roles of authors and approvers that a key has."""
        roles = delegated_roles(self._shelves.delegations())
        return [name for name, role in roles.items() if signer.public_key.keyid in role.keyids]

    def newest_root(self) -> bytes:
        """Return the newest root that is public, or is to be.

        Raises:
            BundleError: there is none.
        """
        found = sorted(self.ahead.glob("metadata/*.root.json"))
        if found:
            return found[-1].read_bytes()
        published = self._shelves.published("root", Root)
        if published is None:
            raise BundleError("nothing is published yet")
        return (self._shelves.metadata / f"{published.signed.version}.root.json").read_bytes()

    def known_keys(self) -> list[Key]:
        """Return every public key that there is."""
        found: dict[str, Key] = {}
        root = self._shelves.staged_of("root", Root) or self._shelves.published("root", Root)
        if root is not None:
            found |= root.signed.keys
        targets = self._shelves.staged_of("targets", Targets) or self._shelves.published("targets", Targets)
        if targets is not None and targets.signed.delegations is not None:
            found |= targets.signed.delegations.keys
        return [*found.values()]

    def waiting(self) -> list[Waiting]:
        """Return what is staged, and what it waits for."""
        return [self._shelves.waiting_for(role) for role in self._shelves.waiting_roles()]

    def bundles(self, *, changed: bool = False) -> list[str]:
        """Return the names of the bundles that are staged or published; with `changed` those that are staged."""
        found: set[str] = set()
        every = not changed or bool({"root", "targets"} & {*self._shelves.waiting_roles()})
        for role in delegated_roles(self._shelves.delegations()):
            staged, published = self._shelves.staged_of(role, Targets), self._shelves.published(role, Targets)
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
        """Put in force what is staged and signed (see `publishing.publish`).

        Raises:
            BundleError: as there.
        """
        return publish(self._shelves, signers, now, check, refresh=refresh)


def _changed(published: Metadata[Targets] | None, staged: Metadata[Targets]) -> set[str]:
    """Return the paths of the targets that differ."""
    before = {} if published is None else published.signed.targets
    after = staged.signed.targets
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}
