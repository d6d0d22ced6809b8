"""What the commands of `checkstream bundle` do with keys, repositories and sources; needs the extra `bundles`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from checkstream.app.bundles import Files, approved, built, compiled, opened
from checkstream.cli.results import counted, safe, write_json
from checkstream.config import read_file
from checkstream.control.bundles import fetching, versions
from checkstream.control.bundles.earlier import digest_of
from checkstream.control.bundles.fetching import Fetched, Fetcher
from checkstream.control.bundles.index import INDEX, Index
from checkstream.control.bundles.repository import Repository
from checkstream.control.bundles.signers import open_signer, write_key_pair, write_public_key
from checkstream.control.bundles.trust import approves, bundle_target
from checkstream.control.bundles.weight import approval_of
from checkstream.control.bundles.written import read_bundle_file, read_trust_file
from checkstream.core.policy.program import Program
from checkstream.errors import BundleError


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle is, for programs."""

    bundle: str
    version: str
    digest: str
    """SHA-256 of its `bundle.json`."""
    programs: dict[str, str]
    """Name -> hash."""
    weight: str
    """Digest of what it enforces: what an approval is of."""
    rules: int
    """Rules that it enforces."""
    earlier: dict[str, str] = {}
    """Digest -> version, of those before it that stay good."""


def key(args: argparse.Namespace) -> None:
    """Make a key pair, or write the public key of one that is elsewhere.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    name: str = args.name
    if not name.isascii() or not name.replace("-", "").isalnum():
        raise BundleError(f"`{name}` is no name of a key; use letters, digits and `-`")
    private, public = args.to / f"{name}.pem", args.to / f"{name}.pub"
    if args.at is not None:
        uri = write_public_key(args.at, public)
        sys.stdout.write(f"{public}: public, for trust.yaml; sign by `--key {safe(f'{name}={uri}')}`\n")
        return
    write_key_pair(private, public)
    sys.stdout.write(f"{private}: private, for nobody else\n{public}: public, for trust.yaml\n")


def init(args: argparse.Namespace) -> None:
    """Stage who may sign what.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    repository = Repository(args.repository)
    repository.establish(read_trust_file(args.trust), datetime.now(UTC))
    _show_waiting(repository)


