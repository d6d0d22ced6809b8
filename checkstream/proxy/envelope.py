"""What a guarded request says outside its body, and what of that goes on (G31).

A body goes to the upstream when rules have read it. So does what stands around it: only listed headers and parameters
are sent, and what they say is read like the body, with the parts of the path that the route leaves open. Nothing else
goes on: nobody needs it there, and nobody has looked at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from checkstream.core.events import Envelope, Said
from checkstream.core.wire.places import open_parts
from checkstream.core.wire.requests.prompt import is_model
from checkstream.errors import RequestInvalid
from checkstream.proxy.headers import AUTH, named_by_connection

LISTED: Final = AUTH | frozenset({
    "openai-organization", "openai-project", "openai-beta", "anthropic-version", "anthropic-beta",
    "x-goog-user-project", "extra-parameters", "azureml-model-deployment", "http-referer", "x-title",
    "idempotency-key", "x-idempotency-key", "x-request-id", "x-client-request-id", "x-ms-client-request-id",
    "x-correlation-id", "traceparent", "tracestate",
})  # fmt: skip
"""What model servers act on: accounts, versions of their APIs, what OpenRouter calls an application; and the names
under which a request is found again, or isn't done twice."""
LISTED_BEGIN: Final = ("mcp-",)
PARAMETERS: Final = frozenset({"api-version", "beta", "key"})
"""Of Azure, of Anthropic's SDK, and Google's key."""
OWN_HEADERS: Final = {"user-agent": "checkstream", "accept": "application/json, text/event-stream"}
"""Of a caller they say which program it is, and which answers that reads. Ours reads all that the guard does."""
_KEY: Final = "key"
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


class Listed(msgspec.Struct, frozen=True):
    """What an upstream gets besides what all of them do; names in lower case."""

    headers: tuple[str, ...] = ()
    """Names, or beginnings of names followed by `*`."""
    parameters: frozenset[str] = frozenset()
    keyed: bool = False
    """It has a key of its own: callers' keys stay behind."""


def around(pattern: str, path: str, query: str, headers: Iterable[tuple[str, str]], more: Listed) -> Around:
    """Return what goes on of what stands around a request's body.

    Args:
        pattern: The route's.
        path: As the caller wrote it.
        query: The same, without `?`.
        headers: The caller's.
        more: What this upstream gets besides.

    Raises:
        RequestInvalid: a parameter that goes on stands there twice, so that two readers could take two values.
    """
    said: list[Said] = []
    for name, text in open_parts(pattern, path):
        if name != "model" or not is_model(text):
            said.append(Said("path", name, text))
    given, strange = _parameters(query, PARAMETERS | more.parameters)
    if more.keyed:
        given.pop(_KEY, None)
    said += (Said("query", name, text) for name, text in given.items() if not _is_said_by_form("query", name, text))
    kept = _headers(headers, more)
    said += (Said("header", name, text) for name, text in kept.items() if not _is_said_by_form("header", name, text))
    target = f"{path}?{urlencode(given)}" if given else path
    return Around(target, tuple({**OWN_HEADERS, **kept}.items()), Envelope(tuple(said), strange))


def _parameters(query: str, listed: frozenset[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the parameters that go on, and the names of those that don't."""
    given: dict[str, str] = {}
    strange: dict[str, None] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in listed:
            strange[name] = None
        elif name in given:
            raise RequestInvalid(f"`{name}` stands in the query twice; send it once")
        else:
            given[name] = text
    return given, tuple(strange)


def _headers(given: Iterable[tuple[str, str]], more: Listed) -> dict[str, str]:
    """Return the headers that go on, each once, in lower case."""
    pairs = list(given)
    listed = (LISTED | frozenset(more.headers)) - named_by_connection(pairs)
    begin = (*LISTED_BEGIN, *(name[:-1] for name in more.headers if name.endswith("*")))
    found: dict[str, str] = {}
    for name, text in pairs:
        lower = name.lower()
        if not (lower in listed or lower.startswith(begin)) or not _is_plain(text):
            continue
        most = _MOST_OF_A_KEY if lower in AUTH else _MOST_CHARS
        joined = f"{found[lower]}, {text}" if lower in found else text  # RFC 9110 5.3
        if len(joined) <= most:
            found[lower] = joined
    return found


def _is_plain(text: str) -> bool:
    """Tell whether a header's value is text that all servers read alike."""
    return text.isprintable() and text.isascii()


def _is_said_by_form(place: str, name: str, text: str) -> bool:
    """Tell whether all that a value says is its form: a key, a day, a yes or no."""
    if text in {"true", "false"} or _is_day(text):
        return True
    return _is_key(text) if (name == _KEY if place == "query" else name in AUTH) else False


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
