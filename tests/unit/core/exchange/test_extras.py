"""What an answer says outside of its texts is looked through in turns, like text: others get theirs between them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from checkstream.core.commands import Yield
from checkstream.core.events import RequestReceived, Resumed, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from tests.guarded import CHAT, DONE, bodies, ends, event, plan, request, says, stream, whole
from tests.playbook import Exchange, Played, play

RULES = "  - {name: c, id: PII-1, stage: [midstream], entities: [PHONE, EMAIL], actions: [{type: redact}]}\n"
TURN = 1000
MOST = 4 * TURN
"""Work of one turn: what a turn may do, and the piece of text at which it ends."""
FIELDS: dict[str, Any] = {
    "one long text": "4111 1111 1111 1112 " * 400 + "bob@example.com",
    "many short ones": [f"w{n:x}" for n in range(2000)] + ["bob@example.com"],
    "many that are looked at again": [f"u{n}@example.com" for n in range(200)],
}


def answer(field: object, *, turn_work: int, streaming: bool) -> tuple[Played, list[int]]:
    """Return what came of an answer with an unknown field, and the work of each turn."""
    settings: Plan = plan(RULES, turn_work=turn_work)
    exchange = Exchange(CHAT, settings)
    spent = [0]

    def send(event: Any) -> None:
        while True:
            before = len(exchange.out.commands)
            exchange.send(event)
            spent.append(exchange.guard._course.checking.meter.spent)
            if not any(isinstance(command, Yield) for command in exchange.out.commands[before:]):
                return
            event = Resumed()

    send(RequestReceived(request(stream=streaming)))
    send(UpstreamOpened(200, streaming))
    body = says("hi", more=field) + ends() + DONE if streaming else whole("hi", more=field)
    send(UpstreamBytes(body))
    send(UpstreamClosed())
    return exchange.out, [after - before for before, after in itertools.pairwise(spent)]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("name", FIELDS)
def test_g33_unknown_fields_are_looked_through_in_turns(name: str, streaming: bool) -> None:
    played, turns = answer(FIELDS[name], turn_work=TURN, streaming=streaming)
    assert len([work for work in turns if work]) > 3
    assert max(turns) < MOST
    at_once, _ = answer(FIELDS[name], turn_work=0, streaming=streaming)
    reply = at_once.reply.body if at_once.reply else at_once.joined
    assert (played.reply.body if played.reply else played.joined) == reply
    assert b"[EMAIL]" in reply
    assert b"@example.com" not in reply


def told(out: Played, *names: Any) -> list[Any]:
    """Return what each event says at a place of its first choice's delta."""
    found = []
    for body in bodies(out):
        value: Any = (body.get("choices") or [{}])[0].get("delta")
        for name in names:
            value = value[name] if isinstance(value, dict | list) and (isinstance(name, int) or name in value) else None
        found.append(value)
    return found


@pytest.mark.parametrize("ended", [True, False])
def test_g35_a_server_that_tells_name_and_id_in_each_piece_of_a_call_has_them_told_once(ended: bool) -> None:
    head = {"index": 0, "id": "call_1", "type": "function"}
    pieces = ["", '{"q":', ' "x"}'] if ended else ['{"q":', ' "x"}']
    events = [
        event((0, {"tool_calls": [{**head, "function": {"name": "look_up", "arguments": piece}}]}, None))
        for piece in pieces
    ]
    out = stream(RULES, [*events, ends(reason="tool_calls"), DONE])
    at = ("tool_calls", 0)
    later = [None] * (len(pieces) - 1)
    assert told(out, *at, "function", "name")[: len(pieces)] == ["look_up", *later]
    assert told(out, *at, "id")[: len(pieces)] == ["call_1", *later]
    assert told(out, *at, "function", "arguments")[: len(pieces)] == pieces
    assert out.record is not None
    assert out.record.outcome == "complete"


def test_a_name_that_comes_in_pieces_stays_in_pieces() -> None:
    names = ["do", "do", "_it"]
    events = [event((0, {"tool_calls": [{"index": 0, "function": {"name": name}}]}, None)) for name in names]
    out = stream(RULES, [*events, ends(reason="tool_calls"), DONE])
    assert told(out, "tool_calls", 0, "function", "name")[:3] == names


def test_g34_all_events_of_an_answer_have_its_first_id() -> None:
    raw = [says("a ").replace(b'"c1"', b'"john.doe@exa"'), says("b ").replace(b'"c1"', b'"mple.com"'), ends(), DONE]
    assert {body["id"] for body in bodies(stream(RULES, raw))} == {"john.doe@exa"}


