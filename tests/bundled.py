"""A world of signed bundles: keys, who may sign what, a repository, and bundles of small policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from securesystemslib.signer import CryptoSigner

from checkstream.app.bundles import Files, approved, built, compiled, opened
from checkstream.control.bundles.fetching import Fetched, Fetcher, fetch
from checkstream.control.bundles.index import Index, read_index
from checkstream.control.bundles.repository import Repository
from checkstream.control.bundles.signers import open_signer, write_key_pair
from checkstream.control.bundles.versions import offer_approval, offer_bundle, withdraw
from checkstream.control.bundles.weight import approval_of
from checkstream.control.bundles.written import WrittenBundle, WrittenProgram, WrittenTrust, read_trust_file

PEOPLE = ("ann", "ben", "publisher", "eve", "eli", "ruth", "rob")
TRUST = """
keys: {ann: keys/ann.pub, ben: keys/ben.pub, publisher: keys/publisher.pub, eve: keys/eve.pub, ruth: keys/ruth.pub,
       eli: keys/eli.pub, rob: keys/rob.pub}
roles:
  root: {keys: [ann, ben], threshold: 2}
  targets: {keys: [ann, ben], threshold: 2}
  snapshot: {keys: [publisher], days: 7}
  timestamp: {keys: [publisher], days: 1}
authors: {team: {keys: [eve], bundles: [retail]}}
approvers: {risk: {keys: [ruth], bundles: ["*"]}}
"""
STOPS = "{name: s, id: R-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: No.}]}"
LOGS = "{name: l, id: R-2, stage: [midstream], phrases: [trial], actions: [{type: log_event}]}"


class World:
    """A folder with all of it."""

    def __init__(self, folder: Path, trust: str = TRUST) -> None:
        """Make the keys; nothing is signed yet."""
        self.folder = folder
        for name in PEOPLE:
            if not (folder / "keys" / f"{name}.pem").exists():
                write_key_pair(folder / "keys" / f"{name}.pem", folder / "keys" / f"{name}.pub")
        self.repository = Repository(folder / "repository")
        self.public = self.repository.public
        self.trust = self.written(trust)
        self.root = b""
        """What nodes were given to trust: the first root that was published."""

    def written(self, trust: str) -> WrittenTrust:
        """Return a `trust.yaml`."""
        (self.folder / "trust.yaml").write_text(trust, encoding="utf-8")
        return read_trust_file(self.folder / "trust.yaml")

    def signer(self, name: str) -> CryptoSigner:
        """Return what signs as somebody."""
        signer = open_signer(str(self.folder / "keys" / f"{name}.pem"), ())
        assert isinstance(signer, CryptoSigner)
        return signer

    def establish(
        self, trust: WrittenTrust | None = None, signers: Sequence[str] = ("ann", "ben", "eve", "ruth")
    ) -> None:
        """Say who may sign what, signed by all."""
        self.repository.establish(trust or self.trust, datetime.now(UTC))
        for name in signers:
            for role in self.repository.signable(self.signer(name)):
                self.repository.sign(role, self.signer(name))

    def files(self, *rules: str, version: str = "1", name: str = "retail") -> Files:
        """Return a bundle of one program `chat` with these rules."""
        text = "pack: {name: ours, version: 1.0.0}\npolicies:\n" + "".join(f"  - {rule}\n" for rule in rules)
        policy = self.folder / "ours.yaml"
        policy.write_text(text, encoding="utf-8")
        programs = {"chat": WrittenProgram(policies=(str(policy),))}
        return built(WrittenBundle(bundle=name, version=version, programs=programs))

    def sign(
        self,
        files: Mapping[str, bytes | memoryview],
        *,
        role: str = "team",
        by: Sequence[str] = ("eve",),
        keep: int = 1,
    ) -> None:
        """Sign a bundle."""
        plain = {path: bytes(each) for path, each in files.items()}
        offer_bundle(self.repository, role, index_of(files), plain, keep=keep, now=datetime.now(UTC))
        for name in by:
            self.repository.sign(role, self.signer(name))

    def approve(self, files: Files, *, role: str = "risk", by: Sequence[str] = ("ruth",), keep: int = 1) -> None:
        """Approve of what a bundle enforces."""
        index = index_of(files)
        approval = approval_of(index.name, compiled(index, files))
        offer_approval(self.repository, role, index, approval, keep=keep, now=datetime.now(UTC))
        for name in by:
            self.repository.sign(role, self.signer(name))

    def withdraw(self, version: str | None = None) -> None:
        """Publish that earlier versions are good no longer."""
        withdraw(self.repository, "team", "retail", version, datetime.now(UTC))
        self.repository.sign("team", self.signer("eve"))
        self.publish()

    def publish(self, *, now: datetime | None = None, look: bool = True) -> None:
        """Put in force what is signed; without `look` also what no node would take."""
        self.repository.publish([self.signer("publisher")], now or datetime.now(UTC), self._look if look else _nothing)
        self.root = self.root or self.repository.newest_root()

    def _look(self) -> None:
        for name in self.repository.bundles():
            self.accepted(
                "look", name, fetcher=Fetcher(ahead=self.repository.ahead), root=self.repository.newest_root()
            )

    def release(self, *rules: str, version: str, keep: int = 1) -> Files:
        """Build, sign, approve and publish a bundle."""
        files = self.files(*rules, version=version)
        self.sign(files, keep=keep)
        self.approve(files, keep=keep)
        self.publish()
        return files

    def accepted(
        self,
        node: str = "node",
        name: str = "retail",
        *,
        source: str | None = None,
        root: bytes | None = None,
        fetcher: Fetcher | None = None,
        wanted: str = "",
    ) -> Fetched:
        """Return what a node takes."""
        source, root = source or str(self.public), root or self.root
        fetched = fetch(source, root, name, self.folder / node, fetcher=fetcher, wanted=wanted)
        index, files = opened(fetched.folder)
        approved(index, compiled(index, files), fetched.weight)
        return fetched


def index_of(files: Mapping[str, bytes | memoryview]) -> Index:
    """Return what a bundle says of itself."""
    return read_index(bytes(files["bundle.json"]))


def _nothing() -> None:
    """Look at nothing."""
