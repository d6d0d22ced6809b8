"""A token with any bit changed confirms nothing, and neither does one for any other request."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import ConfirmationWanted, Reply
from checkstream.proxy.confirm import CONFIRM, Asked, Confirmations
from tests.chance import examples

askeds = st.builds(
    Asked,
    caller=st.none() | st.text(max_size=8),
    route=st.text(max_size=8),
    program=st.text("0123456789abcdef", max_size=8),
    context=st.none() | st.text(max_size=8),
    body=st.binary(max_size=32),
)
rules = st.lists(st.text("ABC-123\u00e9", min_size=1, max_size=12), min_size=1, max_size=4).map(tuple)


def token(confirmations: Confirmations, asked: Asked, named: tuple[str, ...]) -> str:
    wanted = ConfirmationWanted(named, 60, asked.program)
    return confirmations.open(asked, ()).respond(Reply(409, b"{}", confirm=wanted), {}).headers[CONFIRM]


@settings(max_examples=examples(60), deadline=None)
@given(askeds, rules, st.data())
def test_any_changed_bit_is_refused(asked: Asked, named: tuple[str, ...], data: st.DataObject) -> None:
    confirmations = Confirmations(clock=lambda: 0.0)
    good = token(confirmations, asked, named).encode()
    for _ in range(20):
        place, bit = data.draw(st.integers(0, len(good) - 1)), data.draw(st.integers(0, 7))
        changed = bytes([*good[:place], good[place] ^ (1 << bit), *good[place + 1 :]])
        assert confirmations.open(asked, (changed.decode("utf-8", "surrogateescape"),)).rules == ()
    for cut in range(len(good)):
        assert confirmations.open(asked, (good[:cut].decode(),)).rules == ()
    assert confirmations.open(asked, (good.decode(),)).rules == named


@settings(max_examples=examples(200), deadline=None)
@given(askeds, askeds, rules)
def test_a_token_of_one_request_is_none_of_another(one: Asked, other: Asked, named: tuple[str, ...]) -> None:
    confirmations = Confirmations(clock=lambda: 0.0)
    good = token(confirmations, one, named)
    assert confirmations.open(other, (good,)).rules == (named if one == other else ())


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.hex()))
def test_any_text_is_refused(text: str) -> None:
    asked = Asked(caller=None, route="r", program="p", context=None, body=b"")
    assert Confirmations(clock=lambda: 0.0).open(asked, (text,)).rules == ()
