"""Which headers go on, both ways, and what a body is said to be.

Towards the caller only what stands in a list leaves (G36). Towards the model server all goes on but what belongs to one
connection, says who or where the caller is, or changes what the body means; of a guarded request, when rules have read
it (`envelope`). What a body is, is always said by the proxy: it has read it as JSON in UTF-8, and nobody is to read it
otherwise (G31).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Final

import msgspec
from aiohttp import hdrs
from multidict import CIMultiDict

from checkstream.core.match.engine import compile_regex
from checkstream.errors import MediaRefused

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"

HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade", "http2-settings", "proxy-status",
})  # fmt: skip
"""Source: RFC 9110 7.6.1, RFC 2616 13.5.1, RFC 7540 3.2.1."""
_OF_THE_BODY = frozenset({
    "content-length", "content-encoding", "content-type", "content-range", "content-md5", "content-digest",
    "repr-digest", "digest", "content-location", "content-disposition", "content-transfer-encoding", "mime-version",
    "accept-encoding", "accept-charset", "expect", "range", "if-range", "if-match", "if-none-match",
    "if-modified-since", "if-unmodified-since", "max-forwards",
})  # fmt: skip
"""They speak of the body as the caller sent it, or ask for a part of the answer; the proxy reads both whole."""
_OF_THE_CALLER = frozenset({
    "host", "cookie", "cookie2", "origin", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip",
    "cf-connecting-ip", "x-original-url", "x-original-uri", "x-rewrite-url", "x-http-method", "x-http-method-override",
    "x-method-override", "front-end-https", "upgrade-insecure-requests", "dnt",
})  # fmt: skip
"""Who asks, from where, and what is asked: a server behind the proxy believes what stands there."""
_STAYING = HOP_BY_HOP | _OF_THE_BODY | _OF_THE_CALLER
_OF_THE_CALLER_BEGIN = ("x-forwarded-", "sec-", "access-control-", "proxy-", "x-checkstream-")
AUTH = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""With a caller's key for the model server: its gate reads it and no model does, and rules would take it for a leak."""

RETURNED = frozenset({
    "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id", "apim-request-id",
    "x-ms-client-request-id", "x-ms-region", "cf-ray", "anthropic-organization-id", "x-envoy-upstream-service-time",
    "traceresponse", "mcp-session-id", "mcp-protocol-version",
})  # fmt: skip
"""Of the answer to a guarded request: when to try again, and the names under which support finds it."""
RETURNED_BEGIN = ("x-ratelimit-", "anthropic-ratelimit-", "openai-")
PASSED = frozenset({
    "content-disposition", "content-language", "content-range", "accept-ranges", "etag", "last-modified", "vary",
    "cache-control", "expires", "age",
})  # fmt: skip
"""Of the answer to an unguarded one besides: what files are downloaded with."""
_OF_IDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-")
_OF_SESSIONS, _TO_PLAIN = _OF_IDS | {"=", "~"}, str.maketrans("=~", "--")
_MOST_OF_AN_ID, _MOST_OF_A_REGION = 128, 40
_MOST_DIGITS, _MOST_PLACES = 13, 9
"""Of a number, which may be a moment in milliseconds, and of a second's fraction; a card has more."""
_MOST_WINDOWS = _MOST_WORDS = 4
_OF_DURATIONS = frozenset("numshd")
_DURATION = frozenset("0123456789.") | _OF_DURATIONS
_OURS_BEGIN = ("x-checkstream-", "access-control-")
_MOST_OF_A_VALUE = 256
_BY_CHANCE = compile_regex(
    r"\A(?:(?:req[_-])?[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16}-[A-Z]{3}|[a-z]{1,7}|[0-9]{1,8})\z"
)
"""Ids that most servers give: a UUID, with a mark before it or none, and those of networks."""
_NO_CHANCE = compile_regex(r"[0-9-]{12}|(?:[2-6][0-9a-f]|7[0-9a-e]){8}")
"""As many figures as numbers have that rules look for; octets that are text."""
_APART = "\n|\n"
_CHARSETS = frozenset({"utf-8", "utf8"})
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""Of a body: the HTTP library undoes them, or says that it can't."""
_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")


def may_go_on(name: str) -> bool:
    """Tell whether a header of a caller speaks of anything but its connection, its body or itself."""
    known_as = _canonical(name)
    return known_as not in _STAYING and not known_as.startswith(_OF_THE_CALLER_BEGIN)


