from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.checks import HoldSettings
from checkstream.core.commands import Score
from checkstream.core.events import EntityFound, RequestReceived, Scored, UpstreamBytes
from checkstream.core.transcript import Header, Line, Transcript, decode, digest_of, encode
from checkstream.errors import WireError

HEADER = b'{"surface": "openai.chat"}\n'
SPAN = (
    b'{"at": 1, "event": {"type": "Scored", "ticket": 1, "scores": {}, '
    b'"entities": [{"entity": "PERSON", "start": %s, "end": %s, "score": 1}]}}'
)


def test_what_was_written_is_read_back() -> None:
    header = Header(
        surface="openai.chat",
        fail_mode="open",
        hold=HoldSettings(tokens=5, by_language={"fi": 9}),
        route="chat",
        policies=("a@1.0.0",),
        masked=True,
        fired={"R-1": 2},
    )
    lines = (
        Line(at=0.0, event=RequestReceived(b"\xff\x00", "app", "{}", ("R-1",))),
        Line(at=0.25, event=UpstreamBytes(b"data")),
        Line(at=0.5, event=Scored(1, {"toy.alpha": 0.5}), asked="d"),
        Line(at=0.75, event=Scored(2, {}, (EntityFound("PERSON", 0, 4, 0.9), EntityFound("PERSON", 9, 12, 0.5)))),
    )
    transcript = Transcript(header=header, lines=lines)
    assert decode(encode(transcript)) == transcript


def test_a_header_may_say_no_more_than_its_surface_and_lines_may_be_empty() -> None:
    assert decode(HEADER + b"\n\r\n").header == Header(surface="openai.chat")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "line 1 is no header"),
        (b"\n\n", "line 1 is no header"),
        (b"{}", "line 1"),
        (b"[]\n", "line 1"),
        (b'{"surface": "openai.chat", "fail_mode": "ajar"}', "line 1"),
        (b'{"surface": "openai.chat", "hold": {"tokens": "x"}}', "line 1"),
        (HEADER + b'{"at": 1}', "line 2"),
        (HEADER + b'{"at": "1", "event": {"type": "UpstreamClosed"}}', "line 2"),
        (HEADER + b'{"at": 1e999, "event": {"type": "UpstreamClosed"}}', "line 2"),
        (HEADER + b'{"at": NaN, "event": {"type": "UpstreamClosed"}}', "line 2"),
        (HEADER + b'{"at": 1, "event": {"type": "Nothing"}}', "line 2"),
        (HEADER + b'{"at": 1, "event": {"type": "Scored", "ticket": 1.5, "scores": {}}}', "line 2"),
        (HEADER + b'{"at": 1, "event": {"type": "Scored", "ticket": 1, "scores": {"a": true}}}', "line 2"),
        (HEADER + b'{"at": 1, "event": {"type": "Scored", "ticket": 1, "scores": {}, "entities": [{}]}}', "line 2"),
        (HEADER + SPAN % (b"3", b"3"), "line 2"),
        (HEADER + SPAN % (b"-1", b"3"), "line 2"),
        (HEADER + b'{"at": 1, "event": {"type": "UpstreamBytes", "data": "@@@"}}', "line 2"),
        (HEADER + b'{"at": 1, "event": {"type": "UpstreamOpened", "status": 1' + b"0" * 5000 + b"}}", "line 2"),
        (HEADER + b"\n\n\xff", "line 4"),
        (HEADER + b'{"at": 1, "event": {"type": "Upstr', "line 2 is not of a transcript"),
        (HEADER + b'{"at": ' + b"[" * 100_000, "line 2"),
    ],
)
def test_what_is_no_transcript_says_in_which_line(data: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said) as caught:
        decode(data)
    assert len(str(caught.value)) < 400


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, headed: bool) -> None:
    try:
        decode(HEADER + data if headed else data)
    except WireError as error:
        assert "line" in str(error)  # noqa: PT017 - either outcome is right


def test_a_check_is_known_by_its_text_and_classifiers_and_by_nothing_else() -> None:
    score = Score(1, ("a", "b"), "text", 50.0)
    assert digest_of(score) == digest_of(Score(9, ("b", "a"), "text", 10.0, ingress=True))
    assert digest_of(score) != digest_of(Score(1, ("a",), "text", 50.0))
    assert digest_of(score) != digest_of(Score(1, ("a", "b"), "text ", 50.0))
    assert digest_of(Score(1, ("a",), "b\0c", 1.0)) != digest_of(Score(1, ("a", "b"), "c", 1.0))
