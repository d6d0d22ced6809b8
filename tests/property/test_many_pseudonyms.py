"""However many values a prompt has, and a conversation knows, no step is long and each comes back (G33, G38)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest

from checkstream.core import events as on
from checkstream.core.pseudonyms.register import Register
from checkstream.core.steps import done
from tests.guarded import CHAT, DONE, ends, plan, says
from tests.watchdog import guard_of, long_steps, steps

RULES = "  - {name: p, id: PSN-1, entities: [EMAIL], actions: [{type: pseudonymise}]}\n"
PLAN = msgspec.structs.replace(plan(RULES), keeps_names=True, prompt_chars=2_000_000, work=0)


def known(count: int) -> bytes:
    register = Register()
    for number in range(count):
        register.give("EMAIL", f"k{number}@x.io", f"k{number}@x.io", stood="user", comes_back=True)
    return done(register.telling())


def happens(prompt: str, state: bytes | None, answer: Sequence[str]) -> list[on.AnyEvent]:
    said = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    body = json.dumps(said | {"checkstream": {"conversation": "c"}}).encode()
    told = [on.UpstreamBytes(data) for data in (*map(says, answer), ends(), DONE)]
    names: list[on.AnyEvent] = [on.NamesKnown(state, 1 if state else 0), on.NamesKept()]
    return [on.RequestReceived(body, "app"), *names, on.UpstreamOpened(200, True), *told, on.UpstreamClosed()]


MANY = " ".join(f"u{number}@y.io" for number in range(4000))
PLACES = '{"a": "' + " ".join(f'u{number}@y.io [x](mailto:u{number}@y.io) \\" [' for number in range(1500))
TAKEN = " ".join(f"<EMAIL_{number}>" for number in range(4000, 0, -1)) + " ann@y.io"


@pytest.mark.parametrize(
    ("prompt", "state"),
    [(MANY, 0), (PLACES, 0), (TAKEN, 0), ("Mail ann@y.io.", 15_000), (MANY, 4000)],
    ids=["values", "places", "taken", "known", "both"],
)
def test_g33_no_step_is_long_however_many_values_have_placeholders(prompt: str, state: int) -> None:
    kept = known(state) if state else None
    echoed = [f"<EMAIL_{number}> " * 16 for number in range(1, 300)]
    events = happens(prompt, kept, echoed)
    assert long_steps(lambda: steps(guard_of(CHAT, PLAN), events)) == []
