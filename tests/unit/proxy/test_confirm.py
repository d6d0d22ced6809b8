"""Tokens that confirm a request: good for that request, once, for a while, and for nothing else."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import ConfirmationWanted, Reply
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import NotReady
from checkstream.proxy.confirm import CONFIRM, Asked, Confirmations

SURFACE = SURFACES["openai.chat"]
ASKED = Asked(caller="app1", route="chat", program="p1", context='{"a":1}', body=b'{"messages":[]}')
WANTED = ConfirmationWanted(("PAY-1", "PAY-2"), 300, "p1")


class Clock:
    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


def refusal(confirmations: Confirmations, tokens: tuple[str, ...] = (), asked: Asked = ASKED) -> dict[str, Any]:
    """Return the error object that asks for a confirmation, its status and headers."""
    confirming = confirmations.open(asked, tokens)
    body = SURFACE.error_body("request_needs_confirmation", "confirm it", "PAY-1")
    wanted = msgspec.structs.replace(WANTED, program=asked.program)
    reply = Reply(409, body, action="require_confirmation", confirm=wanted)
    response = confirming.respond(reply, {"x-checkstream-stream": "s"})
    assert isinstance(response.body, bytes)
    assert response.status == 409
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["x-checkstream-stream"] == "s"
    found: dict[str, Any] = json.loads(response.body)
    assert found["rule_id"] == found["error"]["rule_id"] == "PAY-1"
    assert found["error"]["confirm"] == response.headers[CONFIRM]
    error: dict[str, Any] = found["error"]
    return error


def token(confirmations: Confirmations, asked: Asked = ASKED) -> str:
    found = refusal(confirmations, asked=asked)["confirm"]
    assert isinstance(found, str)
    return found


def test_a_token_confirms_its_rules_once() -> None:
    confirmations = Confirmations()
    given = token(confirmations)
    assert given.isascii()
    assert confirmations.open(ASKED, ()).rules == ()
    assert confirmations.open(ASKED, (given,)).rules == ("PAY-1", "PAY-2")
    assert confirmations.open(ASKED, (given,)).rules == ()
    again = refusal(confirmations, (given,))
    assert again["message"] == "confirm it (rule PAY-1) (the confirmation that came with it has been used before)"
    assert again["confirm"] != given
    assert confirmations.open(ASKED, (again["confirm"],)).rules == ("PAY-1", "PAY-2")


def test_every_token_is_another() -> None:
    confirmations = Confirmations()
    assert len({token(confirmations) for _ in range(50)}) == 50


def test_a_token_expires() -> None:
    clock = Clock()
    confirmations = Confirmations(clock=clock)
    early, late = token(confirmations), token(confirmations)
    clock.now += 299.9
    assert confirmations.open(ASKED, (early,)).rules
    clock.now += 0.2
    assert "has expired" in refusal(confirmations, (late,))["message"]
    assert "has expired" in refusal(confirmations, (early,))["message"]


@pytest.mark.parametrize(
    "other",
    [
        {"caller": "app2"},
        {"caller": None},
        {"caller": ""},
        {"route": "chat2"},
        {"program": "p2"},
        {"context": None},
        {"context": '{"a":2}'},
        {"body": b'{"messages":[] }'},
        {"body": b""},
    ],
)
def test_a_token_is_good_for_its_own_request_only(other: dict[str, Any]) -> None:
    confirmations = Confirmations()
    given, foreign = token(confirmations), msgspec.structs.replace(ASKED, **other)
    assert confirmations.open(foreign, (given,)).rules == ()
    assert "another request, caller or policy version" in refusal(confirmations, (given,), foreign)["message"]
    assert confirmations.open(ASKED, (given,)).rules, "a foreign attempt spends nothing"


def test_another_process_takes_no_tokens_of_this_one() -> None:
    assert Confirmations().open(ASKED, (token(Confirmations()),)).rules == ()


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "x",
        "=" * 8,
        "a" * 43,
        "A" * 64,
        "\u0430" * 64,
        "tok\x00en",
        "!" * 64,
        "-_" * 500,
        "A" * 16_384,
        "A" * 100_000,
        base64.urlsafe_b64encode(bytes(32)).decode(),
        base64.urlsafe_b64encode(bytes(32) + msgspec.msgpack.encode([b"n", 10**12, ["PAY-1"]])).decode().rstrip("="),
        "\udcff" * 64,
    ],
)
def test_what_is_no_token_confirms_nothing(hostile: str) -> None:
    confirmations = Confirmations()
    assert confirmations.open(ASKED, (hostile,)).rules == ()
    assert "altered" in refusal(confirmations, (hostile,))["message"]


def test_a_token_is_written_in_one_way_only() -> None:
    confirmations = Confirmations()
    given = token(confirmations)
    for other in (given + "=", f" {given}", given + "\n", given.replace("-", "+").replace("_", "/") + " ", given * 2):
        assert confirmations.open(ASKED, (other,)).rules == ()
    assert confirmations.open(ASKED, (given,)).rules


def test_of_several_tokens_none_counts_and_none_is_spent() -> None:
    confirmations = Confirmations()
    given = token(confirmations)
    assert "more than one" in refusal(confirmations, (given, given))["message"]
    assert "more than one" in refusal(confirmations, (given, "x"))["message"]
    assert confirmations.open(ASKED, (given,)).rules


def test_g22_spent_tokens_are_remembered_within_a_bound_and_never_forgotten_early() -> None:
    clock = Clock()
    confirmations = Confirmations(clock=clock, most_spent=2)
    first, second, third = (token(confirmations) for _ in range(3))
    assert confirmations.open(ASKED, (first,)).rules
    clock.now += 100
    assert confirmations.open(ASKED, (second,)).rules
    with pytest.raises(NotReady, match="too many confirmations"):
        confirmations.open(ASKED, (third,))
    assert confirmations.open(ASKED, (first,)).rules == (), "what was spent stays spent while it is full"
    assert confirmations.open(ASKED, ("x",)).rules == ()
    assert token(confirmations), "a confirmation can still be asked for"
    clock.now += 201  # the first three have expired
    fresh = token(confirmations)
    assert confirmations.open(ASKED, (fresh,)).rules
    assert confirmations.open(ASKED, (first,)).rules == ()


def test_an_answer_that_wants_no_confirmation_has_no_token() -> None:
    response = Confirmations().open(ASKED, ("bad",)).respond(Reply(200, b"{}"), {})
    assert CONFIRM not in response.headers
    assert response.body == b"{}"
    assert "x-should-retry" not in response.headers


@pytest.mark.parametrize("body", [b'{"error":"no room"}', b"[1]", b'"x"', b"{}"])
def test_where_the_surface_has_no_room_the_token_stands_in_the_header_alone(body: bytes) -> None:
    confirmations = Confirmations()
    response = confirmations.open(ASKED, ()).respond(Reply(409, body, confirm=WANTED), {})
    assert response.body == body
    assert confirmations.open(ASKED, (response.headers[CONFIRM],)).rules == WANTED.rules
