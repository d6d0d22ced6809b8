"""Programs that come from elsewhere: each is what the compiler makes, or refused."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.stored import MAX_BYTES, load, stored
from checkstream.errors import ProgramInvalid
from tests.stored_programs import SPOILED, plain, program


def test_a_program_comes_back_as_it_was() -> None:
    one = program()
    again = load(stored(one), one.hash)
    assert stored(again) == stored(one)
    assert (again.hash, again.rules, again.entries, again.code) == (one.hash, one.rules, one.entries, one.code)
    assert (again.constants, again.packs, again.bare) == (one.constants, one.packs, one.bare)
    assert again.scopes.keys() == one.scopes.keys()
    for key, scope in one.scopes.items():
        other = again.scopes[key]
        for field in scope.__struct_fields__:
            if field not in {"hold", "watch"}:
                assert getattr(other, field) == getattr(scope, field), field
        assert (other.hold.patterns, other.watch.patterns) == (scope.hold.patterns, scope.watch.patterns)


def test_the_hash_is_that_of_the_stored_form_and_is_asked_for() -> None:
    one = program()
    assert one.hash == hashlib.sha256(stored(one)).hexdigest()
    with pytest.raises(ProgramInvalid, match="has the hash"):
        load(stored(one), "0" * 64)


def test_the_stored_form_says_its_version_and_is_no_larger_than_it_must_be() -> None:
    data = stored(program())
    assert data.startswith(b'{"format":"checkstream.program.')
    assert b"\n" not in data


def test_an_empty_program_comes_back() -> None:
    empty = compile_sources([])
    assert load(stored(empty), empty.hash).rules == ()


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"[]", b"\xff", b'{"format":' + b"[" * 100_000, b" " * 10])
def test_what_is_no_stored_program_is_refused(data: bytes) -> None:
    with pytest.raises(ProgramInvalid, match="not a stored program"):
        load(data)


def test_a_program_above_the_limit_is_not_even_read() -> None:
    with pytest.raises(ProgramInvalid, match="limit"):
        load(b"x" * (MAX_BYTES + 1))


@pytest.mark.parametrize("spelling", [lambda data: data + b"\n", lambda data: data.replace(b":", b": ", 1)])
def test_another_spelling_of_the_same_data_is_refused(spelling: object) -> None:
    assert callable(spelling)
    with pytest.raises(ProgramInvalid, match="canonical"):
        load(spelling(stored(program())))


def test_plain_data_is_the_stored_form() -> None:
    assert msgspec.json.encode(plain()) == stored(program())


@pytest.mark.parametrize("what", sorted(SPOILED))
def test_a_spoiled_program_is_refused(what: str) -> None:
    data = plain()
    SPOILED[what](data)
    written = msgspec.json.encode(data)
    assert written != stored(program())
    with pytest.raises(ProgramInvalid) as raised:
        load(written)
    assert "canonical" not in str(raised.value)
    assert len(str(raised.value)) < 1000
