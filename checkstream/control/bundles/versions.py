"""A new version of a bundle, offered for signatures beside those before it that stay good, or without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from tuf.api.metadata import TargetFile

from checkstream.control.attestation import Offered
from checkstream.control.bundles.earlier import digest_of, earlier_of, marked
from checkstream.control.bundles.index import Index, read_index
from checkstream.control.bundles.repository import Repository
from checkstream.control.bundles.trust import approval_target, bundle_target, file_target
from checkstream.control.bundles.weight import Approval, read_approval
from checkstream.errors import BundleError


def offer_bundle(
    repository: Repository, role: str, index: Index, files: Mapping[str, bytes], *, keep: int, now: datetime
) -> None:
    """Stage a bundle as an author's, with versions before it.

    Args:
        repository: Where.
        role: The author's.
        index: What the bundle says of itself.
        files: Its files, by path.
        keep: So many versions before it stay good.
        now: The time.

    Raises:
        BundleError: it can't be staged.
    """
    name = index.name
    targets = {file_target(name, file.sha256): files[path] for path, file in index.files.items()}
    targets[bundle_target(name)] = index.encode()
    contents, kept = _kept(repository, role, name, before(repository, role, index, keep))
    repository.offer(role, {**contents, **targets}, f"bundles/{name}/", now, kept)


def offer_approval(
    repository: Repository, role: str, index: Index, approval: Approval, *, keep: int, now: datetime
) -> Approval:
    """Stage an approval of a bundle, and of versions before it as they were approved; return all of it.

    Raises:
        BundleError: it can't be staged.
    """
    path = approval_target(index.name)
    target = repository.public_targets(role).get(path)
    if target is not None:
        author = repository.role_for(bundle_target(index.name))
        published = read_approval(repository.public_content(target))
        earlier = {digest: published.of(digest) for digest in before(repository, author, index, keep)}
        approval = msgspec.structs.replace(approval, earlier=earlier)
    repository.offer(role, {path: approval.encode()}, path, now)
    return approval


def before(repository: Repository, author: str, index: Index, keep: int) -> list[str]:
    """Return the digests of the versions that stay good beside a new one, the latest first; `author` is their role."""
    public = repository.public_targets(author)
    newest = public.get(bundle_target(index.name))
    found = [] if newest is None else [newest.hashes["sha256"]]
    found += [each.digest for each in earlier_of(public, index.name)]
    new = digest_of(index.encode())
    return [digest for digest in dict.fromkeys(found) if digest != new][:keep]


def withdraw(repository: Repository, role: str, name: str, version: str | None, now: datetime) -> list[Offered]:
    """Stage a bundle's newest version without an earlier one, or any; return those that are good no longer.

    Args:
        repository: Where.
        role: The author's.
        name: Of the bundle.
        version: Or a beginning of a digest; None: all earlier ones.
        now: The time.

    Raises:
        BundleError: there is no such earlier version.
    """
    public = repository.public_targets(role)
    if bundle_target(name) not in public:
        raise BundleError(f"no bundle `{name}` is published")
    known = earlier_of(public, name)
    gone = [each for each in known if version is None or each.version == version]
    gone = gone or [each for each in known if version and each.digest.startswith(version)]
    if not gone:
        named = ", ".join(f"{each.version} ({each.digest[:12]})" for each in known) or "none"
        raise BundleError(
            f"`{name}` has no such earlier version, but {named}; the newest goes when a newer one is signed"
        )
    left = [each.digest for each in known if each not in gone]
    contents, kept = _kept(repository, role, name, left)
    index = read_index(repository.public_content(public[bundle_target(name)]))
    own = [bundle_target(name), *(file_target(name, file.sha256) for file in index.files.values())]
    newest = {path: public[path] for path in own if path in public}
    repository.offer(role, contents, f"bundles/{name}/", now, {**newest, **kept})
    return gone


def _kept(
    repository: Repository, role: str, name: str, digests: Iterable[str]
) -> tuple[dict[str, bytes], dict[str, TargetFile]]:
    """Return what is signed of published versions as earlier ones: the contents of their indexes, and all targets."""
    public = repository.public_targets(role)
    newest = public.get(bundle_target(name))
    contents: dict[str, bytes] = {}
    targets: dict[str, TargetFile] = {}
    for place, digest in enumerate(digests, start=1):
        path = file_target(name, digest)
        is_newest = newest is not None and newest.hashes["sha256"] == digest
        contents[path] = repository.public_content(public[bundle_target(name) if is_newest else path])
        index = read_index(contents[path])
        for file in index.files.values():
            own = file_target(name, file.sha256)
            if own not in public:
                raise BundleError(f"`{own}` of version {index.version} is not published; sign with `--keep 0`")
            targets[own] = public[own]
        targets[path] = marked(path, contents[path], place, index.version)
    return contents, targets