def at_place(place: str, fields: dict[str, Any]) -> bytes:
    """Return an event that says something in fields that nobody knows, at one of the places that may have some."""
    choice: dict[str, Any] = {"index": 0, "delta": {"content": "a "}, "finish_reason": None}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    {"delta": choice["delta"], "choice": choice, "top": body}[place].update(fields)
    return b"data: " + json.dumps(body).encode() + b"\n\n"


@pytest.mark.parametrize("place", ["delta", "choice", "top"])
@pytest.mark.parametrize("ahead", [127, 130, 240, 700])
def test_g34_the_hundredth_field_is_joined_over_events_like_the_first(place: str, ahead: int) -> None:
    fields = [{f"k{n}": f"w{n}x" for n in range(at, min(at + 200, ahead))} for at in range(0, ahead, 200)]
    halves = [{"zz": "john@"}, {"zz": "example.com"}]
    out = stream(RULES, [*(at_place(place, each) for each in [*fields, *halves]), ends(), DONE])
    assert out.record is not None
    assert out.record.outcome == "complete"
    assert b"[EMAIL]" in out.joined
    assert b"john@" not in out.joined


@pytest.mark.parametrize("place", ["delta", "choice", "top"])
def test_g34_what_many_entries_of_a_list_say_is_joined_at_both_ends(place: str) -> None:
    many = [f" w{n} " for n in range(600)]
    events = [at_place(place, {"zz": each}) for each in ([*many, "john@"], ["example.com", *many])]
    out = stream(RULES, [*events, ends(), DONE])
    assert out.record is not None
    assert out.record.outcome == "complete"
    assert b"[EMAIL]" in out.joined
    assert b"john@" not in out.joined


@pytest.mark.parametrize("mode", ["closed", "open"])
@pytest.mark.parametrize("size", [1, 200, 300])
def test_g34_more_places_than_are_read_apart_meet_the_fail_mode(mode: str, size: int) -> None:
    fields = [{f"k{n}": f"w{n}x" for n in range(at, at + size)} for at in range(0, 1200, size)]
    events = [at_place("delta", each) for each in [*fields, {"zz": "john@"}, {"zz": "example.com"}]]
    out = stream(RULES, [*events, ends(), DONE], fail_mode=mode)
    assert out.record is not None
    if mode == "open":
        assert "midstream:opaque_event" in out.record.unscanned
    else:
        assert b"upstream_error" in out.joined
        assert b"example.com" not in out.joined


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("field", "left"),
    [
        ({"seed": 4539578763621486123}, None),
        ({"request_id": 4111111111111111110}, None),
        ({"card": 4111111111111111}, {"card": 0}),
        ({"seed": 4111111111111111}, {"seed": 0}),
        ({"card": 4111111111111111.0}, {"card": 0}),
        ({"bytes": list(b"bob@example.com")}, {"bytes": []}),
        ({"to": "bob@example.com"}, {"to": "[EMAIL]"}),
    ],
)
def test_g34_what_nobody_knows_keeps_its_type_and_numbers_of_64_bits_that_name_things_stay(
    field: dict[str, Any], left: dict[str, Any] | None, streaming: bool
) -> None:
    rules = RULES.replace("[PHONE, EMAIL]", "[CREDIT_CARD, EMAIL]")
    raw = [says("a ", more=field), ends(), DONE] if streaming else [whole("a", more=field)]
    out = play(CHAT, plan(rules), request(stream=streaming), raw, streaming=streaming)
    if out.reply is None:
        (found,) = (body["more"] for body in bodies(out) if "more" in body)
    else:
        found = json.loads(out.reply.body)["choices"][0]["message"]["more"]
    assert found == (left or field)


@pytest.mark.parametrize("streaming", [True, False])
def test_g08_a_route_that_refuses_parts_takes_them_out_of_an_answer(streaming: bool) -> None:
    sound = {"id": "a", "data": "QUJD" * 100, "transcript": "to bob@example.com"}
    raw = (
        [event((0, {"content": "hi", "audio": sound}, None)), ends(), DONE] if streaming else [whole("hi", audio=sound)]
    )
    out = play(CHAT, plan(RULES, parts="refuse"), request(stream=streaming), raw, streaming=streaming)
    reply = json.loads(out.reply.body)["choices"][0]["message"] if out.reply else bodies(out)[0]["choices"][0]["delta"]
    assert reply["audio"] == {"id": "a", "data": None, "transcript": "to [EMAIL]"}
    assert reply["content"] == "hi"
    assert out.record is not None
    assert "part_dropped" in out.record.degradations
    assert not out.record.unscanned


