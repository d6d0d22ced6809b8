"""Exchanges as a recorder sees them, for tests: a request, an answer in pieces, what a masker makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.transcript import Header, Line, Transcript
from checkstream.core.wire import sse
from checkstream.core.wire.surfaces import SURFACES
from checkstream.proxy.masking import Masker

CHAT = SURFACES["openai.chat"]
MASKER = Masker()
DONE = b"data: [DONE]\n\n"


def request(*messages: Any, **fields: Any) -> RequestReceived:
    """Return a request; a text is a user's message."""
    listed = [message if isinstance(message, dict) else {"role": "user", "content": message} for message in messages]
    return RequestReceived(
        json.dumps({"model": "m", "messages": listed or [{"role": "user", "content": "Hi"}], **fields}).encode()
    )


def delta(fields: Mapping[str, Any], **choice: Any) -> bytes:
    """Return an event of a stream."""
    body = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return sse.encode(
        json.dumps({**body, "choices": [{"index": 0, "delta": fields, "finish_reason": None, **choice}]}).encode()
    )


def say(texts: Iterable[str]) -> bytes:
    """Return a stream that says these texts, and its end."""
    return b"".join(delta({"content": text}) for text in texts) + delta({}, finish_reason="stop") + DONE


def whole(text: str, **fields: Any) -> bytes:
    """Return an answer that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **fields}
    ).encode()


def streamed(data: bytes, *, step: int = 0) -> list[AnyEvent]:
    """Return the events of a streamed answer, read in one piece or `step` bytes at a time."""
    pieces = [data[at : at + step] for at in range(0, len(data), step)] if step else [data]
    return [UpstreamOpened(200, streaming=True), *map(UpstreamBytes, pieces), UpstreamClosed()]


def recording(events: Sequence[AnyEvent], **header: Any) -> Transcript:
    """Return a transcript as it ran."""
    lines = tuple(Line(at=place / 100, event=event) for place, event in enumerate(events))
    return Transcript(header=Header(surface="openai.chat", **header), lines=lines)


def masked(*events: AnyEvent, asked: Mapping[int, Score] | None = None) -> Transcript:
    """Return what is kept of an exchange."""
    return MASKER.mask(CHAT, recording(events), asked or {})


def body_of(transcript: Transcript) -> dict[str, Any]:
    """Return the request that was kept."""
    found: dict[str, Any] = next(
        json.loads(line.event.body) for line in transcript.lines if isinstance(line.event, RequestReceived)
    )
    return found


def data_of(transcript: Transcript) -> bytes:
    """Return the upstream's bytes that were kept."""
    return b"".join(line.event.data for line in transcript.lines if isinstance(line.event, UpstreamBytes))


def answer_of(transcript: Transcript, kind: str = "content") -> str:
    """Return the text of one channel of the streamed answer that was kept."""
    decoder = sse.Decoder()
    frames = [*decoder.decode(data_of(transcript)), *decoder.flush()]
    deltas = [delta for frame in frames for delta in CHAT.read_event(frame).deltas]
    return "".join(delta.text for delta in deltas if delta.channel.kind == kind)
