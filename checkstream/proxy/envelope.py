"""What a guarded request says outside its body, and what of that goes on (G31).

A body goes to the upstream when rules have read it. So does what stands around it: headers, parameters of the query and
the parts of the path that the route leaves open are read like the body. Where a route refuses what it does not know,
only listed headers and parameters go on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from checkstream.core.events import Envelope, Said
from checkstream.core.wire.places import open_parts
from checkstream.core.wire.requests.prompt import is_model
from checkstream.errors import RequestInvalid
from checkstream.proxy.headers import AUTH, may_go_on, named_by_connection

KNOWN: Final = AUTH | frozenset({
    "openai-organization", "openai-project", "openai-beta", "anthropic-version", "anthropic-beta",
    "x-goog-user-project", "extra-parameters", "azureml-model-deployment", "http-referer", "x-title",
    "idempotency-key", "x-idempotency-key", "x-request-id", "x-client-request-id", "x-ms-client-request-id",
    "x-correlation-id", "traceparent", "tracestate", "last-event-id",
})  # fmt: skip
"""What model servers act on: accounts, versions of their APIs, what OpenRouter calls an application; and the names
under which a request is found again, or isn't done twice."""
_KNOWN_BEGIN: Final = ("mcp-",)
"""Session, version and names of messages (MCP)."""
PARAMETERS: Final = frozenset({"api-version", "beta", "key"})
"""Of Azure, of Anthropic's SDK, and Google's key."""
_OWN: Final = {"user-agent": "checkstream", "accept": "application/json, text/event-stream"}
"""Of a caller they say which program it is, and which answers that reads. Ours reads all that the guard does."""
_OF_THE_PROGRAM: Final = "x-stainless-"
"""How these begin that many SDKs send: which program the caller is, in ten headers of every request."""
_KEY: Final = "key"
_BETWEEN: Final = ", "
"""Between what one header says in several lines (RFC 9110 5.3)."""
_MOST_CHARS, _MOST_OF_A_KEY = 1024, 16_384
_OF_KEYS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=:|!$%&*")
"""RFC 7235 2.1, with what servers put into theirs besides."""
_SCHEMES = frozenset({"bearer", "basic", "token", "key", "apikey"})


class Around(msgspec.Struct, frozen=True):
    """What stands around the body of one request as it is sent."""

    target: str
    """Path and query."""
    headers: tuple[tuple[str, str], ...]
    envelope: Envelope
    """What of it rules are to read."""


def around(
    pattern: str,
    path: str,
    query: str,
    headers: Iterable[tuple[str, str]],
    *,
    keyed: bool = False,
    strict: bool = False,
    refused: Collection[str] = (),
) -> Around:
    """Return what goes on of what stands around a request's body.

    Args:
        pattern: The route's.
        path: As the caller wrote it.
        query: The same, without `?`.
        headers: The caller's.
        keyed: The upstream has a key of its own: callers' keys stay behind.
        strict: Only what is known goes on.
        refused: Parameters by which a caller could get an answer in pieces.

    Raises:
        RequestInvalid: a parameter that servers act on stands there twice, so that two readers could take two values;
            or it asks for a piece of an answer.
    """
    said: list[Said] = []
    for name, text in open_parts(pattern, path):
        if name != "model" or not is_model(text):
            said.append(Said("path", name, text))
    given, strange = _parameters(query, keyed=keyed, strict=strict)
    for name, _ in parse_qsl(query, keep_blank_values=True):
        if name in refused:
            why = "which can't be read without what stands before it; leave it out, and read it from its beginning"
            raise RequestInvalid(f"`{name}` asks for a piece of an answer, {why}")
    said += (Said("query", name, text) for name, text in given if not _is_said_by_form("query", name, text))
    said += (Said("query", name, name, is_name=True) for name, _ in given if name not in PARAMETERS)
    kept, behind = _headers(headers, strict=strict)
    said += (
        Said("header", name, text)
        for name, texts in kept.items()
        for text in texts
        if not _is_said_by_form("header", name, text)
    )
    said += (Said("header", name, name, is_name=True) for name in kept if not _is_known(name))
    target = f"{path}?{urlencode(given)}" if given else path
    sent = {**_OWN, **{name: _BETWEEN.join(texts) for name, texts in kept.items()}}
    return Around(target, tuple(sent.items()), Envelope(tuple(said), strange, behind))


def _parameters(query: str, *, keyed: bool, strict: bool) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Return the parameters that go on, and the names of those that the route would have to know."""
    given: list[tuple[str, str]] = []
    seen: set[str] = set()
    strange: dict[str, None] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name in PARAMETERS and name in seen:
            raise RequestInvalid(f"`{name}` stands in the query twice; send it once")
        seen.add(name)
        if strict and name not in PARAMETERS:
            strange[name] = None
        elif name != _KEY or not keyed:
            given.append((name, text))
    return given, tuple(strange)


def _headers(given: Iterable[tuple[str, str]], *, strict: bool) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Return the headers that go on, in lower case, each with all that it says; and those that can't be read.

    Who sends one twice sends one value in two parts: it is read as such.
    """
    pairs = list(given)
    of_one_hop = named_by_connection(pairs)
    found: dict[str, list[str]] = {}
    behind: dict[str, None] = {}
    for name, text in pairs:
        lower = name.lower()
        if (strict and not _is_known(lower)) or lower in _OWN or lower.startswith(_OF_THE_PROGRAM):
            continue
        if lower in of_one_hop or not may_go_on(lower):
            continue
        most = _MOST_OF_A_KEY if _holds_key(lower) else _MOST_CHARS
        known = found.get(lower, [])
        chars = sum(map(len, known)) + len(_BETWEEN) * len(known) + len(text)
        if _is_plain(text) and chars <= most:
            found[lower] = [*known, text]
        else:
            behind[lower] = None
    return found, tuple(behind)


def _is_known(name: str) -> bool:
    return name in KNOWN or name.startswith(_KNOWN_BEGIN)


def _is_plain(text: str) -> bool:
    """Tell whether a header's value is text that all servers read alike."""
    return text.isprintable() and text.isascii()


def _is_said_by_form(place: str, name: str, text: str) -> bool:
    """Tell whether all that a value says is its form: a key, a day, a yes or no."""
    if text in {"true", "false"} or _is_day(text):
        return True
    return _is_key(text) if (name == _KEY if place == "query" else _holds_key(name)) else False


def _holds_key(name: str) -> bool:
    """Tell whether a header is for a key: of the server, or of a gateway before it (`cf-aig-authorization`)."""
    return name in AUTH or name.endswith(("-authorization", "-auth", "-api-key"))


def _is_day(text: str) -> bool:
    try:
        return len(text) == len("2020-10-01") and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_key(text: str) -> bool:
    """Tell whether a text is a key, with the name of a scheme before it or none; one of figures alone is a number."""
    scheme, space, key = text.partition(" ")
    if space and scheme.lower() not in _SCHEMES:
        return False
    key = key if space else text
    return _OF_KEYS.issuperset(key) and any(map(str.isalpha, key))
