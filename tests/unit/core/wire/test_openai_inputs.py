"""Embeddings and moderations: every text of `input` is read and can be edited; answers are figures and stay so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.terms import Channel
from checkstream.core.wire.openai.inputs import EMBEDDINGS, MODERATIONS, RERANK
from checkstream.core.wire.surface import Edit, Frame, Shaping
from checkstream.errors import RequestInvalid, WireError

BOTH = pytest.mark.parametrize("surface", [EMBEDDINGS, MODERATIONS], ids=lambda each: each.name)
TEXT = "mail joe@example.com"


def body(given: Any, **more: Any) -> bytes:
    return json.dumps({"model": "m", "input": given, **more}).encode()


def texts(surface: Any, given: Any, **more: Any) -> list[tuple[Channel, str]]:
    unit = surface.read_request(body(given, **more)).unit
    return [(delta.channel, delta.text) for delta in unit.deltas]


@BOTH
def test_g13_each_text_of_the_input_is_a_channel_of_its_own(surface: Any) -> None:
    assert texts(surface, TEXT) == [(Channel("user", 0), TEXT)]
    assert texts(surface, ["a", TEXT]) == [(Channel("user", 0), "a"), (Channel("user", 1), TEXT)]
    parts = [{"type": "text", "text": TEXT}, {"type": "image_url", "image_url": {"url": "https://h/i.png"}}]
    request = surface.read_request(body(parts))
    assert [(d.channel.choice, d.path) for d in request.unit.deltas if d.text == TEXT] == [(0, ("input", 0, "text"))]
    assert request.unit.unscanned == ("image_url",)
    assert not request.streaming


@BOTH
@pytest.mark.parametrize("tokens", [[1, 2, 3], [[1, 2], [3]]])
def test_token_ids_are_named_as_unread(surface: Any, tokens: Any) -> None:
    assert surface.read_request(body(tokens)).unit.unscanned == ("input tokens",)


@BOTH
@pytest.mark.parametrize("wrong", [None, 3, {"text": "x"}, [None], [1.5], [True], ["\ud800"]])
def test_another_input_is_refused(surface: Any, wrong: Any) -> None:
    with pytest.raises(RequestInvalid):
        surface.read_request(body(wrong))


@given(
    st.recursive(st.just(TEXT), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5),
    st.text(min_size=1),
)
def test_g31_a_text_is_read_wherever_a_request_hides_it(hidden: Any, name: str) -> None:
    given = json.dumps(hidden).count(TEXT)
    for surface in (EMBEDDINGS, MODERATIONS):
        for wrapped in (
            body(["x", hidden]),
            body("x", **{f"x_{name}": hidden}),
            body([{"type": "text", name: hidden}]),
        ):
            try:
                unit = surface.read_request(wrapped).unit
            except RequestInvalid:
                continue
            read = sum(delta.text.count(TEXT) for delta in unit.deltas)
            assert read >= given or any(
                kind in what for what in unit.unscanned for kind in ("image", "audio", "video", "file")
            )


@BOTH
def test_an_edit_is_made_in_the_text_that_was_read_and_nothing_else_changes(surface: Any) -> None:
    given = b'{"model" : "m", "input":["a","mail joe@example.com"], "user":"u", "checkstream":{"conversation":"c"}}'
    request = surface.read_request(given)
    place = next(i for i, delta in enumerate(request.unit.deltas) if delta.text == TEXT)
    shaping = Shaping(max_temperature=0.1, instructions=("Be kind.",))
    edited = surface.write_request(request, {place: "mail [EMAIL]"}, shaping)
    assert json.loads(edited) == {"model": "m", "input": ["a", "mail [EMAIL]"], "user": "u"}
    assert edited.startswith(b'{"model" : "m", "input":["a","mail [EMAIL]"]')


@pytest.mark.parametrize("surface", [EMBEDDINGS, MODERATIONS, RERANK], ids=lambda each: each.name)
def test_g31_a_document_that_policies_take_out_leaves_a_note_in_its_place(surface: Any) -> None:
    asked = {"query": "q", "input": "q", "documents": ["a", "bad", {"text": "worse", "id": 7}, "b"]}
    request = surface.read_request(json.dumps(asked).encode())
    shaping = Shaping(removed=((("documents", 1), "[out]"), (("documents", 2), "[out]")))
    edited = json.loads(surface.write_request(request, {}, shaping))
    assert edited == {**asked, "documents": ["a", "[out]", {"text": "[out]"}, "b"]}


RANKED = {
    "id": "r",
    "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}],
    "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
}


def test_g13_a_question_and_each_document_are_read_apart() -> None:
    body = {"model": "m", "query": TEXT, "documents": ["a", {"text": TEXT, "title": "t"}], "top_n": 2}
    unit = RERANK.read_request(json.dumps(body).encode()).unit
    assert [(delta.channel, delta.text, delta.path) for delta in unit.deltas if delta.text in {TEXT, "a", "t"}] == [
        (Channel("user", 0), TEXT, ("query",)),
        (Channel("document", 1), "a", ("documents", 0)),
        (Channel("document", 2, 1), TEXT, ("documents", 1, "text")),
        (Channel("document", 2, 3), "t", ("documents", 1, "title")),
    ]
    for wrong in ({}, {"query": 3}, {"query": None}):
        with pytest.raises(RequestInvalid, match="`query`"):
            RERANK.read_request(json.dumps({"documents": ["a"], **wrong}).encode())


def test_g34_a_document_that_an_answer_repeats_is_read() -> None:
    raw = json.dumps(RANKED).encode()
    assert RERANK.write_whole(RERANK.read_whole(raw), Edit({}), {}) == raw
    repeated = {**RANKED, "results": [{"index": 0, "relevance_score": 1, "document": {"text": TEXT}}]}
    assert TEXT in {extra.text for extra in RERANK.read_whole(json.dumps(repeated).encode()).extras}


VECTOR = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1, -2e-3]}], "model": "m"}
SCORES = {
    "id": "modr-1",
    "model": "m",
    "results": [{"flagged": False, "categories": {"hate": False}, "category_scores": {"hate": 0.1}}],
}


@pytest.mark.parametrize(("surface", "answer"), [(EMBEDDINGS, VECTOR), (MODERATIONS, SCORES)])
def test_an_answer_of_figures_has_nothing_unread(surface: Any, answer: dict[str, Any]) -> None:
    raw = json.dumps(answer).encode()
    unit = surface.read_whole(raw)
    assert (unit.deltas, unit.choices, unit.unscanned, unit.failure) == ((), (), (), None)
    assert surface.write_whole(unit, Edit({}), {}) == raw
    assert surface.read_whole(json.dumps({**answer, "usage": {"total_tokens": 3}}).encode()).usage


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ({**VECTOR, "note": "words"}, {"note", "words", "m", "list", "embedding"}),
        ({"data": [{"embedding": [0.1], "text": "words"}]}, {"words"}),
        ({"data": [{"embedding": ["words"]}]}, {"words", "embedding"}),
        ({"data": [{"embedding": "some words"}]}, {"some words", "embedding"}),
        ({"data": [{"embedding": "AACAPw=="}]}, {"AACAPw==", "embedding"}),
        ({"data": [{"embedding": "AACAPw" * 99 + "=="}]}, set()),
        ({"data": [{"embedding": [[0.5], [1]]}]}, set()),
        ({"data": [{"embedding": None}]}, set()),
        ({"data": [], "meta": 3, "empty": "", "none": None}, {"meta", "3", "empty", "none"}),
    ],
)
def test_g34_what_else_an_answer_says_is_read(answer: dict[str, Any], read: set[str]) -> None:
    assert {extra.text for extra in EMBEDDINGS.read_whole(json.dumps(answer).encode()).extras} == read


@pytest.mark.parametrize("wrong", [b'{"note":"joe@example.com","note":"b","data":[]}', b'{"data":[{"t":"a","t":"c"}]}'])
def test_g34_two_members_of_one_name_are_no_answer(wrong: bytes) -> None:
    with pytest.raises(WireError, match="two members"):
        EMBEDDINGS.read_whole(wrong)


@pytest.mark.parametrize(
    "wrong", [b"", b"[]", b"{}", b'{"data": 3}', b'{"data": [3]}', b'{"data": null}', b'{"a":"\xff"}']
)
def test_an_answer_of_another_form_is_told(wrong: bytes) -> None:
    with pytest.raises(WireError):
        EMBEDDINGS.read_whole(wrong)


def test_an_error_is_read_and_a_stream_is_none() -> None:
    unit = EMBEDDINGS.read_whole(b'{"error": {"message": "no such model", "type": "x"}}')
    assert unit.failure == "no such model"
    with pytest.raises(WireError, match="no streams"):
        EMBEDDINGS.read_event(Frame(raw=b"data: {}\n\n", data=b"{}"))


@given(st.binary())
def test_g19_any_answer_is_read_or_refused(data: bytes) -> None:
    for surface in (EMBEDDINGS, MODERATIONS):
        try:
            unit = surface.read_whole(data)
        except WireError:
            continue
        assert unit.raw == data
