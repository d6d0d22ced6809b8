"""Sessions end, guesses are counted, and neither table grows."""

from __future__ import annotations

from checkstream.console import sessions
from checkstream.console.sessions import LIVES_S, Guesses, Person, Sessions, is_token

ANN, BEN = Person("ann", "engineer"), Person("ben", "auditor")


def test_a_session_goes_on_until_its_time_is_over_or_it_is_ended() -> None:
    known = Sessions()
    known.begin("a", 0, ANN)
    known.begin("b", 0, BEN, 60)
    known.begin("c", 0, BEN, 10 * LIVES_S)
    assert known.person("a", LIVES_S - 1) == ANN
    assert known.person("a", LIVES_S) is None
    assert [known.person("b", at) for at in (59, 60)] == [BEN, None]
    assert known.person("c", LIVES_S) is None
    assert known.person("d", 0) is None
    known.end("a")
    assert known.person("a", 0) is None
    known.end("never begun")


def test_beyond_the_most_the_oldest_ends() -> None:
    known = Sessions()
    for at in range(sessions._MOST_SESSIONS + 1):
        known.begin(str(at), 0, Person(str(at)))
    assert known.person("0", 0) is None
    assert known.person("1", 0) is not None


def test_who_begins_many_sessions_ends_their_own() -> None:
    known = Sessions()
    known.begin("ben", 0, BEN)
    for at in range(sessions._MOST_OF_ONE + 1):
        known.begin(str(at), 0, ANN)
    assert known.person("ben", 0) == BEN
    assert [known.person(str(at), 0) for at in (0, 1)] == [None, ANN]


def test_who_guesses_waits_and_others_do_not() -> None:
    guesses = Guesses()
    for at in range(sessions._TRIES):
        assert guesses.wait_s("a", at) == 0
        guesses.wrong("a", at)
    assert guesses.wait_s("a", 5) == 55
    assert guesses.wait_s("b", 5) == 0
    assert guesses.wait_s("a", 60) == 0


def test_guesses_from_very_many_addresses_keep_nobody_else_out() -> None:
    guesses = Guesses()
    for at in range(3000):
        for _ in range(sessions._TRIES):
            guesses.wrong(str(at), 0)
    assert guesses.wait_s("new", 1) == 0
    assert guesses.wait_s("2999", 1) == 59
    assert len(guesses._wrong) <= sessions._MOST_ADDRESSES


def test_tokens_are_compared_whole() -> None:
    assert is_token("t\udcffken", "t\udcffken")
    assert not is_token("tok", "token")
    assert not is_token("", "token")
