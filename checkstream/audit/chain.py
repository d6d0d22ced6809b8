r"""The audit chain's format: what a record is, how it is hashed, linked and signed for. Pure: values in, values out.

The format, version 1
=====================

A *chain* is one process's sequence of records. It is written as segments `<chain>-<n>.jsonl` (n from
000001), one record a line. A record is a JSON object with exactly these members:

=========  =====================================================================================
`body`     what happened, an object; its members depend on `kind`
`chain`    the chain's name
`hash`     `link(prev, record)`, 64 lower-case hex digits
`kind`     `start stream pass reload rotate repair stop act`
`prev`     `hash` of the record before it; 64 zeros for the first record of a chain
`process`  which process wrote it (a chain outlives a restart)
`seq`      1, 2, 3, ... without a gap, over all segments of the chain
`time`     wall clock, `YYYY-MM-DDTHH:MM:SS.mmmZ`; never used for order
`v`        1
=========  =====================================================================================

Canonical bytes. A JSON value has one spelling: members sorted by code point, no white space, UTF-8
without escapes except `\" \\ \b \f \n \r \t` and `\u00xx` (lower-case hex) for the other control
characters, whole numbers between -(2^53 - 1) and 2^53 - 1 in plain decimal. There are no other numbers: a
fraction is a string with six decimals (`"0.930000"`). A lone surrogate is written as U+FFFD. A line is the
canonical bytes of its record and one LF, so that any changed byte is either no canonical record or
another hash.

Hashes are SHA-256 with one byte in front that separates their domains:

- record = `SHA-256(0x00 || canonical(record without "hash" and "prev"))`
- link   = `SHA-256(0x01 || prev, 32 bytes || record, 32 bytes)`
- a head is signed over `0x02 || canonical(head without "sig")`

A *head* states how far a chain had come: `{chain, hash, key, seq, sig, time, v}`, one a line in
`<chain>.heads`, where `key` names the public key (first 16 hex digits of the SHA-256 of its 32 raw bytes)
and `sig` is an Ed25519 signature (RFC 8032), 128 hex digits. It is written after the records that it
covers are on disk. What is cut off below a head shows; so does a chain written anew. Heads only help
against someone who can write to the log if they are kept elsewhere too (a directory of their own, or shipped).

A segment's last record is `rotate`, whose `body.next` names the next segment; the next segment's first
record links to it. A torn last line (a crash in the middle of a write) is moved to a `.torn` file
at the next start and a `repair` record says how many bytes that were.

Worked example, the first record of chain `c1` (wrapped here, one line in the file)::

    {"body":{"reason":"SIGTERM"},"chain":"c1",
     "hash":"05eee19c6e6123ed30118f68feef7259f92a165c63f6f05adfc7dd23552be795",
     "kind":"stop","prev":"0000000000000000000000000000000000000000000000000000000000000000",
     "process":"p1","seq":1,"time":"2026-01-02T03:04:05.678Z","v":1}

    record = SHA-256(00 || {"body":{"reason":"SIGTERM"},"chain":"c1","kind":"stop","process":"p1","seq":1,
                            "time":"2026-01-02T03:04:05.678Z","v":1})
    hash   = SHA-256(01 || 32 zero bytes || record)

Source: domain separation as in RFC 6962 2.1; canonical form a subset of RFC 8785 (JCS) without its floats.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
from collections.abc import Mapping, Sequence

import msgspec
import orjson

from checkstream.audit.entries import AnyEntry, StreamEntry
from checkstream.errors import AuditError

VERSION = 1
GENESIS = "0" * 64
"""The `prev` of a chain's first record."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Longest record, its LF not counted. Lists of a stream's findings and verdicts are shortened to keep to it."""
MAX_ITEMS = 10_000
"""Findings, verdicts and spans of one verdict that a record keeps; the rest is counted in `omitted`."""
_MAX_WHOLE = 2**53 - 1

Json = str | int | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""A value that canonical bytes exist for: JSON without fractions."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record as it stands in a segment."""

    body: dict[str, object]
    chain: str
    hash: str
    kind: str
    prev: str
    process: str
    seq: int
    time: str
    v: int


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a chain had come, signed."""

    chain: str
    hash: str
    key: str
    seq: int
    sig: str = ""
    time: str
    v: int = VERSION


class Sealed(msgspec.Struct, frozen=True):
    """A record ready to be written."""

    seq: int
    hash: str
    line: bytes
    """Canonical bytes and one LF."""


class Reason(enum.StrEnum):
    """What is wrong with a chain."""

    UNREADABLE = "not a canonical record"
    TOO_LONG = "line longer than a record can be"
    UNKNOWN_KIND = "unknown kind"
    OTHER_CHAIN = "record of another chain"
    HASH = "hash mismatch"
    LINK = "broken link"
    MISSING = "missing seq"
    SWAPPED = "swapped"
    REPEATED = "repeated seq"
    TRUNCATED = "truncated"
    NO_SEGMENT = "missing segment"
    NO_ROTATE = "segment ends without rotate"
    HEAD_UNREADABLE = "unreadable head"
    HEAD_SIGNATURE = "head signature wrong"
    HEAD_HASH = "record differs from its signed head"
    HEAD_ORDER = "heads out of order"
    CUT = "tail cut below a signed head"
    NO_HEAD = "no signed head"


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that is wrong with a chain."""

    reason: Reason
    seq: int
    """The record's own number; the expected number when it can't be read."""
    detail: str


