"""The grammar of triggers on recitals.

    fingerprints = [{file: path, [words: int]}, ...]

The file stands beside the policy, as those of `allow` do, and is given in the same way (`spares_syntax.list_name`). It
is checked where the policy is compiled, and is not compiled in: a program names it by its hash.
"""

from __future__ import annotations

import msgspec

from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.policy.fields import Fields
from checkstream.core.policy.nodes import Node, Placed, Source, shown
from checkstream.core.policy.program import MAX_RECITAL_WORDS
from checkstream.core.policy.spares_syntax import is_beside
from checkstream.errors import FingerprintsInvalid

MAX_FINGERPRINTS = 20


class FingerprintsTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """Texts that must not be recited, and from how many words on."""

    file: Placed[str]
    words: int
    texts: Fingerprints


def read_fingerprints(source: Source, node: Node) -> FingerprintsTrigger | None:
    """Read one entry of `fingerprints`."""
    read = Fields(source, node, "an entry of `fingerprints`", required=("file",), optional=("words",))
    file = read.text("file")
    words = read.integer("words", 1, MAX_RECITAL_WORDS)
    texts = None if file is None else _texts(source, file)
    if file is None or texts is None or (words is None and read.node("words") is not None):
        return None
    if words is not None and words.value < texts.least:
        reason = f"{shown(file.value)} finds recitals of {texts.least} words and more, not of {words.value}"
        source.fault(words.at, reason, f"make it with `checkstream fingerprint --words {words.value}`")
        return None
    return FingerprintsTrigger(file=file, words=texts.least if words is None else words.value, texts=texts)


def _texts(source: Source, path: Placed[str]) -> Fingerprints | None:
    """Return the fingerprints of a file, which several triggers may name."""
    if path.value in source.fingerprints:
        return source.fingerprints[path.value]
    file = f"the file {shown(path.value)}"
    if not is_beside(path.value):
        source.fault(path.at, f"{file} is not beside the policy", "give a relative path without `..`")
        return None
    content = source.lists.get(path.value)
    if content is None:
        source.fault(path.at, f"{file} is not there, or can't be read", "its path starts at the policy's folder")
        return None
    try:
        source.fingerprints[path.value] = texts = Fingerprints(content)
    except FingerprintsInvalid as error:
        reason, _, advice = str(error).partition("; ")
        source.fault(path.at, f"{file} can't be used: {reason}", advice)
        return None
    return texts
