"""Secrets by their form (JWT, PEM, connection strings) and by the name that they are assigned to."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Sequence

import msgspec

from checkstream.core.match.entities.assigned import AUTHORIZATION, GENERIC_SECRET
from checkstream.core.match.entities.entity import GAP, Entity, SpanPair, before, glued_before, whole_if
from checkstream.core.match.entities.network import is_stand_in_password
from checkstream.core.match.entities.randomness import char_classes

_JWT_CAP = 8192
_PEM_CAP = 8192
_LINE_CHARS = 24
"""Fewest characters of base64 that are taken for a line of a key."""
_NO_BASE64 = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "+/=")}
_CONNECTION_CAP = 1024


class _JoseHeader(msgspec.Struct):
    """What every JOSE header has. Source: RFC 7515, 4.1.1."""

    alg: str


def has_jose_header(part: str) -> bool:
    """Say whether `part` is base64url of a JSON object with `alg`. Source: RFC 7519, 5 and RFC 7515, 2."""
    try:
        header = urlsafe_b64decode(part + "=" * (-len(part) % 4))
        return bool(msgspec.json.decode(header, type=_JoseHeader).alg)
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        return False


def refine_jwt(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a compact JWS or JWE whose header names its algorithm."""
    previous = before(text, start)
    if previous == "-" or glued_before(text, start):
        return ()
    candidate = text[start:end].rstrip(".")
    return whole_if(has_jose_header(candidate.partition(".")[0]), start, start + len(candidate))


def refine_private_key(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a PEM or PGP private key, whole or cut off; a bare mention of its first line is none."""
    candidate = text[start:end]
    if candidate[0] != "-":
        return _bare_key(text, start, end)
    folded = candidate.upper()
    tail = folded.index("KEY", folded.index("PRIVATE")) + len("KEY")
    mark = _end_line(folded, tail)
    body = candidate[tail:] if mark < 0 else candidate[tail:mark]
    # Lines of a key are long runs of base64; the words of a sentence are not, and paths mix no digits in.
    runs = [run for run in body.translate(_NO_BASE64).split() if len(run) >= _LINE_CHARS]
    if not any(char_classes(run) >= 3 for run in runs):
        return ()
    if mark >= 0:
        return ((start, end),)
    return ((start, start + tail + body.rfind(runs[-1]) + len(runs[-1])),)


def _end_line(folded: str, tail: int) -> int:
    """Return where the last line of a key says that it ends; -1 when it is not there."""
    mark = folded.rfind("END", tail)
    return mark if mark >= 0 and "PRIVATE" in folded[mark:] else -1


def _bare_key(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept the body of a key without its first line: what its first octets say is the beginning of a private key."""
    previous = before(text, start)
    if previous.isascii() and (previous.isalnum() or previous in tuple("+/-_=")):
        return ()
    runs = [run for run in text[start:end].translate(_NO_BASE64).split() if len(run) >= _LINE_CHARS]
    return whole_if(bool(runs) and char_classes(runs[0]) >= 3, start, end)


def refine_connection(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a connection string that carries a password."""
    if glued_before(text, start):
        return ()
    candidate = text[start:end]
    if "://" in candidate:
        stop = len(candidate.rstrip(".,;:!?)]}"))
        authority = candidate[:stop].partition("://")[2]
        password = authority.rpartition("@")[0].partition(":")[2] if "@" in authority else ""
        return whole_if(bool(password) and not is_stand_in_password(password), start, start + stop)
    for field in candidate.split(";"):
        name, _, value = field.partition("=")
        secret = name.strip().casefold() in ("password", "pwd", "accountkey", "sharedaccesskey", "sharedsecret")
        if secret and value.strip() and not is_stand_in_password(value.strip()):
            return ((start, end),)
    return ()


JWT = Entity(
    name="JWT",
    regex=r"ey[IJ][A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{2,}\.[A-Za-z0-9_\-]*(?:\.[A-Za-z0-9_\-]{2,}){0,2}",
    refine=refine_jwt,
    group="secret",
    max_chars=_JWT_CAP,
)
_SPACE = f"{GAP}{{1,3}}"
_TITLE = f"{_SPACE}(?:[A-Z0-9]{{2,12}}{_SPACE}){{0,3}}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?"
# SEQUENCE { INTEGER 0 or 1, ... with a length of two octets, one, or none: PKCS #1 and #8 (RFC 8017, A.1.2; RFC 5958,
# 2) and SEC 1 (RFC 5915, 3). No certificate, public key or request begins so. Then the mark of OpenSSH's own form.
_BARE = (
    "(?:MII[A-Za-z0-9+/]{2}[AQgw]IBA|MI[E-H][A-Za-z0-9+/]AgE[AB]|M[A-H][A-Za-z0-9+/]CAQ[AE]|b3BlbnNzaC1rZXktdjE)"
    "[A-Za-z0-9+/=]{32,}"
)
PRIVATE_KEY = Entity(
    name="PRIVATE_KEY",
    # Between the lines there may be whatever quotes, numbers, joins or escapes them, but no more than so.
    regex=(
        rf"(?:-{{4,5}} ?(?i:BEGIN{_TITLE}) ?-{{4,5}}"
        rf"(?:[ -~\t\r\n]{{0,64}}[A-Za-z0-9+/=]{{{_LINE_CHARS},}})*"
        rf"(?:[ -~\t\r\n]{{0,96}}-{{4,5}} ?(?i:END{_TITLE}) ?-{{4,5}})?"
        rf"|{_BARE}(?:[ -~\t\r\n]{{0,16}}[A-Za-z0-9+/=]{{{_LINE_CHARS},}})*)"
    ),
    refine=refine_private_key,
    group="secret",
    max_chars=_PEM_CAP,
)
CONNECTION_STRING = Entity(
    name="CONNECTION_STRING",
    regex=(
        r"(?i)(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse|cockroachdb|oracle|"
        r"snowflake|cassandra|neo4j|bolt|kafka|mqtts?|ldaps?|nats|couchbase|trino|presto|db2|influxdb)"
        r"(?:\+[a-z0-9]{2,15})?://[!#-&(-;=?-_a-~]{4,}"
        r"|(?:server|data source|host|endpoint|addr|address|uid|user id|initial catalog|database|driver|"
        r"defaultendpointsprotocol|accountname|provider) ?= ?[ !#-&(-:<>-~]+"
        r"(?:; ?[a-z_ ]+=[ !#-&(-:<-~]*)+;?"
    ),
    refine=refine_connection,
    group="secret",
    max_chars=_CONNECTION_CAP,
)

ENTITIES = (JWT, PRIVATE_KEY, AUTHORIZATION, CONNECTION_STRING, GENERIC_SECRET)
