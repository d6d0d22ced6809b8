"""Puts in force what is staged and signed: a new state stands beside the old one, is looked at, and is copied over it.

What readers begin at is copied last, so that they see the state before or the one after and nothing between.

Source: The Update Framework specification 1.0, section 6.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from securesystemslib.signer import Signer
from tuf.api.exceptions import LengthOrHashMismatchError
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, Targets, Timestamp

from checkstream.control.bundles.metadata import Kind, hashed, write_whole
from checkstream.control.bundles.shelves import Shelves
from checkstream.control.bundles.trust import days_of, name_of
from checkstream.errors import BundleError


def publish(
    shelves: Shelves, signers: Iterable[Signer], now: datetime, check: Callable[[], None], *, refresh: bool = False
) -> list[str]:
    """Make what is staged and signed public, and say anew that it is the newest.

    Args:
        shelves: What is public and what is staged.
        signers: Keys of `snapshot` and `timestamp`.
        now: The time.
        check: Looks at the new state as a node will, with `Fetcher(ahead=...)`; raises where it would be refused.
        refresh: Say only that what is public is the newest; what is staged waits on.

    Returns:
        The roles that have a new version.

    Raises:
        BundleError: a role waits for signatures, a key is missing, or the state would be refused.
    """
    roles = [] if refresh else _signed_roles(shelves)
    root = shelves.staged_of("root", Root) if "root" in roles else None
    root = root or shelves.published("root", Root)
    if root is None:
        raise BundleError("there is nothing to publish; `checkstream bundle init` says who may sign what")
    keys = {signer.public_key.keyid: signer for signer in signers}
    shutil.rmtree(shelves.ahead, ignore_errors=True)
    metadata = {f"{shelves.staged_now(role).signed.version}.{role}.json": shelves.content(role) for role in roles}
    snapshot = _new_snapshot(shelves, root.signed, roles, keys, now)
    metadata |= snapshot
    metadata["timestamp.json"] = _new_timestamp(shelves, root.signed, snapshot, keys, now)
    for name, content in metadata.items():
        write_whole(shelves.ahead / "metadata" / name, content)
    for path, content in _new_targets(shelves, roles):
        write_whole(shelves.ahead / "targets" / path, content)
    if roles:
        check()
    _put_public(shelves)
    if not refresh:
        shutil.rmtree(shelves.staged, ignore_errors=True)
    return roles


def _signed_roles(shelves: Shelves) -> list[str]:
    """Return the staged roles, each signed as it must be, and newer than what is public."""
    for each in (shelves.waiting_for(role) for role in shelves.waiting_roles()):
        if each.missing:
            more = f"{each.missing} more of {', '.join(each.others)}"
            raise BundleError(f"`{each.role}` waits for signatures: {more}; `checkstream bundle sign` adds one")
    roles = []
    for role in shelves.waiting_roles():
        staged, published = shelves.staged_now(role), shelves.published_any(role)
        if published is None or staged.signed.version > published.signed.version:
            roles.append(role)
        elif staged.signed_bytes != published.signed_bytes:  # else a publishing was broken off behind it
            raise BundleError(f"what is staged for `{role}` is older than what is public; sign it again")
    return roles


def _new_targets(shelves: Shelves, roles: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files that staged roles name and that are not public yet."""
    for role in roles:
        staged = shelves.staged_of(role, Targets) if role != "root" else None
        for target in () if staged is None else staged.signed.targets.values():
            path = hashed(target)
            place = shelves.staged / "targets" / path
            if (shelves.public / "targets" / path).exists():
                continue
            try:
                content = b"" if place.is_symlink() else place.read_bytes()
                target.verify_length_and_hashes(content)
            except (OSError, LengthOrHashMismatchError) as error:
                raise BundleError(f"`{place}` is not what `{role}` has signed; sign the bundle again") from error
            yield path, content


def _put_public(shelves: Shelves) -> None:
    """Copy what is to be public: what is begun at last of all."""
    files = sorted(path for path in shelves.ahead.rglob("*") if path.is_file())
    order = sorted(
        files, key=lambda path: (path.name == "timestamp.json", ".root." in path.name, "metadata" in path.parts)
    )
    for path in order:
        write_whole(shelves.public / path.relative_to(shelves.ahead), path.read_bytes())
    shutil.rmtree(shelves.ahead, ignore_errors=True)


def _new_snapshot(
    shelves: Shelves, root: Root, roles: list[str], keys: Mapping[str, Signer], now: datetime
) -> dict[str, bytes]:
    """Return what belongs together now, by its name; a new version where something has changed, or it gets old."""
    published, days = shelves.published("snapshot", Snapshot), days_of(root.roles["snapshot"])
    changed = [role for role in roles if role != "root"]
    if published is not None and not changed and published.signed.expires > now + timedelta(days=days / 2):
        name = f"{published.signed.version}.snapshot.json"
        return {name: (shelves.metadata / name).read_bytes()}
    meta = {} if published is None else dict(published.signed.meta)
    for role in changed:
        version = shelves.staged_now(role).signed.version
        meta[f"{role}.json"] = MetaFile.from_data(version, shelves.content(role), ["sha256"])
    version = 1 if published is None else published.signed.version + 1
    new = Metadata(Snapshot(version=version, expires=now + timedelta(days=days), meta=meta))
    _sign_by(root, "snapshot", new, keys)
    return {f"{version}.snapshot.json": new.to_bytes()}


def _new_timestamp(
    shelves: Shelves, root: Root, snapshot: Mapping[str, bytes], keys: Mapping[str, Signer], now: datetime
) -> bytes:
    published = shelves.published("timestamp", Timestamp)
    ((name, content),) = snapshot.items()
    meta = MetaFile.from_data(int(name.partition(".")[0]), content, ["sha256"])
    version = 1 if published is None else published.signed.version + 1
    expires = now + timedelta(days=days_of(root.roles["timestamp"]))
    new = Metadata(Timestamp(version=version, expires=expires, snapshot_meta=meta))
    _sign_by(root, "timestamp", new, keys)
    return new.to_bytes()


def _sign_by(root: Root, role: str, metadata: Metadata[Kind], keys: Mapping[str, Signer]) -> None:
    for key in root.roles[role].keyids:
        if key in keys:
            metadata.sign(keys[key], append=True)
    result = root.get_verification_result(role, metadata.signed_bytes, metadata.signatures)
    if not result:
        names = ", ".join(name_of(root.keys[key]) for key in root.roles[role].keyids)
        raise BundleError(f"`{role}` needs {result.missing} more of the keys {names}; give them with --key")