def request_headers(
    given: Iterable[tuple[str, str]], *, replaced: Mapping[str, str], key_header: str | None, content_type: str | None
) -> CIMultiDict[str]:
    """Return the headers that the upstream gets.

    Args:
        given: The caller's.
        replaced: The upstream's own, in place of the caller's of the same name.
        key_header: The header in which the caller's key for the proxy came; it goes no further.
        content_type: What the body is; None: nothing is said.
    """
    headers: CIMultiDict[str] = CIMultiDict()
    pairs = list(given)
    own = {_canonical(name) for name in replaced}
    dropped = named_by_connection(pairs) | own
    if own & AUTH:
        dropped |= AUTH
    if key_header is not None:
        dropped |= {_canonical(key_header)}
    for name, value in pairs:
        known_as = _canonical(name)
        if known_as not in dropped and may_go_on(name):
            headers.add(name, value)
    if content_type is not None:
        headers[hdrs.CONTENT_TYPE] = content_type
    headers.update(replaced)
    headers[hdrs.ACCEPT_ENCODING] = "identity"  # the guard reads plain bytes
    return headers


def response_headers(
    given: Iterable[tuple[str, str]], *, names: Iterable[str] = (), passed: bool = False
) -> CIMultiDict[str]:
    """Return the upstream's headers that the caller gets.

    Args:
        given: The upstream's.
        names: What the operator adds to the list: names, or beginnings of names followed by `*`.
        passed: The answer goes out unguarded.
    """
    pairs = list(given)
    more = [name.lower() for name in names]
    listed = RETURNED | {name for name in more if not name.endswith("*")} | (PASSED if passed else frozenset())
    begin = (*RETURNED_BEGIN, *(name[:-1] for name in more if name.endswith("*")))
    kept_back = HOP_BY_HOP | (_OF_THE_BODY - PASSED) | named_by_connection(pairs)
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in pairs:
        lower = name.lower()
        fits = len(value) <= _MOST_OF_A_VALUE and value.isascii() and value.isprintable()
        ours = lower in kept_back or lower.startswith(_OURS_BEGIN)
        if (lower in listed or lower.startswith(begin)) and not ours and fits and _has_form(lower, value):
            headers.add(name, value)
    return headers


def condemned(headers: Iterable[tuple[str, str]], holds: Callable[[str], bool]) -> set[str]:
    """Return the names of an answer's headers in whose values a rule would find something.

    Args:
        headers: Those that the caller may get.
        holds: Tells whether a rule would find something in a text.
    """
    read = {name: value for name, value in headers if not _says_nothing(name.lower(), value)}
    if not read or not holds(_APART.join(read.values())):
        return set()
    return {name for name, value in read.items() if holds(value)}


def _says_nothing(name: str, value: str) -> bool:
    """Tell whether a header's form leaves no room for a value: a number, a moment, or chance in few hex digits.

    A session's id goes back where it came from alone.
    """
    if name in _FORMS or name.startswith(_LIMITS_BEGIN):
        return True
    return _BY_CHANCE.match(value) is not None and _NO_CHANCE.search(value) is None


def _is_id(value: str) -> bool:
    """Tell whether a value is the name of something: one without letters is a number or a day, no card and no SSN."""
    if len(value) > _MOST_OF_AN_ID or not _OF_IDS.issuperset(value):
        return False
    return any(map(str.isalpha, value)) or _is_count(value) or _is_day(value)


def _is_day(value: str) -> bool:
    try:
        return len(value) == len("2020-10-01") and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _is_number(value: str) -> bool:
    whole, _, part = value.removeprefix("-").partition(".")
    return _is_count(whole) and (not part or _is_count(part))


def _is_count(value: str) -> bool:
    return value.isdecimal() and len(value) <= _MOST_DIGITS


def _is_time(value: str) -> bool:
    return _is_number(value) or _is_date(value)


def _is_date(value: str) -> bool:
    """Tell whether a value is a moment, as RFC 9110 5.6.7 or RFC 3339 has it."""
    runs = "".join(sign if sign.isdigit() else " " for sign in value).split()
    if any(len(run) > _MOST_PLACES for run in runs):
        return False  # `fromisoformat` takes fractions of any length
    try:
        datetime.strptime(value, "%a, %d %b %Y %H:%M:%S GMT")  # noqa: DTZ007, only its form counts
    except ValueError:
        try:
            return "T" in value and bool(datetime.fromisoformat(value))
        except ValueError:
            return False
    return True


