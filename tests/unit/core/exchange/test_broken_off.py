"""Streams that end, as HTTP says they should, before the answer is over: never a silent end."""

from __future__ import annotations

import json

import pytest

from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.guarded import DONE, MAIL, ends, event, plan, says
from tests.guarded import request as chat
from tests.playbook import Played, play

_LINE = b'{"model":"m","created_at":"x","message":{"role":"assistant","content":"%s"},"done":false}\n'
_WHOLE = responses.answer(responses.message("Hello you.")).split(b"\n\n")
_ASKED = b'{"model":"m","prompt":"hi","stream":true}'
_PIECE = b'data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"%s","finish_reason":null}]}\n\n'
STREAMS: dict[str, tuple[bytes, list[bytes]]] = {
    "openai.responses": (responses.request(), [event + b"\n\n" for event in _WHOLE[:-2]]),
    "openai.responses.stored": (b"", [event + b"\n\n" for event in _WHOLE[:-2]]),
    "anthropic.messages": (messages.request(), [messages.head(), *messages.text(0, "Hello ", "you.")]),
    "ollama.chat": (chat(), [_LINE % b"Hello ", _LINE % b"you."]),
    "openai.chat": (chat(), [event((0, {"role": "assistant"}, None)), says("Hello "), says("you.")]),
    "openai.completions": (_ASKED, [_PIECE % b"Hello ", _PIECE % b"you."]),
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


@pytest.mark.parametrize("said", [[ends()], [DONE], [ends(), event(usage={"total_tokens": 3})], [ends(), DONE]])
def test_g20_a_stream_that_says_in_one_of_two_ways_that_it_is_over_is_whole(said: list[bytes]) -> None:
    out = play(SURFACES["openai.chat"], plan(MAIL), chat(), [says("Hello "), says("you."), *said])
    assert out.record is not None
    assert (out.record.outcome, out.record.upstream_failure) == ("complete", None)
    assert b"error" not in out.joined


def test_g20_of_several_choices_each_has_to_end() -> None:
    pieces = [says("Hello. "), says("Good day. ", 1), ends()]
    for more, outcome in (([], "upstream_failed"), ([ends(1)], "complete"), ([DONE], "complete")):
        out = play(SURFACES["openai.chat"], plan(MAIL), chat(n=2), [*pieces, *more])
        assert out.record is not None
        assert out.record.outcome == outcome


def test_g20_a_stream_that_has_told_its_failure_tells_no_other() -> None:
    failed = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    out = play(SURFACES["anthropic.messages"], plan(MAIL), messages.request(), [messages.head(), failed])
    assert out.joined.endswith(failed)
    assert out.record is not None
    assert out.record.upstream_failure == "error_event"
