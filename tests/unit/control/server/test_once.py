from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.server.once import _SESSIONS, Once

WORDS = st.sampled_from([letter * 16 for letter in "abc"])


@given(st.lists(st.tuples(st.integers(0, 9), WORDS, st.integers(0, 9))))
def test_nothing_counts_twice_and_nothing_of_an_attestation_that_was_never_the_newest(
    asked: list[tuple[int, str, int]],
) -> None:
    once, taken, newest = Once(), set(), 0
    was_newest: set[int] = set()
    for sequence, word, grows in asked:
        newest = max(newest, grows)
        was_newest.add(newest)
        if once.takes("n1", f"{sequence}.{word}", newest):
            assert (sequence, word) not in taken
            assert sequence in was_newest
            taken.add((sequence, word))
        elif sequence == newest:
            assert (sequence, word) in taken, "what is new and of the newest counts"


def test_requests_under_way_go_on_behind_the_next_attestations_and_not_for_ever() -> None:
    once = Once()
    for newest in range(1, _SESSIONS + 1):
        assert once.takes("n1", f"{newest}.{'a' * 16}", newest)
        assert once.takes("n1", f"1.{newest:016}", newest)
        assert once.takes("n2", f"{newest}.{'a' * 16}", newest), "each node has its own"
    assert once.takes("n1", f"{_SESSIONS + 1}.{'a' * 16}", _SESSIONS + 1)
    assert not once.takes("n1", f"1.{'b' * 16}", _SESSIONS + 1)


def test_what_is_no_number_and_no_word_counts_for_nothing() -> None:
    word = "a" * 16
    for wrong in ("", ".", "1", "1.", "1.short", f"-1.{word}", f"1.{'a' * 65}", f"{'1' * 21}.{word}", f"\u0661.{word}"):
        assert not Once().takes("n1", wrong, 1)
