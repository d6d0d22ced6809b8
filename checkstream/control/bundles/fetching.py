"""How a node comes by a bundle that it may trust: from a web server, an object store or a folder, by a root it has.

INVARIANT: a bundle is what an author's keys have signed, what its rules enforce is what an approver's keys have, and no
key is both; nothing that the bundle says of itself changes that. What was accepted once is never taken back: versions
that were seen stay in `state`, and an older one is refused.

Source: The Update Framework specification 1.0, section 5; python-tuf's `ngclient` is its workflow.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import urllib3
from tuf.api.exceptions import DownloadError, DownloadHTTPError, DownloadLengthMismatchError, RepositoryError
from tuf.api.metadata import Metadata, Root, TargetFile, Targets
from tuf.ngclient import Updater, UpdaterConfig
from tuf.ngclient.fetcher import FetcherInterface

from checkstream.control.attestation import Offered
from checkstream.control.bundles.earlier import digest_of, earlier_of, is_earlier
from checkstream.control.bundles.index import INDEX, MAX_INDEX_BYTES, Index, file_of, read_index
from checkstream.control.bundles.trust import (
    approval_target,
    bundle_target,
    delegated_roles,
    file_target,
    require_two_roles,
)
from checkstream.control.bundles.weight import MAX_APPROVAL_BYTES, Approval, read_approval
from checkstream.errors import BundleRefused, BundleUnreachable

_CONNECT_S, _READ_S = 10.0, 20.0
LOOK_S = 300.0
"""The longest that a look for a bundle takes, with all that is fetched."""
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
    offered: tuple[Offered, ...]
    """All versions that the signed state names, the newest first."""

    @property
    def weight(self) -> str:
        """Digest of what may be enforced of it, as it was approved."""
        return self.approval.of(self.digest)


class Fetcher(FetcherInterface):
    """Reads files below a folder or an address, all of them in bounded time."""

    def __init__(
        self,
        ahead: Path | None = None,
        headers: Callable[[str], Mapping[str, str]] | None = None,
        ca: str | None = None,
        certificate: tuple[str, str] | None = None,
    ) -> None:
        """Read what is there.

        Args:
            ahead: Folder whose files stand in for those of the same path below a folder `public` beside it.
            headers: Returns the headers with which an address is asked.
            ca: File with the certificate that the server's is signed with; None: one of those that the system trusts.
            certificate: Files of this reader's own certificate and its private key; None: it has none.
        """
        self._headers = headers
        self._ahead = ahead
        self._end = time.monotonic() + LOOK_S
        timeout = urllib3.Timeout(connect=_CONNECT_S, read=_READ_S)
        file, key = certificate or (None, None)
        self._pool = urllib3.PoolManager(timeout=timeout, ca_certs=ca, cert_file=file, key_file=key)

    def _fetch(self, url: str) -> Iterator[bytes]:
        self._in_time(url)
        return self._file(url) if url.startswith("file:") else self._answer(url)

    def _in_time(self, url: str) -> None:
        if time.monotonic() > self._end:
            raise DownloadError(f"`{url}` came too late: a look takes {LOOK_S:.0f} s at most")

    def _file(self, url: str) -> Iterator[bytes]:
        path = Path(unquote(urlsplit(url).path))
        if self._ahead is not None:
            ahead = self._ahead / path.relative_to(self._ahead.parent / "public")
            path = ahead if ahead.exists() else path
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would never let go
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DownloadHTTPError(f"there is no `{path}`", HTTPStatus.NOT_FOUND) from error
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it is open
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DownloadError(f"`{path}` is no file")
            while chunk := file.read(_CHUNK):
                yield chunk

    def _answer(self, url: str) -> Iterator[bytes]:
        response = self._asked(url)
        try:
            if response.status != HTTPStatus.OK:
                raise DownloadHTTPError(f"`{url}` was answered with {response.status}", response.status)
            while chunk := response.read1(_CHUNK):
                self._in_time(url)
                yield chunk
        finally:
            response.close()

    def _asked(self, url: str) -> urllib3.BaseHTTPResponse:
        if self._headers is None:
            retries = urllib3.Retry(2, redirect=3, respect_retry_after_header=False)
            return self._pool.request("GET", url, preload_content=False, retries=retries)
        for left in (1, 0):  # what is signed counts once, and is sent to no other address
            try:
                return self._pool.request(
                    "GET", url, headers=self._headers(url), preload_content=False, retries=False, redirect=False
                )
            except urllib3.exceptions.HTTPError:
                if not left:
                    raise
        raise AssertionError


def fetch(
    source: str,
    root: bytes,
    name: str,
    state: Path,
    *,
    fetcher: FetcherInterface | None = None,
    had: Collection[str] = (),
    wanted: str = "",
) -> Fetched:
    """Fetch a version of a bundle and verify it. Blocks.

    Args:
        source: Folder or address of what was published.
        root: The root metadata that this node trusts.
        name: Of the bundle.
        state: Folder of what this node has seen, which keeps older versions out, and of the bundles that it has; each
            comes to stand there whole. For one process at a time.
        fetcher: Reads the source.
        had: Digests of bundles whose files in `state` need not be looked at again; others are fetched anew if they are
            not what they should be.
        wanted: Digest of the version, the newest or one of those that stay good beside it; empty: the newest.

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
            return _Fetching(updater, metadata, Path(folder), name).bundle(state / BUNDLES, had, wanted)
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

    def bundle(self, bundles: Path, had: Collection[str], wanted: str) -> Fetched:
        """Return the bundle, its files verified and in their folder among `bundles`."""
        targets = self._verified("targets")
        root = Metadata[Root].from_file(str(self._metadata / "root.json")).signed
        require_two_roles(root, targets, self._name)
        said = self._required(bundle_target(self._name), MAX_INDEX_BYTES, "has no bundle")
        approved = self._required(approval_target(self._name), MAX_APPROVAL_BYTES, "has no approval of the bundle")
        earlier: list[Offered] = []
        for role, delegated in delegated_roles(targets).items():
            signed = self._verified(role) if (self._metadata / f"{role}.json").exists() else None
            if signed is not None and signed.delegations is not None:
                raise BundleRefused(f"the role `{role}` delegates to others; only `targets` may")
            if signed is not None and delegated.is_delegated_path(bundle_target(self._name)):
                earlier += earlier_of(signed.targets, self._name)
        newest = read_index(self._content(said))
        offered = (Offered(digest=digest_of(newest.encode()), version=newest.version), *earlier)
        if wanted and wanted != offered[0].digest:
            said = self._earlier(wanted, offered)
        content = self._content(said)
        index, approval = read_index(content), read_approval(self._content(approved))
        if index.name != self._name or approval.bundle != self._name:
            raise BundleRefused(f"what is published as the bundle `{self._name}` calls itself by another name")
        digest = digest_of(content)
        if digest not in had and not _is_whole(bundles / digest, index, content):
            if (bundles / digest).exists():  # damaged
                (bundles / digest).rename(self._folder / "damaged")
            self._fetch_files(index)
            (self._folder / "bundle" / INDEX).write_bytes(content)
            bundles.mkdir(exist_ok=True)
            (self._folder / "bundle").rename(bundles / digest)
        return Fetched(index=index, approval=approval, folder=bundles / digest, digest=digest, offered=offered)

    def _earlier(self, wanted: str, offered: tuple[Offered, ...]) -> TargetFile:
        """Return the target of an earlier version that is still good."""
        target = self._updater.get_targetinfo(file_target(self._name, wanted))
        if target is None or not is_earlier(target, wanted) or target.length > MAX_INDEX_BYTES:
            named = ", ".join(f"{each.version} ({each.digest[:12]})" for each in offered)
            raise BundleRefused(
                f"the version {wanted[:12]} of the bundle `{self._name}` is not signed, or was withdrawn; what is "
                f"signed now: {named}"
            )
        return target

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


def _is_whole(folder: Path, index: Index, content: bytes) -> bool:
    """Tell whether a folder holds a bundle as it should be."""
    expected = {INDEX: file_of(content), **index.files}
    try:
        return all(file_of((folder / path).read_bytes()) == file for path, file in expected.items())
    except OSError:
        return False
