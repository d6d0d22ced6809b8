"""What the vault keeps of names, within bounds, and of answers whose ids come again (G22, G38)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import ForwardRequest, KeepNames, RecallNames
from checkstream.core.events import (
    NamesKept,
    NamesKnown,
    RequestReceived,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from checkstream.sealed.sqlite_store import SqliteStore
from checkstream.sealed.store import Store
from checkstream.sealed.vault import Vault
from tests import responses
from tests.chance import examples
from tests.guarded import plan
from tests.playbook import Exchange

SECRET = bytes(range(32))
RULES = "  - {name: p, id: PSN-1, entities: [EMAIL], actions: [{type: pseudonymise}]}\n"
MEGABYTE = 1 << 20


def vault(store: Store | None = None, most_bytes: int = MEGABYTE) -> Vault:
    return Vault(store or MemoryStore(), Seal(SECRET), ttl_s=1000, most_bytes=most_bytes)


def kept(names: Vault, state: bytes, by: str = "app", seen: int = 0, *, of: str = "c", later: bool = False) -> bool:
    told = asyncio.run(names.keep(by, KeepNames(of, state, seen, later)))
    return isinstance(told, NamesKept)


def known(names: Vault, by: str = "app", of: str = "c") -> bytes | None:
    return asyncio.run(names.recall(by, RecallNames(of))).state


class Upstream:
    """A provider that keeps answers, and gives their ids as it likes; a proxy before it that keeps names."""

    def __init__(self, names: Vault, name: str) -> None:
        self.names = names
        self.plan = plan(RULES, keeps_names=True, upstream=name)

    def ask(self, prompt: str, says: str, answer: str, after: str | None = None) -> tuple[str, str]:
        """Return what the model gets, and what its caller reads."""
        exchange = Exchange(responses.RESPONSES, self.plan)
        exchange.send(RequestReceived(responses.request(prompt, previous_response_id=after), "app"))
        while not any(isinstance(command, ForwardRequest) for command in exchange.out.commands):
            command = exchange.out.commands[-1]
            assert isinstance(command, RecallNames)
            exchange.send(asyncio.run(self.names.recall("app", command)))
        assert exchange.out.forwarded is not None
        came = responses.answer(responses.message(says)).replace(b"resp_1", answer.encode())
        for event in (UpstreamOpened(200, streaming=True), UpstreamBytes(came), UpstreamClosed()):
            exchange.send(event)
        for command in exchange.out.commands:
            if isinstance(command, KeepNames):
                asyncio.run(self.names.keep("app", command))
        told = responses.read(exchange.out.joined)["output"][0]["content"][0]["text"]
        return json.loads(exchange.out.forwarded)["input"], told


@pytest.mark.parametrize("second", ["Ask bob@y.io.", "Ask nobody."])
def test_g38_two_answers_of_one_id_give_nobody_the_other_s_names(second: str) -> None:
    """An upstream that counts its answers, and was started again."""
    upstream = Upstream(vault(), "local")
    assert upstream.ask("Ask ann@x.io.", "<EMAIL_1>", "r-1") == ("Ask <EMAIL_1>.", "ann@x.io")
    upstream.ask(second, "<EMAIL_1>", "r-1")
    assert upstream.ask("Who?", "<EMAIL_1>", "r-2", after="r-1") == ("Who?", "<EMAIL_1>")
    upstream.ask("Ask eve@z.io.", "<EMAIL_1>", "r-1")  # a third is none of the two either
    assert upstream.ask("Who?", "<EMAIL_1>", "r-3", after="r-1") == ("Who?", "<EMAIL_1>")


def test_g38_answers_of_two_upstreams_may_have_one_id() -> None:
    names = vault()
    one, two = Upstream(names, "one"), Upstream(names, "two")
    one.ask("Ask ann@x.io.", "", "r-1")
    two.ask("Ask bob@y.io.", "", "r-1")
    assert one.ask("Who?", "<EMAIL_1>", "r-2", after="r-1")[1] == "ann@x.io"
    assert two.ask("Who?", "<EMAIL_1>", "r-2", after="r-1")[1] == "bob@y.io"
    assert two.ask("Who?", "<EMAIL_1>", "r-3", after="r-9")[1] == "<EMAIL_1>"


PEOPLE = st.sampled_from(["", "ann@x.io", "bob@y.io", "eve@z.io"])


@given(st.lists(st.tuples(PEOPLE, st.sampled_from(["r-1", "r-2"]), st.sampled_from(["", "r-1", "r-2"])), max_size=8))
@settings(max_examples=examples(60), deadline=None)
def test_g38_whatever_ids_answers_have_nothing_comes_back_that_was_not_said_before_them(
    asked: list[tuple[str, str, str]],
) -> None:
    """What the history of each answer of an id has: a value comes back only if all of them have it."""
    upstream = Upstream(vault(), "local")
    histories: dict[str, list[frozenset[str]]] = {}
    for person, answer, after in asked:
        of = histories.get(after, []) if after else []
        may = frozenset({person}) | (frozenset.intersection(*of) if of else frozenset())
        _, told = upstream.ask(f"Ask {person}.", "<EMAIL_1> <EMAIL_2>", answer, after or None)
        assert {word for word in told.split() if "@" in word} <= may
        histories.setdefault(answer, []).append(may)


def test_an_answer_that_is_kept_twice_alike_is_one() -> None:
    names = vault()
    assert kept(names, b"a", later=True)
    assert kept(names, b"a", later=True)
    assert known(names) == b"a"
    assert not kept(names, b"b", later=True)
    assert known(names) is None


def test_g22_names_have_a_bound_of_bytes_and_who_has_most_loses_first() -> None:
    store = MemoryStore()
    names = vault(store, most_bytes=100_000)
    assert kept(names, b"x" * 1000, by="modest", of="mine")
    for number in range(400):
        assert kept(names, b"x" * 1000, by="greedy", of=f"c{number}")
        assert store.size <= 100_000
    assert known(names, by="modest", of="mine") == b"x" * 1000
    assert known(names, by="greedy", of="c0") is None
    assert known(names, by="greedy", of="c399") == b"x" * 1000


def test_g22_a_file_of_names_keeps_to_its_bound(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "names.db")
    names = vault(store, most_bytes=50_000)
    for number in range(100):
        assert kept(names, b"x" * 1000, of=f"c{number}")
    assert 20 < store.count() < 50
    assert known(names, of="c0") is None
    assert known(names, of="c99") is not None
    names.close()


def test_g38_names_that_were_forgotten_are_nobody_and_new_ones_are_not_mistaken_for_them() -> None:
    names = vault(most_bytes=20_000)
    upstream = Upstream(names, "local")
    upstream.ask("Ask ann@x.io.", "", "r-1")
    for number in range(40):
        kept(names, b"x" * 500, of=f"other {number}")
    sent, told = upstream.ask("And bob@y.io?", "<EMAIL_1>", "r-2", after="r-1")
    assert told == "<EMAIL_1>"
    assert "<EMAIL_1>" not in sent != "And bob@y.io?"


def test_what_runs_goes_on_where_its_names_were_forgotten_meanwhile() -> None:
    names = vault()
    told = asyncio.run(names.keep("app", KeepNames("c", b"new", 3)))
    assert told == NamesKnown(None, 0)
    assert kept(names, b"new")
