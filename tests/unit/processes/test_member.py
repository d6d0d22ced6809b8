"""What a worker takes up at its start."""

from __future__ import annotations

import os
import socket

import msgspec

from checkstream.listen import board
from checkstream.listen.board import Board, Pages
from checkstream.processes import frames
from checkstream.processes.frames import Welcome, derived
from checkstream.processes.member import Member

SECRET = b"s" * 32


class Older(msgspec.Struct, frozen=True, array_like=True):
    """`Welcome` of a version that knew no other machines."""

    slot: int
    slots: int
    first: bool
    secret: bytes
    began: float
    page: int
    graphs: str


def keys_of(welcome: msgspec.Struct) -> tuple[int, int]:
    """Return a key on the board of a worker that hears this, and what its parent finds under it."""
    shared = board.make()
    pages = Pages(shared, 0)
    look = Board(shared, pages.take(), SECRET)
    assert pages.take() == 1
    ours, theirs = socket.socketpair()
    store, kept = socket.socketpair()
    with ours, kept, socket.create_server(("127.0.0.1", 0)) as listening:
        frames.send_with(ours, welcome, [store.fileno(), shared, listening.fileno()])
        member = Member(theirs)
        key = member.board.key("streams", "", "a")
        assert member.board.write(key, 3)
        found = look.elsewhere(key)
        assert [len(each) for each in member.sockets] == [1]
        for each in (*member.sockets[0], theirs, store):
            each.close()
        member.store.close()
    os.close(shared)
    return key, found


def key_under(secret: bytes) -> int:
    shared = board.make()
    key = Board(shared, 0, secret).key("streams", "", "a")
    os.close(shared)
    return key


def test_a_parent_of_the_version_before_the_fleet_gets_a_worker_that_counts_as_its_others_do() -> None:
    """The program on disk is another one by then, until the parent is told to follow."""
    assert keys_of(Older(0, 1, False, SECRET, 0.0, 1, "")) == (key_under(derived(SECRET, "board")), 3)


def test_a_worker_counts_under_the_secret_of_all_machines_or_of_its_parent() -> None:
    assert keys_of(Welcome(0, 1, False, SECRET, 0.0, 1, "")) == (key_under(derived(SECRET, "board")), 3)
    assert keys_of(Welcome(0, 1, False, SECRET, 0.0, 1, "", b"f" * 32)) == (key_under(b"f" * 32), 3)
