"""What the default pack alters of harmless exchanges of agents and of coding assistants stays as measured, or less."""

from __future__ import annotations

import pytest

from bench.overblocking import KINDS, altered, transcripts, without_spares
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program

MOST = {"agents": 1, "coding": 3}
"""Of fifty. What is left: an address that only a tool has named, authors in a log, AWS's own example key, a sequence of
numbers that reads like a telephone's."""


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_sources(read_sources(["builtin:default"]), installed_labels())


@pytest.mark.parametrize("kind", KINDS)
def test_harmless_exchanges_come_as_they_were_written(kind: str, program: Program) -> None:
    exchanges = transcripts(kind)
    assert len(exchanges) == 50
    found = altered(program, exchanges)
    assert len(found) <= MOST[kind], [each.after for each in found]
    before = altered(without_spares(program), exchanges)
    assert len(before) >= 3 * len(found), "sparing what the caller has is what makes the difference"