def test_g34_reasoning_that_goes_on_under_another_name_can_not_be_checked() -> None:
    def out(*deltas: dict[str, Any]) -> Played:
        return stream(RULES, [*(event((0, delta, None)) for delta in deltas), ends(), DONE])

    one, other = {"reasoning_content": "bob@exa"}, {"reasoning": "mple.com"}
    cut = out(one, other)
    assert b"mple.com" not in cut.joined
    assert cut.record is not None
    assert cut.record.outcome == "failed"
    calm: list[list[dict[str, Any]]] = [[one, one | other], [other, one | other, other], [other, {"content": "a"}]]
    for deltas in calm:
        told = out(*deltas).record
        assert told is not None
        assert told.outcome == "complete"


def test_g35_the_beginning_of_a_call_without_a_name_stays_as_it_is_where_the_call_is_edited() -> None:
    head = {"index": 0, "id": "call_1", "type": "function"}
    pieces = [head, {**head, "function": {"name": "look_up", "arguments": ""}}, {"index": 0, "function": {}}]
    more, edited = (
        {"index": 0, "function": {"arguments": json.dumps({"q": text})}} for text in ("bob@example.com", "[EMAIL]")
    )
    events = [event((0, {"tool_calls": [piece]}, None)) for piece in (*pieces, more, pieces[2])]
    out = stream(RULES, [*events, ends(reason="tool_calls"), DONE])
    assert [call for (call,) in told(out, "tool_calls")[:5]] == [
        head,
        {**head, "id": None, "function": {"name": "look_up", "arguments": ""}},
        pieces[2],
        edited,
        pieces[2],
    ]


@pytest.mark.parametrize(
    ("pieces", "secret"),
    [
        (["user", "@example.com"], "user@example.com"),
        (["system", "tool", "@exam", "ple.com"], "systemtool@example.com"),
        (["mail bob.", "user", "@example.com"], "bob.user@example.com"),
        (["x.", "bo", "bo", "@example.com"], "x.bobo@example.com"),
        ([[106, 111, 104], [110, 64, 101], [120, 97, 109], [112, 108, 101], [46, 99, 111], [109]], "john@example.com"),
    ],
)
def test_g34_what_is_joined_over_events_is_read_with_all_of_its_pieces(pieces: list[Any], secret: str) -> None:
    """Words of the protocol, pieces said twice and short lists of bytes are parts of it like any other."""
    out, _ = answer_of([says("a", more=piece) for piece in pieces])
    said = [body["more"] for body in bodies(out) if body.get("more")]
    joined = "".join("".join(map(chr, piece)) if isinstance(piece, list) else piece for piece in said)
    assert secret not in joined
    assert "@example.com" not in joined


def test_g34_words_of_the_protocol_within_a_list_are_read_with_what_stands_beside_them() -> None:
    for streaming in (True, False):
        played, _ = answer(["user", "@example.com"], turn_work=0, streaming=streaming)
        reply = played.reply.body if played.reply else played.joined
        assert b"@example.com" not in reply


def test_g34_the_type_that_a_data_url_names_is_no_room_for_text() -> None:
    bytes_of = ";base64," + "QUJD" * 80
    for head, read in (("image/png", False), ("audio/mpeg;codecs=mp3", False), ("bob@example.com", True)):
        played, _ = answer({"url": f"data:{head}{bytes_of}"}, turn_work=0, streaming=True)
        assert (b"@example.com" in played.joined) is False
        assert (head.encode() in played.joined) is not read


def test_g34_calm_words_of_the_protocol_open_no_channel() -> None:
    out, exchange = answer_of([says("a", more={"type": "text", "role": "assistant"}) for _ in range(3)])
    assert [body["more"] for body in bodies(out) if "more" in body] == [{"type": "text", "role": "assistant"}] * 3
    assert not exchange.guard._course.answer.sieve.extras.has_open


def answer_of(events: list[bytes]) -> tuple[Played, Exchange]:
    """Return what came of a stream of these events."""
    exchange = Exchange(CHAT, plan(RULES))
    exchange.send(RequestReceived(request(stream=True)))
    exchange.send(UpstreamOpened(200, True))
    for each in (*events, ends() + DONE):
        exchange.send(UpstreamBytes(each))
    exchange.send(UpstreamClosed())
    return exchange.out, exchange
