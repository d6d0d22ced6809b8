"""A transcript: one exchange as a file of JSON lines, to be run again under any policy on any machine.

The first line is a header, each other line an event and its time::

    {"surface": "openai.chat"}
    {"at": 0.0, "event": {"type": "RequestReceived", "body": "<base64>"}}

A line that answers a check may say what was asked (`asked`, a digest of it), since another policy numbers its checks
in another way. A transcript comes from outside: what can't be read says where.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from checkstream.core.channel.checks import HoldSettings
from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent
from checkstream.errors import WireError

MAX_BYTES = 268_435_456
"""A longer file is no transcript: what one exchange may bring is far below."""
_MAX_REASON_CHARS = 200


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a transcript: how the exchange ran, and (if recorded) what came of it."""

    surface: str
    """Name of the API, such as `openai.chat`."""
    fail_mode: Literal["open", "closed"] = "closed"
    parts: Literal["pass", "refuse"] = "pass"
    unknown_fields: Literal["scan", "refuse"] = "scan"
    known_fields: tuple[str, ...] = ()
    hold: HoldSettings = HoldSettings()
    route: str = ""
    recorded: str = ""
    """When it began, UTC."""
    stream: str = ""
    policies: tuple[str, ...] = ()
    """`name@version` of each pack in force."""
    masked: bool = False
    """Personal data and secrets were replaced by specimens of their kind."""
    lost: tuple[str, ...] = ()
    """Entities that were found before masking and are not any more, where a specimen does not fit its surroundings."""
    action: str = ""
    """The strictest action that was carried out."""
    outcome: str = ""
    fired: dict[str, int] = {}
    """Rule that was enforced -> how often."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened, and when."""

    at: float
    """Seconds from the run's start."""
    event: AnyEvent
    asked: str | None = None
    """Of an answer to a check: digest of what was asked."""

    def __post_init__(self) -> None:
        """Times are finite."""
        if not math.isfinite(self.at):
            raise ValueError("`at` is not a finite number")


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A whole recording."""

    header: Header
    lines: tuple[Line, ...]


def digest_of(score: Score) -> str:
    """Return what stands for a check in a transcript: the same for the same text and classifiers."""
    asked = f"{','.join(sorted(score.classifiers))}\0{score.text}"
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()


def encode(transcript: Transcript) -> bytes:
    """Return a transcript as JSON lines."""
    return b"".join(_encoded(transcript))


def _encoded(transcript: Transcript) -> Iterator[bytes]:
    rows: Iterable[Header | Line] = (transcript.header, *transcript.lines)
    for row in rows:
        yield msgspec.json.encode(row)
        yield b"\n"


def decode(data: bytes) -> Transcript:
    """Read a transcript.

    Raises:
        WireError: it is not one; says in which line, and why.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"the file has more than {MAX_BYTES} bytes; it is no transcript")
    header: Header | None = None
    lines: list[Line] = []
    for number, text in enumerate(data.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            if header is None:
                header = _HEADER.decode(text)
            else:
                lines.append(_LINE.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:_MAX_REASON_CHARS]
            raise WireError(f"line {number} is not of a transcript: {reason}; check whether it was cut off") from error
    if header is None:
        raise WireError('line 1 is no header; write `{"surface": "openai.chat"}`')
    return Transcript(header=header, lines=tuple(lines))


_HEADER = msgspec.json.Decoder(Header)
_LINE = msgspec.json.Decoder(Line)
