"""How a node comes by a bundle that it may trust: from a web server, an object store or a folder, by a root it has.

INVARIANT: a bundle is what an author's keys have signed, what its rules enforce is what an approver's keys have, and no
key is both; nothing that the bundle says of itself changes that. What was accepted once is never taken back: versions
that were seen stay in `state`, and an older one is refused.

Source: The Update Framework specification 1.0, section 5; python-tuf's `ngclient` is its workflow.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import urllib3
from tuf.api.exceptions import DownloadError, DownloadHTTPError, DownloadLengthMismatchError, RepositoryError
from tuf.api.metadata import Metadata, TargetFile, Targets
from tuf.ngclient import Updater, UpdaterConfig
from tuf.ngclient.fetcher import FetcherInterface

from checkstream.control.index import INDEX, MAX_INDEX_BYTES, Index, read_index
from checkstream.control.trust import approval_target, bundle_target, delegated_roles, file_target, require_two_roles
from checkstream.control.weight import MAX_APPROVAL_BYTES, Approval, read_approval
from checkstream.errors import BundleRefused, BundleUnreachable

_CONNECT_S, _READ_S, _FILE_S = 10.0, 20.0, 300.0
_CHUNK = 64 << 10
_PART = ".fetching-"
BUNDLES = "bundles"
"""Folder of the bundles that a node has, each called by its digest."""


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that is signed and approved; whether its programs are what was approved is still to be seen."""

    index: Index
    approval: Approval
    folder: Path
    """Where its files are, as `index` names them."""
    digest: str
    """SHA-256 of its `bundle.json`, hex."""


class Fetcher(FetcherInterface):
    """Reads files below a folder or an address, in bounded time."""

    def __init__(self, pending: str = "") -> None:
        """Read what is there.

        Args:
            pending: Name of a file that stands in for `timestamp.json`.
        """
        self._pending = pending
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=_CONNECT_S, read=_READ_S))

    def _fetch(self, url: str) -> Iterator[bytes]:
        return self._file(url) if url.startswith("file:") else self._answer(url)

    def _file(self, url: str) -> Iterator[bytes]:
        path = Path(unquote(urlsplit(url).path))
        if self._pending and path.name == "timestamp.json":
            path = path.with_name(self._pending)
        try:
            file = path.open("rb")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DownloadHTTPError(f"there is no `{path}`", HTTPStatus.NOT_FOUND) from error
        with file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def _answer(self, url: str) -> Iterator[bytes]:
        end = time.monotonic() + _FILE_S
        response = self._pool.request("GET", url, preload_content=False, retries=urllib3.Retry(2, redirect=3))
        try:
            if response.status != HTTPStatus.OK:
                raise DownloadHTTPError(f"`{url}` was answered with {response.status}", response.status)
            while chunk := response.read1(_CHUNK):
                if time.monotonic() > end:
                    raise DownloadError(f"`{url}` took more than {_FILE_S:.0f} s")
                yield chunk
        finally:
            response.close()


def fetch(source: str, root: bytes, name: str, state: Path, *, fetcher: FetcherInterface | None = None) -> Fetched:
    """Fetch the newest version of a bundle and verify it. Blocks.

    Args:
        source: Folder or address of what was published.
        root: The root metadata that this node trusts.
        name: Of the bundle.
        state: Folder of what this node has seen, which keeps older versions out, and of the bundles that it has; each
            comes to stand there whole. For one process at a time.
        fetcher: Reads the source.

    Raises:
        BundleRefused: what is there may not be trusted.
        BundleUnreachable: the source can't be read now.
    """
    base = source if "://" in source else Path(source).resolve().as_uri()
    metadata = state / "metadata"
    try:
        metadata.mkdir(parents=True, exist_ok=True)
        for left in state.glob(f"{_PART}*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=state, prefix=_PART) as folder:
            updater = Updater(
                str(metadata),
                f"{base.rstrip('/')}/metadata/",
                target_base_url=f"{base.rstrip('/')}/targets/",
                fetcher=fetcher or Fetcher(),
                config=UpdaterConfig(app_user_agent="checkstream"),
                bootstrap=root,
            )
            updater.refresh()
            return _Fetching(updater, metadata, Path(folder), name).bundle(state / BUNDLES)
    except (RepositoryError, DownloadLengthMismatchError) as error:
        raise BundleRefused(f"`{source}` may not be trusted: {_said(error)}") from error
    except (DownloadError, urllib3.exceptions.HTTPError) as error:
        raise BundleUnreachable(f"`{source}` can't be read: {_said(error)}") from error
    except OSError as error:
        raise BundleUnreachable(f"bundles can't be kept in `{state}`: {_said(error)}") from error


def _said(error: BaseException) -> str:
    cause = error.__cause__
    return f"{error} ({cause})" if cause is not None and str(cause) not in str(error) else str(error)


class _Fetching:
    """One fetch, by metadata that has been verified."""

    def __init__(self, updater: Updater, metadata: Path, folder: Path, name: str) -> None:
        self._updater = updater
        self._metadata = metadata
        self._folder = folder
        self._name = name

    def bundle(self, bundles: Path) -> Fetched:
        """Return the bundle, its files verified and in their folder among `bundles`."""
        targets = self._verified("targets")
        require_two_roles(targets, self._name)
        said = self._required(bundle_target(self._name), MAX_INDEX_BYTES, "has no bundle")
        approved = self._required(approval_target(self._name), MAX_APPROVAL_BYTES, "has no approval of the bundle")
        for role in delegated_roles(targets):
            if (self._metadata / f"{role}.json").exists() and self._verified(role).delegations is not None:
                raise BundleRefused(f"the role `{role}` delegates to others; only `targets` may")
        content = self._content(said)
        index, approval = read_index(content), read_approval(self._content(approved))
        if index.name != self._name or approval.bundle != self._name:
            raise BundleRefused(f"what is published as the bundle `{self._name}` calls itself by another name")
        digest = hashlib.sha256(content).hexdigest()
        if not (bundles / digest).is_dir():
            self._fetch_files(index)
            (self._folder / "bundle" / INDEX).write_bytes(content)
            bundles.mkdir(exist_ok=True)
            (self._folder / "bundle").rename(bundles / digest)
        return Fetched(index=index, approval=approval, folder=bundles / digest, digest=digest)

    def _verified(self, role: str) -> Targets:
        """Return metadata as it stands in the state, where nothing comes to stand that has not been verified."""
        metadata = Metadata[Targets].from_file(str(self._metadata / f"{role}.json"))
        if not isinstance(metadata.signed, Targets):
            raise BundleRefused(f"the metadata of `{role}` is of another kind")
        return metadata.signed

    def _required(self, target: str, most: int, otherwise: str) -> TargetFile:
        found = self._updater.get_targetinfo(target)
        if found is None:
            raise BundleRefused(f"the source {otherwise} `{self._name}`; ask who publishes it")
        if found.length > most:
            raise BundleRefused(f"`{target}` has {found.length} bytes; the limit is {most}")
        return found

    def _content(self, target: TargetFile) -> bytes:
        path = self._folder / "content"
        self._updater.download_target(target, str(path))
        return path.read_bytes()

    def _fetch_files(self, index: Index) -> None:
        for path, file in index.files.items():
            target = self._updater.get_targetinfo(file_target(self._name, file.sha256))
            if target is None or target.hashes.get("sha256") != file.sha256 or target.length != file.bytes:
                raise BundleRefused(f"nobody has signed `{path}` of the bundle `{self._name}`")
            place = self._folder / "bundle" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            self._updater.download_target(target, str(place))
