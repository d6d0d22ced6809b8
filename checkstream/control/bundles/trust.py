"""Who may sign what, as metadata of The Update Framework: roles, their keys, and how long a signature is good.

INVARIANT: bundles and approvals are of two roles that have no key in common; readers hold delegations to it.

Source: The Update Framework specification 1.0, sections 4 and 6 (https://theupdateframework.github.io/specification/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from securesystemslib.signer import Key, SSlibKey
from tuf.api.metadata import DelegatedRole, Delegations, Role, Root, Targets

from checkstream.config import read_file
from checkstream.control.bundles.written import TOP, Delegated, WrittenTrust
from checkstream.errors import BundleError, BundleRefused

_DAYS = "x-checkstream-days"
_NAME = "x-checkstream-name"
_APPROVES = "x-checkstream-approves"


def bundle_target(bundle: str) -> str:
    """Return the path of the target that says what is in a bundle."""
    return f"bundles/{bundle}/bundle.json"


def file_target(bundle: str, digest: str) -> str:
    """Return the path of the target that is a file of a bundle."""
    return f"bundles/{bundle}/files/{digest}"


def approval_target(bundle: str) -> str:
    """Return the path of the target that approves of what a bundle enforces."""
    return f"approvals/{bundle}.json"


def read_keys(trust: WrittenTrust) -> dict[str, Key]:
    """Return the public keys that a `trust.yaml` names.

    Raises:
        BundleError: one can't be read, is none, or is there twice.
    """
    found: dict[str, Key] = {}
    known: dict[str, str] = {}
    for name, file in trust.keys.items():
        key = public_key(Path(file), name)
        if key.keyid in known:
            raise BundleError(f"`{name}` and `{known[key.keyid]}` are one key; a person's signature would count twice")
        known[key.keyid] = name
        found[name] = key
    return found


def public_key(file: Path, name: str) -> Key:
    """Return a public key from PEM, with its name.

    Raises:
        BundleError: it can't be read, or is none.
    """
    try:
        key = SSlibKey.from_crypto(load_pem_public_key(read_file(file)))
    except OSError as error:
        raise BundleError(f"can't read `{file}`: {(error.strerror or 'no reason given').lower()}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BundleError(f"`{file}` is no public key in PEM; `checkstream bundle key` makes one") from error
    key.unrecognized_fields[_NAME] = name
    return key


def name_of(key: Key) -> str:
    """Return what people call a key."""
    return str(key.unrecognized_fields.get(_NAME, key.keyid[:12]))


def days_of(role: Role) -> int:
    """Return how long a signature of a role is good."""
    days = role.unrecognized_fields.get(_DAYS)
    return days if isinstance(days, int) and 1 <= days <= 3650 else 30


def root_of(trust: WrittenTrust, keys: Mapping[str, Key], version: int, now: datetime) -> Root:
    """Return what says who has the four roles."""
    signers = {name: getattr(trust.roles, name) for name in TOP}
    roles = {
        name: Role([keys[key].keyid for key in own.keys], own.threshold, {_DAYS: own.days})
        for name, own in signers.items()
    }
    known = {keys[key].keyid: keys[key] for own in signers.values() for key in own.keys}
    expires = now + timedelta(days=trust.roles.root.days)
    return Root(version=version, expires=expires, keys=known, roles=roles, consistent_snapshot=True)


def targets_of(trust: WrittenTrust, keys: Mapping[str, Key], version: int, now: datetime) -> Targets:
    """Return what says which authors and approvers there are."""
    roles: dict[str, DelegatedRole] = {}
    for approves, written in ((False, trust.authors), (True, trust.approvers)):
        for name, own in written.items():
            ids = [keys[key].keyid for key in own.keys]
            fields = {_DAYS: own.days, _APPROVES: approves}
            paths = _approval_paths(own) if approves else _bundle_paths(own)
            roles[name] = DelegatedRole(name, ids, own.threshold, False, paths, None, fields)
    delegated = (*trust.authors.values(), *trust.approvers.values())
    known = {keys[key].keyid: keys[key] for own in delegated for key in own.keys}
    expires = now + timedelta(days=trust.roles.targets.days)
    return Targets(version=version, expires=expires, delegations=Delegations(known, roles))


def _bundle_paths(own: Delegated) -> list[str]:
    return [path for bundle in own.bundles for path in (bundle_target(bundle), file_target(bundle, "*"))]


def _approval_paths(own: Delegated) -> list[str]:
    return [approval_target(bundle) for bundle in own.bundles]


def delegated_roles(targets: Targets) -> dict[str, DelegatedRole]:
    """Return the authors and approvers, by name."""
    delegations = targets.delegations
    return {} if delegations is None or delegations.roles is None else dict(delegations.roles)


def approves(role: DelegatedRole) -> bool:
    """Tell whether a role was made to approve of bundles."""
    return role.unrecognized_fields.get(_APPROVES) is True


def may_provide(role: DelegatedRole, target: str) -> bool:
    """Tell whether a role may sign a target."""
    return role.is_delegated_path(target)


def require_two_roles(root: Root, targets: Targets, bundle: str) -> None:
    """Hold what is trusted to it that nobody can both make a bundle and approve of it, nor count twice.

    Args:
        root: Verified metadata of the root.
        targets: Verified metadata of the top-level role.
        bundle: The bundle's name.

    Raises:
        BundleRefused: somebody could.
    """
    if targets.targets:
        raise BundleRefused("the role `targets` signs files itself; only authors and approvers may")
    delegations, roles = targets.delegations, delegated_roles(targets)
    if delegations is None or delegations.succinct_roles is not None:
        raise BundleRefused("the role `targets` delegates by hashes of paths; authors and approvers have names")
    _require_distinct(root.roles, root.keys)
    _require_distinct(roles, delegations.keys)
    signs = (bundle_target(bundle), file_target(bundle, "0" * 64))
    authors = {_public(delegations.keys[key]) for target in signs for key in _keys_for(roles.values(), target)}
    approvers = {_public(delegations.keys[key]) for key in _keys_for(roles.values(), approval_target(bundle))}
    if authors & approvers:
        raise BundleRefused(f"one key may sign the bundle `{bundle}` and approve of it; trust nobody with both")


def _require_distinct(roles: Mapping[str, Role], keys: Mapping[str, Key]) -> None:
    """Hold roles to it that each of their keys is another: under two names one would count twice."""
    for name, role in roles.items():
        if len({_public(keys[key]) for key in role.keyids if key in keys}) < len(role.keyids):
            raise BundleRefused(f"the role `{name}` has one key twice, or a key that is not there")


def _public(key: Key) -> str:
    """Return what makes a key the one that it is, whatever it is called and however it is written."""
    public = str(key.keyval.get("public", "")).strip()
    if not public.startswith("-----BEGIN"):
        return public.lower()
    try:
        return load_pem_public_key(public.encode()).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BundleRefused(f"the key `{name_of(key)}` can't be read") from error


def _keys_for(roles: Iterable[DelegatedRole], target: str) -> Iterator[str]:
    for role in roles:
        if role.is_delegated_path(target):
            yield from role.keyids