def _is_limit(value: str) -> bool:
    """Tell whether a value is a number, a moment, a duration (`1m30.951s`), or a limit with windows (`9, 9;w=60`)."""
    first, *windows = value.split(",")
    counts = [count for window in windows for count in window.strip(" ").split(";w=", 1)]
    if len(windows) <= _MOST_WINDOWS and len(counts) == 2 * len(windows) and all(map(_is_count, counts)):
        digits = sum(map(str.isdigit, first))
        lasts = first[:1].isdigit() and digits <= _MOST_DIGITS and first[-1:] in _OF_DURATIONS
        return _is_time(first) or (lasts and _DURATION.issuperset(first))
    return _is_date(value)


def _is_region(value: str) -> bool:
    """Tell whether a value is the name of a region: `East US 2`, `westeurope`."""
    words = value.replace("-", " ").split(" ")
    few = len(value) <= _MOST_OF_A_REGION and len(words) <= _MOST_WORDS and sum(map(str.isdigit, value)) <= len(words)
    return few and all(map(str.isalnum, words))


def _is_session(value: str) -> bool:
    """Tell whether a value is the id of a session: a token of any maker, which only goes back where it came from."""
    return _OF_SESSIONS.issuperset(value) and _is_id(value[:_MOST_OF_AN_ID].translate(_TO_PLAIN))


_FORMS: Mapping[str, Callable[[str], bool]] = {
    "mcp-session-id": _is_session,
    "retry-after": _is_time,
    "retry-after-ms": _is_number,
    "x-envoy-upstream-service-time": _is_number,
    "openai-processing-ms": _is_number,
    "x-should-retry": frozenset({"true", "false"}).__contains__,
    "x-ms-region": _is_region,
}
"""What the listed headers may say: no rule reads their values, so that what has not the form of one is left out."""
_LIMITS_BEGIN = ("x-ratelimit-", "anthropic-ratelimit-")


def _has_form(name: str, value: str) -> bool:
    """Tell whether a header says what one of its name says; of those that an operator lists only the operator knows."""
    if name in RETURNED or name.startswith(RETURNED_BEGIN):
        general = _is_limit if name.startswith(_LIMITS_BEGIN) else _is_id
        return bool(value) and _FORMS.get(name, general)(value)
    return True


def _canonical(name: str) -> str:
    """Return a name as servers know it that can't tell `_` from `-`: those that hand headers on as variables (CGI)."""
    return name.lower().replace("_", "-")


def named_by_connection(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Return the headers that `Connection` says are for this hop only."""
    return {
        _canonical(token.strip())
        for name, value in pairs
        if _canonical(name) == "connection"
        for token in value.split(",")
    }


class Media(msgspec.Struct, frozen=True):
    """What a body is said to be."""

    kind: str
    """Such as `application/json`, in lower case."""
    boundary: str | None = None
    """Between the parts of a body of many."""

    def __str__(self) -> str:
        """Return it as a header's value; text of any kind is UTF-8."""
        return self.kind if self.boundary is None else f'{self.kind}; boundary="{self.boundary}"'


def media_of_request(types: Iterable[str], encodings: Iterable[str]) -> Media | None:
    """Return what a request's body is said to be; None when nothing is said.

    Args:
        types: Every `Content-Type`.
        encodings: Every `Content-Encoding`.

    Raises:
        MediaRefused: two readers could take the body for two things: it has no charset but UTF-8, and one type.
    """
    coded = [value.strip().lower() for value in encodings]
    if len(coded) > 1 or not _ENCODINGS.issuperset(coded):
        raise MediaRefused("the body has an encoding that can't be read; send it plain, or with gzip or deflate")
    said = list(types)
    if not said:
        return None
    media = read_media(said[0]) if len(said) == 1 else None
    if media is None:
        raise MediaRefused(
            "`Content-Type` can't be read; send one, such as `application/json`, with no charset but UTF-8"
        )
    return media


def read_media(text: str) -> Media | None:
    """Read a content type as RFC 9110 8.3 has it; None for what is none, or has another charset than UTF-8."""
    kind, *rest = text.split(";")
    main, slash, sub = kind.strip(" \t").partition("/")
    if not slash or not main or not sub or not _TOKEN.issuperset(main + sub):
        return None
    seen: dict[str, str] = {}
    for each in rest:
        name, equals, value = each.strip(" \t").partition("=")
        if not name and not equals:
            continue  # a lone `;`, which many write
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        name = name.lower()
        if not name or not equals or name in seen or not _TOKEN.issuperset(name) or not _is_plain(value):
            return None
        seen[name] = value
    if seen.get("charset", "utf-8").lower() not in _CHARSETS or any(name.startswith("charset*") for name in seen):
        return None
    return Media(f"{main}/{sub}".lower(), seen.get("boundary"))


def _is_plain(value: str) -> bool:
    return bool(value) and value.isascii() and value.isprintable() and not set(value) & set('"\\;')
