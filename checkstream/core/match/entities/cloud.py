"""Keys of the large clouds; those without a prefix count only after the words that name them."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.entities.entity import (
    MARKS,
    Entity,
    SpanPair,
    before,
    glued_before,
    whole_if,
    without_marks,
)
from checkstream.core.match.entities.labels import left_of
from checkstream.core.match.entities.randomness import entropy_bits, is_random, is_stand_in

_OF_IDS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ID_HEADS = ("AKIA", "ASIA", "ABIA", "ACCA", "A3T")


def _squeezed(text: str, start: int) -> str:
    """Return the letters and digits of the text before `start`, so that all spellings of a key's name are one."""
    return "".join(char for char in left_of(text, start) if char.isalnum())


def _alone(text: str, start: int, end: int, alphabet: str) -> bool:
    """Say whether neither neighbour is a letter, a digit or a sign of `alphabet`."""
    previous, following = before(text, start), text[end : end + 1]
    if previous == "_" and not glued_before(text, start):
        previous, following = "", following.strip("_")  # marks of emphasis
    return not any(char and ((char.isascii() and char.isalnum()) or char in alphabet) for char in (previous, following))


def _set_off(text: str, start: int, end: int) -> bool:
    """Say whether neither neighbour could be one more character of an id. A slash could not: ids stand in paths."""
    previous, following = before(text, start), text[end : end + 1]
    return not any(char in _OF_IDS for char in (previous, following) if char)


def _goes_on(text: str, end: int) -> bool:
    """Say whether one more character of a key follows."""
    following = text[end : end + 1]
    return following.isascii() and (following.isalnum() or following in tuple("_-"))


_NAME_CHARS = 24


def _behind_name(text: str, start: int) -> bool:
    """Say whether letters and underscores stand right before `start` that are no part of a longer code."""
    at = start
    while at and start - at <= _NAME_CHARS and (text[at - 1] == "_" or text[at - 1].isalpha()):
        at -= 1
    return 0 < start - at <= _NAME_CHARS and not (at and (text[at - 1].isdigit() or text[at - 1] in "+/-"))


def refine_aws(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an access key id by its prefix, a secret key after a word such as `aws_secret_access_key`."""
    candidate = text[start:end]
    plain = without_marks(candidate).replace("_", "")
    if len(plain) == 20:
        # The form alone tells an id: it may stand right behind a name (`secret_AKIA...`), and in front of one.
        return whole_if(_set_off(text, start, end) and not is_stand_in(plain[4:-7]), start, end)
    if not _alone(text, start, end, "/+") or not is_random(candidate, bits=4.0):
        return ()
    if not (any(char.islower() for char in candidate) and any(char.isupper() for char in candidate)):
        return ()  # forty hex digits are a commit
    context = _squeezed(text, start)
    named = any(word in context for word in ("awssecret", "secretaccesskey", "secretkey", "awskey"))
    return whole_if(named or ("aws" in context and "secret" in context), start, end)


def skip_aws(text: str, start: int, end: int) -> int:
    """Return where the next candidate may begin: inside a run of its characters only an id with a prefix does."""
    found = (text.find(head, start + 1, end) for head in _ID_HEADS)
    return min((at for at in found if at >= 0), default=end - len(_ID_HEADS[0]) + 1)


def refine_gcp(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an API key or OAuth secret by its prefix, a key's id after `private_key_id`."""
    candidate = text[start:end]
    if candidate.startswith(("AIza", "GOCSPX-", "ya29.")):
        marked = candidate[4] in "*~`_" and text[end : end + 1] == candidate[4]
        set_off = marked or _alone(text, start, end, "_-") or (_behind_name(text, start) and not _goes_on(text, end))
        return whole_if(set_off and is_random(candidate[6:], bits=3.3, need_digit=False), start, end)
    return whole_if(_alone(text, start, end, "") and _squeezed(text, start).endswith("privatekeyid"), start, end)


def refine_azure(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a client secret by its mark, an account key or a signature after the words that name it."""
    candidate = text[start:end]
    context = left_of(text, start)
    if "Q~" in candidate[:8]:
        return whole_if(_alone(text, start, end, "_~.-") and entropy_bits(candidate) >= 3.5, start, end)
    if not _alone(text, start, end, "+/") or not is_random(candidate.rstrip("="), bits=3.8):
        return ()
    if context.endswith(("sig=", "sig%3d")):
        return ((start, end),)
    squeezed = _squeezed(text, start)
    named = any(word in squeezed for word in ("accountkey", "sharedaccesskey", "storagekey", "accesskey", "azure"))
    return whole_if(
        named and candidate.endswith("=") and not squeezed.endswith(("sha256", "sha384", "sha512")), start, end
    )


def skip_azure(text: str, start: int, end: int) -> int:
    """Return where the next candidate may begin: behind a sign, for no letter or digit may touch it."""
    if "Q~" in text[start : start + 8]:
        return start + 1
    signs = (text.find(sign, start, end - 1) + 1 for sign in "%+/")
    return min((at for at in signs if at), default=end)


_SIGNS = r"[^\pL\pN]*"
"""Between the letters of a name that is compared without signs."""
AWS_ACCESS_KEY = Entity(
    name="AWS_ACCESS_KEY",
    regex=rf"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9]){MARKS}[A-Z0-9]{{16}}|[A-Za-z0-9/+]{{40}}",
    refine=refine_aws,
    skip=skip_aws,
    group="secret",
)
GCP_KEY = Entity(
    name="GCP_KEY",
    regex=(
        r"AIza(?:[*~`_]{1,4}[0-9A-Za-z][0-9A-Za-z_\-]{34}|[0-9A-Za-z_\-]{35})|GOCSPX-[0-9A-Za-z_\-]{24,32}"
        r"|ya29\.[0-9A-Za-z_\-]{20,}|\b[0-9a-f]{40}"
    ),
    refine=refine_gcp,
    group="secret",
    max_chars=1024,
)
AZURE_KEY = Entity(
    name="AZURE_KEY",
    regex=r"[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}|[A-Za-z0-9+/%]{43,100}={0,2}",
    refine=refine_azure,
    skip=skip_azure,
    lead=rf"[A-Za-z0-9_~.\-]{{4}}Q~|(?i:sig(?:=|%3d)|k{_SIGNS}e{_SIGNS}y|a{_SIGNS}z{_SIGNS}u{_SIGNS}r{_SIGNS}e)",
    group="secret",
)

ENTITIES = (AWS_ACCESS_KEY, GCP_KEY, AZURE_KEY)