def plain(value: object) -> Json:
    """Return a value in the form that canonical bytes exist for.

    Fractions become strings with six decimals, lone surrogates U+FFFD, tuples lists.

    Raises:
        AuditError: a number that is not finite or has no exact JSON form, or a type that JSON doesn't know.
    """
    if type(value) is str and value.isascii():  # as most are
        return value
    match value:
        case None | bool():
            return value
        case dict() | Mapping():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case str():
            return "".join(map(_scalar, value))
        case int():
            if abs(value) > _MAX_WHOLE:
                raise AuditError(f"`{value}` is too large for an audit record; whole numbers go up to 2^53 - 1")
            return value
        case float():
            if not math.isfinite(value):
                raise AuditError(f"`{value}` can't stand in an audit record; numbers must be finite")
            return f"{value:.6f}"
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            raise AuditError(f"`{type(value).__name__}` can't stand in an audit record; give it a JSON form")


def _scalar(character: str) -> str:
    return "\ufffd" if "\ud800" <= character <= "\udfff" else character


def canonical(value: Json) -> bytes:
    """Return the one spelling of a plain value (see the module's text)."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)  # in UTF-8 the order of bytes is that of code points
    except orjson.JSONEncodeError:  # what a line that was read may hold, and no record: it is told by its reader
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def link(prev: str, members: Mapping[str, Json]) -> str:
    """Return the hash of a record, hex.

    Args:
        prev: `hash` of the record before it, 64 hex digits.
        members: the record without `hash` and `prev`.
    """
    return linked(prev, record_digest(members))


def record_digest(members: Mapping[str, Json]) -> str:
    """Return the digest of a record's content, hex: it tells that the content has stayed the same, and nothing of it.

    Args:
        members: the record without `hash` and `prev`.
    """
    return hashlib.sha256(b"\x00" + canonical(members)).hexdigest()


def linked(prev: str, digest: str) -> str:
    """Return the hash of a record of which only the digest is known, hex.

    Args:
        prev: `hash` of the record before it, 64 hex digits.
        digest: as `record_digest` gives it.
    """
    return hashlib.sha256(b"\x01" + bytes.fromhex(prev) + bytes.fromhex(digest)).hexdigest()


def seal(entry: AnyEntry, *, chain: str, seq: int, prev: str, process: str, time: str) -> Sealed:
    """Return an entry as the next record of a chain.

    Raises:
        AuditError: the entry holds what has no canonical form, or is too long even when shortened.
    """
    kept = MAX_ITEMS
    while True:
        body = _body(entry, kept)
        members: dict[str, Json] = {
            "body": body,
            "chain": chain,
            "kind": entry.__struct_config__.tag,
            "process": process,
            "seq": seq,
            "time": time,
            "v": VERSION,
        }
        digest = link(prev, members)
        line = canonical({**members, "hash": digest, "prev": prev})
        if len(line) <= MAX_LINE_BYTES:
            return Sealed(seq, digest, line + b"\n")
        if not isinstance(entry, StreamEntry) or kept == 0:
            raise AuditError(f"a record of {len(line)} bytes is too long; {MAX_LINE_BYTES} is the most")
        kept //= 8


def _body(entry: AnyEntry, kept: int) -> Json:
    """Return an entry's members, the lists of a stream's findings, verdicts and spans cut to `kept` items each."""
    members = msgspec.to_builtins(entry)
    del members["kind"]
    if isinstance(entry, StreamEntry):
        record = members["record"]
        omitted = {name: max(len(record[name]) - kept, 0) for name in ("findings", "verdicts")}
        for name in omitted:
            record[name] = record[name][:kept]
        spans = 0
        for verdict in record["verdicts"]:
            spans += max(len(verdict["spans"]) - kept, 0)
            verdict["spans"] = verdict["spans"][:kept]
        if any(omitted.values()) or spans:
            members["omitted"] = {**omitted, "spans": spans}
    return plain(members)


def read(line: bytes) -> Record:
    """Return the record in a line (without its LF).

    Raises:
        AuditError: the line is not the canonical bytes of a record of this version.
    """
    value = _parse(line)
    try:
        record = msgspec.convert(value, Record)
    except (ValueError, RecursionError) as error:
        raise AuditError(f"not a record: {error}") from None
    if record.v != VERSION:
        raise AuditError(f"format version `{record.v}` is not known; verify with a newer checkstream")
    if not (_is_hash(record.hash) and _is_hash(record.prev)):
        raise AuditError("`hash` and `prev` must be 64 lower-case hex digits")
    return record


def record_hash(record: Record) -> str:
    """Return the hash that a record must have, from its own `prev` and members."""
    members = msgspec.structs.asdict(record)
    del members["hash"], members["prev"]
    return link(record.prev, members)


def own_hash(record: Record) -> str:
    """Return the hash of a record by itself, hex: what its own hash links to the one before it."""
    members = msgspec.structs.asdict(record)
    del members["hash"], members["prev"]
    return record_digest(members)


def head_message(head: Head) -> bytes:
    """Return the bytes that a head's signature is over."""
    members = msgspec.structs.asdict(head)
    del members["sig"]
    return b"\x02" + canonical(members)


