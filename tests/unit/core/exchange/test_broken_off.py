"""Streams that end, as HTTP says they should, before the answer is over: never a silent end."""

from __future__ import annotations

import json

import pytest

from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.guarded import MAIL, plan
from tests.guarded import request as chat
from tests.playbook import Played, play

_LINE = b'{"model":"m","created_at":"x","message":{"role":"assistant","content":"%s"},"done":false}\n'
_WHOLE = responses.answer(responses.message("Hello you.")).split(b"\n\n")
STREAMS: dict[str, tuple[bytes, list[bytes]]] = {
    "openai.responses": (responses.request(), [event + b"\n\n" for event in _WHOLE[:-2]]),
    "openai.responses.stored": (b"", [event + b"\n\n" for event in _WHOLE[:-2]]),
    "anthropic.messages": (messages.request(), [messages.head(), *messages.text(0, "Hello ", "you.")]),
    "ollama.chat": (chat(), [_LINE % b"Hello ", _LINE % b"you."]),
}


def run(surface: str, count: int) -> Played:
    asked, pieces = STREAMS[surface]
    return play(SURFACES[surface], plan(MAIL), asked, pieces[:count])


@pytest.mark.parametrize("surface", STREAMS)
def test_g20_a_stream_without_its_last_word_ends_with_an_error(surface: str) -> None:
    pieces = STREAMS[surface][1]
    for count in range(len(pieces) + 1):
        out = run(surface, count)
        sent = b"".join(pieces[:count])
        assert out.joined.startswith(sent)
        last = json.loads(out.joined[len(sent) :].split(b"data: ")[-1])
        assert "before the answer was over" in json.dumps(last["error"])
        assert out.record is not None
        assert (out.record.outcome, out.record.upstream_failure) == ("upstream_failed", "no_end")


def test_g20_a_stream_that_has_told_its_failure_tells_no_other() -> None:
    failed = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    out = play(SURFACES["anthropic.messages"], plan(MAIL), messages.request(), [messages.head(), failed])
    assert out.joined.endswith(failed)
    assert out.record is not None
    assert out.record.upstream_failure == "error_event"
