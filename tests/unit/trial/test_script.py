from __future__ import annotations

import json

import pytest

from checkstream.core.terms import ANSWER_CHANNELS
from checkstream.core.wire import sse
from checkstream.core.wire.surfaces import SURFACES
from checkstream.trial.cases import Case, Expect
from checkstream.trial.script import Cut, answer_pieces, cuts, request_body

CHAT = SURFACES["openai.chat"]
TEXT = 'Grüße, "Ann" \U0001f469\u200d\U0001f4bb; write to joe@example.com.\nBye.'


def case(**changes: object) -> Case:
    return Case(name="n", expect=Expect(action="allow"), **changes)  # type: ignore[arg-type]


def texts(subject: Case, cut: Cut, turn: int = 0) -> dict[tuple[str, int], str]:
    """Return what a caller without a guard would read."""
    body = b"".join(answer_pieces(subject, cut, turn))
    if cut.streaming:
        decoder = sse.Decoder()
        units = [CHAT.read_event(frame) for frame in (*decoder.decode(body), *decoder.flush())]
        assert units[-1].terminator
    else:
        units = [CHAT.read_whole(body)]
    assert not any(unit.unscanned or unit.opaque for unit in units)
    found: dict[tuple[str, int], str] = {}
    for unit in units:
        for delta in unit.deltas:
            key = (delta.channel.kind, delta.channel.choice)
            found[key] = found.get(key, "") + delta.text
        for extra in unit.extras:
            if extra.joins and not extra.word:
                found["extra", extra.choice] = found.get(("extra", extra.choice), "") + extra.text
    return found


@pytest.mark.parametrize("kind", ANSWER_CHANNELS)
@pytest.mark.parametrize("name", ["whole", "stream", "split 1", "split 2", "split 3"])
def test_an_answer_says_its_text_on_its_channel_however_it_is_cut(kind: str, name: str) -> None:
    text = "delete_file" if kind == "tool_name" else TEXT
    assert texts(case(answer=text, channel=kind), Cut(name))[kind, 0] == text


@pytest.mark.parametrize("name", ["whole", "stream", "split 1", "split 9"])
def test_every_choice_says_its_own_text(name: str) -> None:
    found = texts(case(answers=("one two three", TEXT, "")), Cut(name))
    assert [found.get(("content", choice), "") for choice in range(3)] == ["one two three", TEXT, ""]


def test_cuts_by_chance_come_again_and_differ() -> None:
    subject = case(answer=TEXT)
    assert answer_pieces(subject, Cut("split 1")) == answer_pieces(subject, Cut("split 1"))
    ways = {tuple(answer_pieces(subject, Cut(f"split {number}"))) for number in range(20)}
    assert len(ways) == 20
    assert any(piece[:1] != b"d" for way in ways for piece in way)  # events themselves are cut


def test_cuts_by_chance_reach_every_place() -> None:
    subject = case(answer="abc")
    ways = [texts_of_events(b"".join(answer_pieces(subject, Cut(f"split {number}")))) for number in range(60)]
    assert {("abc",), ("a", "b", "c"), ("a", "bc"), ("ab", "c")} <= set(ways)


def texts_of_events(body: bytes) -> tuple[str, ...]:
    units = [CHAT.read_event(frame) for frame in sse.Decoder().decode(body)]
    return tuple(delta.text for unit in units for delta in unit.deltas if delta.text)


def test_a_case_is_run_whole_and_as_a_stream_unless_it_says_otherwise() -> None:
    assert [cut.name for cut in cuts(case(), 2)] == ["whole", "stream", "split 1", "split 2"]
    assert [cut.name for cut in cuts(case(stream=False), 2)] == ["whole"]
    assert [cut.name for cut in cuts(case(stream=True), 1)] == ["stream", "split 1"]


def test_a_continued_answer_is_what_the_case_says() -> None:
    assert texts(case(answer="a", continued="and on"), Cut("split 1"), 1)["content", 0] == "and on"


@pytest.mark.parametrize("kind", ["system", "user", "assistant", "tool_result", "document"])
def test_a_prompt_stands_on_its_channel(kind: str) -> None:
    request = CHAT.read_request(request_body(case(prompt=TEXT, channel=kind), streaming=True))
    said = [delta for place, delta in enumerate(request.unit.deltas) if place not in request.quiet]
    assert [delta.text for delta in said if delta.channel.kind == kind][-1:] == [TEXT]
    assert not request.unknown_fields
    assert request.streaming


def test_the_request_says_what_the_case_says() -> None:
    subject = case(
        answers=("a", "b"),
        tools=("search",),
        temperature=0.7,
        model="big",
        context={"a": 1},
        user="u",
        documents=("d",),
    )
    body = json.loads(request_body(subject, streaming=False))
    assert (body["n"], body["temperature"], body["model"], body["user"]) == (2, 0.7, "big", "u")
    assert [tool["function"]["name"] for tool in body["tools"]] == ["search"]
    assert body["checkstream"] == {"context": {"a": 1}, "documents": ["d"]}
    assert "stream" not in body
