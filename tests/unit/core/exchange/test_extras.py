"""What an answer says outside of its texts is looked through in turns, like text: others get theirs between them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from checkstream.core.commands import Yield
from checkstream.core.events import RequestReceived, Resumed, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from tests.guarded import CHAT, DONE, ends, plan, request, says, whole
from tests.playbook import Exchange, Played

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
        exchange.send(event)
        while True:
            spent.append(exchange.guard._course.checking.meter.spent)
            if not exchange.out.commands or not isinstance(exchange.out.commands[-1], Yield):
                return
            exchange.send(Resumed())

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