def build(args: argparse.Namespace) -> None:
    """Make the files of a bundle.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    written = read_bundle_file(args.file)
    files = built(written)
    _write(files, args.output)
    index, kept = opened(args.output)
    _show(_summary(index, compiled(index, kept, written.models)), args.json)


def _write(files: Files, folder: Path) -> None:
    """Put the files of a bundle into a folder, in place of an older bundle.

    Raises:
        BundleError: something else is there.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / INDEX).is_file():
        raise BundleError(f"`{folder}` is there and is no bundle; give another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as part:
        for path, content in files.items():
            place = Path(part, "new", path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        if folder.exists():
            folder.rename(Path(part, "old"))
        Path(part, "new").rename(folder)


def sign(args: argparse.Namespace) -> None:
    """Sign a bundle, approve of one, or sign what waits.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    repository = Repository(args.repository)
    signer = open_signer(args.key, repository.known_keys())
    if args.bundle is None:
        roles = [args.role] if args.role is not None else repository.signable(signer)
        if not roles:
            raise BundleError("nothing that waits is for this key; give the bundle that you sign or approve of")
        for role in roles:
            for line in repository.said(role):
                sys.stdout.write(safe(f"{role} says: {line}") + "\n")
    else:
        role = args.role or _only(repository.delegated_to(signer))
        roles = [role]
        _offer(repository, role, args.bundle, args.models, args.keep)
    for role in roles:
        repository.sign(role, signer)
    _show_waiting(repository)


def _only(roles: Sequence[str]) -> str:
    if not roles:
        raise BundleError("this key is none of an author or approver; `trust.yaml` says whose are")
    if len(roles) > 1:
        raise BundleError(f"this key has {len(roles)} roles for bundles; say which with --as: {', '.join(roles)}")
    return roles[0]


def _offer(repository: Repository, role: str, folder: Path, models: str | None, keep: int) -> None:
    index, files = opened(folder)
    now = datetime.now(UTC)
    if not approves(repository.delegated(role)):
        plain = {path: bytes(content) for path, content in files.items()}
        versions.offer_bundle(repository, role, index, plain, keep=keep, now=now)
        return
    approval = approval_of(index.name, compiled(index, files, models))
    approval = versions.offer_approval(repository, role, index, approval, keep=keep, now=now)
    still = ", ".join(digest[:12] for digest in approval.earlier)
    sys.stdout.write(
        f"{role} approves of {counted(len(approval.rules), 'enforced rule')} of {index.name} {index.version}"
        f"{f', and still of {still}' if still else ''}\n"
    )


def withdraw(args: argparse.Namespace) -> None:
    """Stage that earlier versions of a bundle are good no longer.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    repository = Repository(args.repository)
    signer = open_signer(args.key, repository.known_keys())
    role = repository.role_for(bundle_target(args.name))
    gone = versions.withdraw(repository, role, args.name, args.version, datetime.now(UTC))
    repository.sign(role, signer)
    sys.stdout.write(safe(f"{args.name} is to be without {', '.join(each.version for each in gone)}") + "\n")
    _show_waiting(repository)


def publish(args: argparse.Namespace) -> None:
    """Put in force what is staged and signed.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    repository = Repository(args.repository)
    known = repository.known_keys()
    signers = [open_signer(key, known) for key in args.key]
    now = datetime.now(UTC)
    roles = repository.publish(signers, now, lambda: _look(repository, args.models), refresh=args.refresh)
    sys.stdout.write(f"published {', '.join(roles)}\n" if roles else "said anew that it is the newest\n")


def _look(repository: Repository, models: str | None) -> None:
    """Take each bundle as a node would that knows nothing yet; what has not changed may be somebody else's to mend."""
    newest = repository.newest_root()
    changed = repository.bundles(changed=True)
    for name in repository.bundles():
        with tempfile.TemporaryDirectory() as folder:
            fetcher = Fetcher(ahead=repository.ahead)
            source = str(repository.public), newest, name, Path(folder, "state")
            try:
                fetched = fetching.fetch(*source, fetcher=fetcher)
                _accepted(fetched, models)
            except BundleError as error:
                if name in changed:
                    raise
                sys.stderr.write(safe(f"nodes will refuse the bundle {name}, which has not changed: {error}") + "\n")
                continue
            for each in fetched.offered[1:]:
                try:
                    _accepted(fetching.fetch(*source, fetcher=fetcher, wanted=each.digest), models)
                except BundleError as error:
                    said = f"nodes can't be taken back to {name} {each.version}: {error}"
                    sys.stderr.write(safe(said) + "\n")


def _accepted(fetched: Fetched, models: str | None) -> dict[str, Program]:
    """Return the programs of a bundle that was fetched, if they are what was approved.

    Raises:
        BundleRefused: they are not, or can't be used here.
    """
    index, files = opened(fetched.folder)
    programs = compiled(index, files, models)
    approved(index, programs, fetched.weight)
    return programs


def verify(args: argparse.Namespace) -> None:
    """Fetch a bundle, and keep nothing.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    with tempfile.TemporaryDirectory() as folder:
        args.state, args.output = Path(folder, "state"), Path(folder, "bundle")
        fetch(args)


def fetch(args: argparse.Namespace) -> None:
    """Fetch a bundle into a folder.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    try:
        root = read_file(args.root)
    except OSError as error:
        reason = (error.strerror or "it can't be opened").lower()
        raise BundleError(f"can't read the root `{args.root}`: {reason}") from error
    fetched = fetching.fetch(args.source, root, args.name, args.state)
    programs = _accepted(fetched, args.models)
    index, files = opened(fetched.folder)
    _write({**files, INDEX: index.encode()}, args.output)
    earlier = {each.digest: each.version for each in fetched.offered[1:]}
    _show(msgspec.structs.replace(_summary(fetched.index, programs), earlier=earlier), args.json)


def _summary(index: Index, programs: Mapping[str, Program]) -> Summary:
    approval = approval_of(index.name, programs)
    return Summary(
        bundle=index.name,
        version=index.version,
        digest=digest_of(index.encode()),
        programs={name: program.hash for name, program in programs.items()},
        weight=approval.weight,
        rules=len(approval.rules),
    )


def _show(summary: Summary, as_json: bool) -> None:
    if as_json:
        write_json(summary)
        return
    lines = [f"{summary.bundle} {summary.version}, {summary.digest[:12]}: enforces {counted(summary.rules, 'rule')}"]
    lines += [f"  program {name} {digest[:12]}" for name, digest in summary.programs.items()]
    lines += [f"  and still good: {version} ({digest[:12]})" for digest, version in summary.earlier.items()]
    sys.stdout.write("\n".join(map(safe, lines)) + "\n")


def _show_waiting(repository: Repository) -> None:
    waiting = repository.waiting()
    for each in waiting:
        signed = f"signed by {', '.join(each.signed)}" if each.signed else "signed by nobody"
        needs = f"; needs {each.missing} more of {', '.join(each.others)}" if each.missing else ""
        sys.stdout.write(safe(f"{each.role} {each.version}: {signed}{needs}") + "\n")
    if waiting and not any(each.missing for each in waiting):
        sys.stdout.write("all that is needed has signed; `checkstream bundle publish` puts it in force\n")
