"""Reads whole messages, a caller's and a server's, and writes them with texts edited: all else stays byte for byte."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import dropping
from checkstream.core.wire.json_text import splices
from checkstream.core.wire.json_text.objects import reading_object
from checkstream.core.wire.json_text.spans import Path, Splice
from checkstream.core.wire.json_text.splices import changed
from checkstream.core.wire.json_text.strict import shown
from checkstream.core.wire.mcp import fields
from checkstream.core.wire.mcp.agreeing import agreeing
from checkstream.core.wire.mcp.heads import Head, head_of, one_message, tool_of
from checkstream.core.wire.mcp.reading import Reader
from checkstream.core.wire.requests.edits import request_places, request_splices
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import reading_body, unless_refused
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import RequestInvalid, WireError

_VALUE = ("result", "structuredContent")
_OWN = "checkstream"
"""Under `_meta`: what was done to a result."""
_MANY_TEXTS = 1024
_LEAST_SAID = 10**8
"""A number of a message of fewer figures is a count of messages."""


def reading_callers(body: bytes) -> Generator[None, None, Request]:
    """Read a caller's message, in steps.

    Raises:
        RequestInvalid: it is no message of JSON-RPC, or a batch, or readers could take it for two things.
    """
    one_message(body)
    found = yield from reading_body(body)
    prompt = Prompt()
    return (yield from unless_refused(found, prompt, _reading_callers(body, found, prompt)))


def _reading_callers(body: bytes, found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
    head = head_of(found)
    tool = tool_of(found)
    prompt.strange = yield from prompt.names("", found, fields.HEAD)
    reader = Reader(prompt, "assistant" if head.method in fields.BY_MODEL else "user")
    known = fields.OF_CALLERS.get(head.method)
    if head.method and known is None:
        prompt.unknown["method"] = None
        yield from reader.part(head.method, ("method",))
    params = found.get("params")
    if isinstance(params, dict) and known is not None:
        yield from prompt.names("params.", params, known)
    yield from _bodies(reader, found)
    return (yield from _request(body, found, prompt, head, tool))


def reading_servers(body: bytes) -> Generator[None, None, Request]:
    """Read a server's message, in steps.

    Raises:
        WireError: it is no message of JSON-RPC, or readers could take it for two things.
    """
    try:
        one_message(body)
        found = yield from reading_object(body)
    except RequestInvalid as error:
        raise WireError(f"{str(error).partition(';')[0]}; check the upstream") from error
    prompt = Prompt()
    return (yield from unless_refused(found, prompt, _reading_servers(body, found, prompt)))


def _reading_servers(body: bytes, found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
    try:
        head = head_of(found)
        prompt.strange = yield from prompt.names("", found, fields.HEAD)
        if head.kind == "result" and isinstance(found["result"], dict):
            yield from prompt.names("result.", found["result"], fields.KNOWN)
    except RequestInvalid as error:
        raise WireError(f"{str(error).partition(';')[0]}; check the upstream") from error
    reader = Reader(prompt, "tool_result")
    if head.method:
        yield from reader.part(head.method, ("method",))
    yield from _bodies(reader, found)
    return (yield from _request(body, found, prompt, head, None))


def reading_other(body: bytes) -> Generator[None, None, Request]:
    """Read what a server says with an error status and is no message: JSON of any form, such as an OAuth error.

    Raises:
        WireError: it is no JSON object.
    """
    found = yield from reading_object(body)
    prompt = Prompt()
    return (yield from unless_refused(found, prompt, _reading_other(body, found, prompt)))


def _reading_other(body: bytes, found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
    yield from Reader(prompt, "tool_result").anything(found)
    return (yield from _request(body, found, prompt, Head("error"), None))


def reading_errors(body: bytes) -> Generator[None, None, Request]:
    """Read, in steps, what a server says with an error status: a message, or JSON of any form.

    Raises:
        WireError: it is no JSON object.
    """
    try:
        return (yield from reading_servers(body))
    except WireError:
        return (yield from reading_other(body))


def _bodies(reader: Reader, found: Mapping[str, object]) -> Generator[None, None, None]:
    """Read all of a message but its frame."""
    number = found.get("id")
    if isinstance(number, str) or (isinstance(number, int) and abs(number) >= _LEAST_SAID):
        yield from reader.part(number, ("id",))
    for name, value in found.items():
        if name in ("jsonrpc", "id", "method"):
            continue
        if name in ("params", "result", "error") and isinstance(value, dict):
            yield from reader.result(value, (name,))
        else:
            yield from reader.member(value, (name,))


def _request(
    body: bytes, found: dict[str, object], prompt: Prompt, head: Head, tool: str | None
) -> Generator[None, None, Request]:
    """Return, in steps, the request that was read: it may have tens of thousands of texts."""
    yield
    yield from prompt.settling()
    made = prompt.request(body, found, model=head.method)
    if len(made.unit.deltas) > _MANY_TEXTS:
        yield
    return made if tool is None else msgspec.structs.replace(made, tools=(tool,))


def writing(request: Request, texts: Mapping[int, str], shaping: Shaping | None = None) -> Generator[None, None, bytes]:
    """Return, in steps, a message with texts replaced, and without the entries that are taken out.

    Raises:
        WireError: an edit would change what the message belongs to or asks for, or its JSON can't be edited.
    """
    removed = () if shaping is None else shaping.removed
    if shaping is not None and msgspec.structs.replace(shaping, removed=()) != Shaping():
        raise WireError("a message has nothing that a policy could shape; leave such actions out on routes of `mcp`")
    edited = changed(request.unit, texts)
    yield
    places = {request.unit.deltas[i].path[:2] for i in edited}
    if wrong := next((at[0] for at in places if at[0] in ("id", "method")), None):
        raise WireError(f"the `{shown(str(wrong))}` of a message can't be edited")
    if not removed and not places:
        return request.unit.raw
    yield
    document = yield from request_places(request)
    edits = yield from request_splices(document, request, texts, frozenset())
    doomed: dict[Path, set[str | int]] = {}
    for path, _ in removed:
        if not is_entry(path):
            raise WireError("only entries of lists are taken out of a message")
        doomed.setdefault(path[:-1], set()).add(path[-1])
    for path, names in doomed.items():
        edits += document.cut(path, frozenset(names))
    data = yield from document.applying(edits)
    yield from dropping(edits)
    return (yield from agreeing(request.members, data)) if _VALUE in places else data


def marking(data: bytes, told: msgspec.Raw) -> Generator[None, None, bytes]:
    """Return, in steps, a message whose result says under `_meta` what was done to it.

    Raises:
        WireError: its JSON has two members of one name there.
    """
    document = yield from splices.places(data, {("result",), ("result", "_meta")})
    own = bytes(told).decode()
    there = document.span(("result", "_meta", _OWN))
    meta = document.span(("result", "_meta"))
    if there is not None:
        splice = Splice(*there, own)
    elif meta is not None and document.text[meta[0]] == "{":
        comma = "," if document.entries(("result", "_meta")) else ""
        splice = Splice(meta[0] + 1, meta[0] + 1, f'"{_OWN}":{own}{comma}')
    else:
        result = document.span(("result",))
        if result is None or meta is not None:
            return data
        comma = "," if document.entries(("result",)) else ""
        splice = Splice(result[0] + 1, result[0] + 1, f'"_meta":{{"{_OWN}":{own}}}{comma}')
    return (yield from document.applying([splice]))


def is_entry(path: Path) -> bool:
    """Tell whether something stands in a list of what a server has, so that it can be taken out alone."""
    return len(path) >= 3 and path[0] == "result" and path[1] in fields.ENTRIES and isinstance(path[2], int)


def part_of(path: Path) -> Path:
    """Return the part of a message that a text belongs to: an entry, or all of what it says."""
    return path[:3] if is_entry(path) else path[:1]
