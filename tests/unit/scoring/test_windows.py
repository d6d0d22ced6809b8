"""Every unit is in a window, windows overlap and are as full as the text allows, whatever the units."""

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from checkstream.scoring.tokenizer import Placed, Unit
from checkstream.scoring.windows import Piece, pieces


def laid_out(sizes: list[int], room: int, overlap: int, context: list[int]) -> list[Piece]:
    ids = iter(range(10_000))
    before = [
        (place - 1_000, Unit(tuple(next(ids) for _ in range(size)), (), (0,) * size))
        for place, size in enumerate(context)
    ]
    units = [(place, Unit(tuple(next(ids) for _ in range(size)), (), (0,) * size)) for place, size in enumerate(sizes)]
    return [piece for piece in pieces(units, room=room, overlap=overlap, context=before) if piece is not None]


def ids_of(piece: Piece) -> list[int]:
    return [token for _, unit in piece.units for token in unit.ids]


layouts = st.tuples(
    st.lists(st.integers(0, 12), max_size=40),
    st.integers(4, 16),
    st.integers(0, 3),
    st.lists(st.integers(1, 4), max_size=9),
)


@given(layout=layouts)
def test_every_id_is_in_a_window_and_windows_are_stretches_of_the_text(
    layout: tuple[list[int], int, int, list[int]],
) -> None:
    sizes, room, overlap, context = layout
    found = laid_out(sizes, room, overlap, context)
    first = sum(context)
    seen = first
    for piece in found:
        ids = ids_of(piece)
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        assert len(ids) == piece.tokens <= room
        assert ids[piece.context] == seen  # what is new follows what has been seen
        seen = ids[-1] + 1
    assert seen == first + sum(sizes)
    assert bool(found) == bool(sum(sizes))


@given(layout=layouts)
def test_neighbours_overlap_and_the_last_window_is_aligned_at_the_end(
    layout: tuple[list[int], int, int, list[int]],
) -> None:
    sizes, room, overlap, context = layout
    widest = max([1, *sizes, *context])
    for at, piece in enumerate(laid_out(sizes, room, overlap, context)):
        if at:
            assert piece.context > overlap - widest
        if ids_of(piece)[0] > 0:  # more stands before it: only a unit that doesn't fit leaves room
            assert piece.tokens > room - min(widest, room)


def test_one_window_shows_what_is_new_at_its_end_and_context_before() -> None:
    (piece,) = laid_out([2, 2], 10, 2, [3, 3, 3])
    assert ids_of(piece) == list(range(3, 13))
    assert (piece.context, piece.turn) == (6, None)


def test_a_window_knows_from_where_on_the_next_one_sees_more() -> None:
    first, second = laid_out([1] * 14, 10, 4, [])
    assert (first.turn, second.turn) == (8, None)
    assert ids_of(second) == list(range(4, 14))
    assert second.context == 6


def test_units_are_taken_as_windows_are() -> None:
    def endless() -> Iterator[Placed]:
        while True:
            yield 0, Unit((1,), (), (0,))

    found = pieces(endless(), room=8, overlap=2)
    assert [piece.tokens for piece in itertools.islice(found, 3) if piece is not None] == [8, 8, 8]


def test_there_is_a_pause_where_many_units_fill_no_window() -> None:
    taken = 0

    def empty() -> Iterator[Placed]:
        nonlocal taken
        for _ in range(1_000):
            taken += 1
            yield 0, Unit((), (), ())
        yield 0, Unit((1,), (), (0,))

    found = pieces(empty(), room=8, overlap=2)
    assert next(found) is None
    assert taken < 100
    assert [piece.tokens for piece in found if piece is not None] == [1]
