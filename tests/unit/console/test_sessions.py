"""Sessions end, guesses are counted, and neither table grows."""

from __future__ import annotations

from checkstream.console import sessions
from checkstream.console.sessions import LIVES_S, Guesses, Sessions, is_token


def test_a_session_goes_on_until_its_time_is_over_or_it_is_ended() -> None:
    known = Sessions()
    known.begin("a", 0)
    assert known.holds("a", LIVES_S - 1)
    assert not known.holds("a", LIVES_S)
    assert not known.holds("b", 0)
    known.end("a")
    assert not known.holds("a", 0)
    known.end("never begun")


def test_beyond_the_most_the_oldest_ends() -> None:
    known = Sessions()
    for at in range(sessions._MOST_SESSIONS + 1):
        known.begin(str(at), 0)
    assert not known.holds("0", 0)
    assert known.holds("1", 0)


def test_who_guesses_waits_and_others_do_not() -> None:
    guesses = Guesses()
    for at in range(sessions._TRIES):
        assert guesses.wait_s("a", at) == 0
        guesses.wrong("a", at)
    assert guesses.wait_s("a", 5) == 55
    assert guesses.wait_s("b", 5) == 0
    assert guesses.wait_s("a", 60) == 0


def test_guesses_from_very_many_addresses_are_slowed_too() -> None:
    guesses = Guesses()
    for at in range(3000):
        guesses.wrong(str(at), 0)
    assert guesses.wait_s("new", 1) == 59
    assert len(guesses._wrong) <= sessions._MOST_ADDRESSES


def test_tokens_are_compared_whole() -> None:
    assert is_token("t\udcffken", "t\udcffken")
    assert not is_token("tok", "token")
    assert not is_token("", "token")
