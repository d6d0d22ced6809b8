"""Answers that come whole, and errors of the upstream, go through the same guard as streams."""

from __future__ import annotations

import json
from typing import Any

from checkstream.core.match.lane import Lane
from tests.guarded import CHAT, DONE, MAIL, STOP, ends, finishes, plan, request, says, stream, text_of, whole
from tests.playbook import play


def test_g01_a_whole_answer_goes_through_the_same_guard() -> None:
    for text, expected in (("hi a@b.io.", "hi [EMAIL]."), ("It has zero risk!", "It has Halt.")):
        streamed = stream(MAIL + STOP, [says(text), ends(), DONE])
        out = play(CHAT, plan(MAIL + STOP), request(stream=False), [whole(text)], streaming=False)
        assert out.reply is not None
        choice = json.loads(out.reply.body)["choices"][0]
        assert choice["message"]["content"] == expected == text_of(streamed)
        assert choice["finish_reason"] == finishes(streamed)[0]
        assert out.reply.action == ("stop" if "risk" in text else "redact")


def test_a_clean_whole_answer_is_the_upstreams_bytes() -> None:
    body = whole("good day")
    assert (r := play(CHAT, plan(MAIL), request(stream=False), [body[:9], body[9:]], streaming=False).reply)
    assert (r.status, r.body, r.action) == (200, body, "allow")


def test_a_stop_in_tool_arguments_of_a_whole_answer_says_so_too() -> None:
    calls = [{"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"a": "zero risk"}'}}]
    out = play(CHAT, plan(STOP), request(stream=False), [whole(None, tool_calls=calls)], streaming=False)
    assert out.reply is not None
    choice = json.loads(out.reply.body)["choices"][0]
    assert choice["finish_reason"] == "content_filter"
    assert "zero risk" not in json.dumps(choice)
    assert choice["message"]["content"] == "Halt."


def test_upstream_errors_pass_with_their_status() -> None:
    body = b'{"error": {"message": "slow down", "type": "rate_limit"}}'
    out = play(CHAT, plan(MAIL), request(), [body], streaming=False, status=429)
    assert out.reply is not None
    assert (out.reply.status, out.reply.body) == (429, body)
    assert out.record is not None
    assert out.record.outcome == "upstream_failed"


def test_an_error_status_is_no_way_around_the_guard() -> None:
    out = play(CHAT, plan(MAIL), request(), [whole("mail a@b.io.")], streaming=False, status=500)
    assert out.reply is not None
    assert out.reply.status == 500
    assert b"a@b.io" not in out.reply.body
    page = b"<html>mail a@b.io</html>"
    closed = play(CHAT, plan(MAIL), request(), [page], streaming=False, status=503).reply
    assert closed is not None
    assert closed.status == 503
    assert json.loads(closed.body)["error"]["type"] == "upstream_error"
    opened = play(CHAT, plan(MAIL, fail_mode="open"), request(), [page], streaming=False, status=503)
    assert opened.reply is not None
    assert opened.reply.body == page
    assert opened.record is not None
    assert "midstream:body" in opened.record.unscanned


def test_nobody_asks_what_of_a_short_whole_text_could_still_become_a_match(monkeypatch: Any) -> None:
    asked = list[str]()
    first_live = Lane._first_live

    def noted(lane: Lane, end: int, table: Any) -> int:
        asked.append(lane.text)
        return first_live(lane, end, table)

    monkeypatch.setattr(Lane, "_first_live", noted)
    long = "All of it is calm, and much of it is said. " * 5
    for text, expected in ((long, long), (f"{long}Write to a@b.io.", f"{long}Write to [EMAIL].")):
        assert (r := play(CHAT, plan(MAIL), request(stream=False), [whole(text)], streaming=False).reply)
        assert json.loads(r.body)["choices"][0]["message"]["content"] == expected
    assert not asked
