"""What clients read from a stream: real ones, the standard word for word, and what people write in ten lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import httpx2
from openai._streaming import SSEDecoder

ONE_FORM = re.compile(
    rb"(?:: keep-alive\n|(?:event: [a-z_.]+\n)?"
    rb"data: (?:[^\n\r\x0b\x0c\x1c-\x1e\xc2\xe2]|\xc2(?!\x85)|\xe2(?!\x80[\xa8\xa9]))*\n\n)*"
)
"""All that a stream that leaves the proxy may be, byte for byte."""
_JS_SPACE = "\ufeff \t\r\n\x0b\x0c\xa0\u2028\u2029"


def standard(sent: bytes) -> list[str]:
    """WHATWG HTML 9.2.6, word for word and slowly."""
    text = sent.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    out: list[str] = []
    data = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        name, _, value = line.partition(":")
        if not line:
            if data:
                out.append(data.removesuffix("\n"))
            data = ""
        elif name == "data":
            data += value.removeprefix(" ") + "\n"
    return out


def _response(sent: bytes) -> httpx2.Response:
    asked = httpx2.Request("POST", "http://localhost")
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=sent, request=asked)


def openai_sdk(sent: bytes) -> list[str]:
    return [event.data for event in SSEDecoder().iter_bytes(iter([sent]))]


def event_source(sent: bytes) -> list[str]:
    return [event.data for event in httpx2.EventSource(_response(sent))]


def iter_lines(sent: bytes) -> list[str]:
    """The usual loop over `iter_lines`: a line that begins with `data: ` is an event."""
    return [line[6:] for line in _response(sent).iter_lines() if line.startswith("data: ")]


def javascript(sent: bytes) -> list[str]:
    """Lines split as a regex with `\\R` or Unicode's rules would, each trimmed as JavaScript's `trim` does."""
    lines = (line.strip(_JS_SPACE) for line in sent.decode("utf-8", "replace").splitlines())
    return [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]


def blank_lines(sent: bytes) -> list[str]:
    """Split at blank lines, then everything behind the first `data: `."""
    blocks = sent.decode("utf-8", "replace").split("\n\n")
    return [block.partition("data: ")[2] for block in blocks if "data: " in block]


CLIENTS: Mapping[str, Callable[[bytes], list[str]]] = {
    client.__name__: client for client in (standard, openai_sdk, event_source, iter_lines, javascript, blank_lines)
}
