"""Earlier versions of a bundle that stay good: a canary and a rollback need two at a time.

The newest version stands at the path that it always has. An earlier one is a file of the bundle, its `bundle.json`,
that its author's role has marked in what it signs; its approval stands beside that of the newest, by its digest.
INVARIANT: which versions there are is signed and only as new as all of the state, so that nobody can bring back what
was withdrawn, and older states are refused as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from tuf.api.metadata import TargetFile

from checkstream.control.attestation import Offered
from checkstream.control.bundles.index import file_of
from checkstream.control.bundles.trust import file_target
from checkstream.control.bundles.weight import MOST_EARLIER
from checkstream.core.policy.program import Word

_CUSTOM = "custom"
"""What The Update Framework leaves to who uses it."""


class _Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an author's role says of an earlier version."""

    place: Annotated[int, Meta(ge=1, le=MOST_EARLIER)]
    """1: the one before the newest."""
    version: Word


def earlier_of(targets: Mapping[str, TargetFile], bundle: str) -> list[Offered]:
    """Return the earlier versions of a bundle that signed targets name, the latest first."""
    prefix = file_target(bundle, "")
    found: list[tuple[int, Offered]] = []
    for path, target in targets.items():
        mark = _mark_of(target) if path.startswith(prefix) else None
        if mark is not None:
            found.append((mark.place, Offered(digest=target.hashes["sha256"], version=mark.version)))
    return [offered for _, offered in sorted(found, key=lambda each: each[0])][:MOST_EARLIER]


def is_earlier(target: TargetFile, digest: str) -> bool:
    """Tell whether a signed target is an earlier version of this digest."""
    return _mark_of(target) is not None and target.hashes.get("sha256") == digest


def _mark_of(target: TargetFile) -> _Mark | None:
    custom = target.unrecognized_fields.get(_CUSTOM)
    try:
        return msgspec.convert(custom["earlier"], _Mark) if isinstance(custom, dict) and "earlier" in custom else None
    except msgspec.ValidationError:
        return None


def marked(path: str, content: bytes, place: int, version: str) -> TargetFile:
    """Return the target that says: this `bundle.json` is the one so many versions before the newest."""
    target = TargetFile.from_data(path, content, ["sha256"])
    target.unrecognized_fields[_CUSTOM] = {"earlier": msgspec.to_builtins(_Mark(place=place, version=version))}
    return target


def digest_of(content: bytes) -> str:
    """Return what names a version: SHA-256 of its `bundle.json`, hex."""
    return file_of(content).sha256