def write_head(head: Head) -> bytes:
    """Return a signed head as a line."""
    return canonical(msgspec.structs.asdict(head)) + b"\n"


def read_head(line: bytes) -> Head:
    """Return the head in a line (without its LF).

    Raises:
        AuditError: the line is not the canonical bytes of a head of this version.
    """
    value = _parse(line)
    try:
        head = msgspec.convert(value, Head)
    except (ValueError, RecursionError) as error:
        raise AuditError(f"not a head: {error}") from None
    if head.v != VERSION or not _is_hash(head.hash) or len(head.sig) != 128 or not _is_hex(head.sig):
        raise AuditError("not a head of this version")
    return head


def _parse(line: bytes) -> object:
    """Return the JSON value of a canonical line.

    Raises:
        AuditError: not JSON, or JSON spelled in another way.
    """
    if len(line) > MAX_LINE_BYTES:
        raise AuditError(f"longer than {MAX_LINE_BYTES} bytes")
    try:
        value: Json = json.loads(line.decode(), parse_float=_refuse, parse_constant=_refuse)
        spelling = canonical(value)
    except (ValueError, RecursionError) as error:
        raise AuditError(f"not JSON without fractions: {error}") from None
    if spelling != line:
        raise AuditError("JSON that is not spelled canonically")
    return value


def _refuse(text: str) -> object:
    raise ValueError(f"`{text}` is not a whole number")


def _is_hash(text: str) -> bool:
    return len(text) == len(GENESIS) and _is_hex(text)


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)


RECORD_OPENING = b'{"body":{'
HEAD_OPENING = b'{"chain":"'


def is_torn(unfinished: bytes, opening: bytes) -> bool:
    """Return whether a line without LF may be a record or head that was cut while it was written.

    A whole one whose LF is missing may; a whole one with anything after it may not (its LF was changed).

    Args:
        unfinished: the last line of a file.
        opening: how every whole one begins, `RECORD_OPENING` or `HEAD_OPENING`.
    """
    if unfinished[: len(opening)] != opening[: len(unfinished)]:
        return False
    text = unfinished.decode("utf-8", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return True
    return end == len(text)
