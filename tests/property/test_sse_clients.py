"""Every client reads the events that were scanned, and no others, whatever the upstream wrote (G36)."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.sse import Decoder
from tests.chance import examples
from tests.guarded import DONE, MAIL, ends, says, stream
from tests.sse_clients import CLIENTS, ONE_FORM, standard

FOREIGN = [b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xef\xbb\xbf"]
ENDS = [b"\n", b"\r", b"\r\n"]
SECRET = "john@example.com"
EVIL = json.dumps({"choices": [{"index": 0, "delta": {"content": SECRET}}]}, separators=(",", ":")).encode()
PIECES = [*FOREIGN, *ENDS, b"\n\n", b"\r\r", b"\xff", b"\xc2", b"\xe2\x80", b" ", b":", b"\\", b'"', b"data", b"data:"]
PIECES += [b"data: ", b"data: x\n\n", b"event: error\n", b"event: thread.x\n", b"id: 1", b"retry: 9", b": c", EVIL]
TYPES = frozenset({"error"})

streams = st.lists(st.sampled_from(PIECES), max_size=24).map(b"".join) | st.binary(max_size=60)


def as_clients_trim(events: list[str]) -> list[str]:
    return [event.strip("\ufeff \t\r\n\x0b\x0c\xa0\u2028\u2029") for event in events]


@settings(max_examples=examples(250), deadline=None)
@given(streams)
def test_g36_every_client_reads_the_frames_that_were_scanned(upstream: bytes) -> None:
    decoder = Decoder(events=TYPES)
    frames = decoder.decode(upstream) + decoder.flush()
    sent = b"".join(frame.raw for frame in frames)
    assert ONE_FORM.fullmatch(sent)
    scanned = [frame.data.decode("utf-8", "replace") for frame in frames if frame.data is not None]
    if all(frame.data is None or frame.data.isascii() for frame in frames):
        assert scanned == standard(sent)
    for name, read in CLIENTS.items():
        # One that trims its lines loses white space around the data, as it does with every server.
        assert as_clients_trim(read(sent)) == as_clients_trim(standard(sent)), name
    assert [frame.event for frame in frames if frame.raw.startswith(b"event:")] == [
        frame.event for frame in frames if frame.event in TYPES and frame.data is not None
    ]


@settings(max_examples=examples(100), deadline=None)
@given(streams)
def test_g05_what_is_in_the_one_form_stays_byte_for_byte(upstream: bytes) -> None:
    frames = Decoder(events=TYPES).decode(upstream)
    again = Decoder(events=TYPES)
    for frame in frames:
        if frame.data is not None:
            assert again.decode(frame.raw)[0].raw == frame.raw


@st.composite
def noise(draw: st.DrawFn) -> bytes:
    """What may stand between two events of an answer: comments, fields, line ends that only some clients know."""
    end, other = draw(st.sampled_from(ENDS)), draw(st.sampled_from(FOREIGN))
    head = draw(st.sampled_from([b": ping", b":", b"id: 7", b"retry: 1", b"event: error2", b"\xef\xbb\xbf:"]))
    body = draw(st.sampled_from([b"", b"data: " + EVIL, b" " + EVIL, b"data:" + EVIL]))
    return head + other + body + draw(st.sampled_from([b"", other])) + end + draw(st.sampled_from([b"", end]))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(noise(), max_size=5), st.sampled_from(ENDS), st.booleans(), st.sampled_from(["open", "closed"]))
def test_g36_nothing_beside_the_data_reaches_a_caller(
    between: list[bytes], end: bytes, bom: bool, fail_mode: Literal["open", "closed"]
) -> None:
    said = [says("Good day. "), *(says(f"This is {n}. ") for n in range(len(between))), ends(), DONE]
    pieces = [said[0]]
    for each, more in zip(said[1:], [*between, b"", b""], strict=False):
        pieces += [more, each]
    upstream = (b"\xef\xbb\xbf" if bom else b"") + b"".join(pieces).replace(b"\n", end)
    out = stream(MAIL, [upstream], fail_mode=fail_mode)
    assert SECRET.encode() not in out.joined
    assert ONE_FORM.fullmatch(out.joined)
    for name, read in CLIENTS.items():
        assert read(out.joined) == standard(out.joined), name
    if fail_mode == "open":
        told = [event for event in standard(out.joined) if event.startswith("{")]
        assert "".join(json.loads(event)["choices"][0]["delta"].get("content", "") for event in told) == "".join(
            json.loads(event[6:])["choices"][0]["delta"].get("content", "") for event in said[:-1]
        )


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
def test_g36_what_some_clients_take_for_a_line_end_is_escaped_where_text_has_it(character: str) -> None:
    body = {"choices": [{"index": 0, "delta": {"content": f"a{character}data: b"}}]}
    raw = b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"
    out = stream(MAIL, [raw, ends(), DONE])
    for read in CLIENTS.values():
        assert json.loads(read(out.joined)[0]) == body
    edited = stream(MAIL, [raw.replace(b"data: b", b"john@example.com"), ends(), DONE])
    for read in CLIENTS.values():
        told = "".join(
            json.loads(event)["choices"][0]["delta"].get("content", "") for event in read(edited.joined)[:-1]
        )
        assert told == f"a{character}[EMAIL]"
