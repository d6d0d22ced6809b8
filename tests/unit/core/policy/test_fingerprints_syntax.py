"""Triggers on recitals: read, checked, compiled and stored."""

from __future__ import annotations

import re

import pytest

from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.explain import explain
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.program import RecitedTexts
from checkstream.core.policy.stored import load, stored
from checkstream.core.terms import Stage
from checkstream.errors import PolicyError, ProgramInvalid
from tests.fingerprinted import BOOKS, KEEPER, compiled, file_of, sources

RULE = "  - {name: r, id: R-1, stage: [midstream], fingerprints: [ENTRY], actions: [{type: redact}]}\n"
PROGRAM = compiled(RULE.replace("ENTRY", "{file: books.fp}"))
DIGEST = Fingerprints(BOOKS).digest


def rule(entry: str) -> str:
    return RULE.replace("ENTRY", entry)


def faults(entry: str, **files: bytes) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        compiled(rule(entry), **files)
    return [f"{fault.column}: {fault.reason}; {fault.advice}" for fault in raised.value.faults]


def test_a_rule_names_texts_by_their_digest_and_of_how_many_words_a_recital_is() -> None:
    (signal,) = PROGRAM.signals
    assert (signal.kind, signal.name, signal.title) == ("recital", "books.fp", "recital:books.fp")
    assert signal.texts == RecitedTexts(digest=DIGEST, words=12)
    (longer,) = compiled(rule("{file: books.fp, words: 30}")).signals
    assert longer.texts == RecitedTexts(digest=DIGEST, words=30)
    assert PROGRAM.scope(Stage.MIDSTREAM, "content").hold.recited
    assert not PROGRAM.searched


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{words: 12}", "an entry of `fingerprints` needs the key `file`"),
        ("books.fp", "an entry of `fingerprints` must be a mapping"),
        ("{file: books.fp, most: 1}", "an entry of `fingerprints` has no key `most`"),
        ("{file: other.fp}", "the file `other.fp` is not there, or can't be read; its path starts at the policy's"),
        ("{file: ../books.fp}", "the file `../books.fp` is not beside the policy; give a relative path"),
        ("{file: /etc/books.fp}", "the file `/etc/books.fp` is not beside the policy"),
        ("{file: books.fp, words: 11}", "finds recitals of 12 words and more, not of 11; make it with `checkstream"),
        ("{file: books.fp, words: 0}", "`words`"),
        ("{file: books.fp, words: 201}", "`words`"),
        ("{file: books.fp, words: many}", "`words`"),
        ("{file: torn.fp}", "the file `torn.fp` can't be used: it has"),
        ("{file: none.fp}", "the file `none.fp` can't be used: it is no file of fingerprints; make one with"),
        ("{file: wrong.fp}", "the file `wrong.fp` can't be used: its checksum is wrong"),
        ("{file: books.fp}, {file: books.fp}", "recital `books.fp` stands twice in the rule"),
        ("{file: books.fp}, {file: books.fp, words: 20}", "recital `books.fp` stands twice in the rule"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(entry: str, says: str) -> None:
    files = {"torn": BOOKS[:-8], "none": b"one value a line\n", "wrong": BOOKS[:-1] + bytes([BOOKS[-1] ^ 1])}
    found = faults(entry, **files)
    assert len(found) == 1
    assert says in found[0]


def test_a_damaged_file_that_is_named_twice_is_reported_at_both_places() -> None:
    twice = rule("{file: torn.fp}") + rule("{file: torn.fp}").replace("R-1", "R-2")
    with pytest.raises(PolicyError) as raised:
        compile_sources(sources(twice, torn=BOOKS[:-8]))
    assert [fault.line for fault in raised.value.faults] == [3, 4]


def test_fingerprints_stand_in_groups_beside_phrases_and_are_counted_in_conditions() -> None:
    text = """  - name: g
    id: G-1
    stage: [midstream]
    triggers: {all: [{fingerprints: [{file: books.fp}]}, {phrases: [lighthouse]}]}
    conditions: ['findings["books.fp"] > 0']
    actions: [{type: redact}]
"""
    (report,) = explain(compiled(text), Stage.MIDSTREAM, "content", f"So: {KEEPER}")
    assert report.outcome == "fired"
    assert [trigger.held for trigger in report.triggers] == [True, True]


def test_what_recites_is_explained_and_what_does_not_is_not() -> None:
    (report,) = explain(PROGRAM, Stage.MIDSTREAM, "content", f"He wrote: {KEEPER}")
    assert report.outcome == "fired"
    assert report.triggers[0].spans[0].start == 10
    (report,) = explain(PROGRAM, Stage.MIDSTREAM, "content", KEEPER[:50])
    assert report.outcome == "not_fired"


def test_a_policy_that_extends_another_takes_its_texts_over() -> None:
    more = (
        rule("{file: books.fp}") + "  - {id: R-2, extends: R-1, name: s, stage: [ingress], actions: [{type: reject}]}\n"
    )
    program = compiled(more)
    assert len(program.signals) == 1
    assert program.scope(Stage.INGRESS, "user").hold.recited


def test_a_stored_program_is_loaded_with_its_texts_and_never_without() -> None:
    texts = {DIGEST: Fingerprints(BOOKS)}
    again = load(stored(PROGRAM), PROGRAM.hash, texts)
    assert again.hash == PROGRAM.hash
    assert again.scope(Stage.MIDSTREAM, "content").hold.recited[0].texts is texts[DIGEST]
    with pytest.raises(ProgramInvalid, match=f"`books.fp` with the digest `{DIGEST}`; give that file"):
        load(stored(PROGRAM), PROGRAM.hash)
    others = Fingerprints(file_of([KEEPER.upper() + " and so on"]))
    with pytest.raises(ProgramInvalid, match="give that file"):
        load(stored(PROGRAM), PROGRAM.hash, {others.digest: others})


def test_other_texts_or_another_length_make_another_program() -> None:
    other = file_of([KEEPER.replace("lighthouse", "windmill")])
    programs = [
        PROGRAM,
        compiled(rule("{file: books.fp}"), books=other),
        compiled(rule("{file: books.fp, words: 13}")),
    ]
    assert len({program.hash for program in programs}) == 3
    assert compiled(rule("{file: books.fp}")).hash == PROGRAM.hash
    assert "signal 0 = recital:books.fp" in disassemble(PROGRAM)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"kind":"recital"', b'"kind":"phrase"', "is not what this version knows"),
        (b'"kind":"recital"', b'"kind":"pattern"', "is not what this version knows"),
        (b'"words":12', b'"words":11', "finds no recitals of 11 words"),
        (b'"words":12', b'"words":0', "not a stored program"),
        (DIGEST.encode(), b"x" * 64, "not a stored program"),
    ],
)
def test_a_stored_program_that_was_tampered_with_is_refused(old: bytes, new: bytes, says: str) -> None:
    data = stored(PROGRAM)
    assert old in data
    with pytest.raises(ProgramInvalid, match=says):
        load(data.replace(old, new), texts={DIGEST: Fingerprints(BOOKS)})


def test_a_recital_without_texts_is_refused() -> None:
    data = re.sub(rb',"texts":\{[^}]*\}', b"", stored(PROGRAM))
    with pytest.raises(ProgramInvalid, match="is not what this version knows"):
        load(data, texts={DIGEST: Fingerprints(BOOKS)})


def test_programs_without_texts_are_stored_as_they_were() -> None:
    phrases = compiled("  - {name: p, id: P-1, stage: [midstream], phrases: [a b], actions: [{type: redact}]}\n")
    assert b"texts" not in stored(phrases)
