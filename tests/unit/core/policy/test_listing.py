from __future__ import annotations

from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.stored import load, stored
from tests.stored_programs import program

TEXT = """pack: {name: p, version: 1.0.0}
policies:
  - name: r
    id: R-1
    stage: [midstream]
    channels: [content]
    match: all
    phrases: [zero risk]
    classifiers: [{name: toy.alpha, threshold: 0.5}]
    conditions: ["request.model == 'm'"]
    enabled_when: request.stream
    actions: [{type: stop}]
  - {name: s, id: R-2, stage: [egress], channels: [content], phrases: [zero risk], actions: [{type: log_event}]}
"""


def test_a_listing_names_everything() -> None:
    made = compile_sources([("p.yaml", TEXT)], [ClassifierLabel("toy.alpha")])
    assert disassemble(made).splitlines() == [
        f"program {made.hash}",
        "pack p@1.0.0",
        "signal 0 = phrase:zero risk",
        "signal 1 = classifier:toy.alpha",
        "rule R-1 enforce [midstream: content] all(phrase:zero risk, classifier:toy.alpha) -> stop",
        "  enabled when",
        "    0019  LOAD        request.stream",
        "    0020  RETURN",
        "  on phrase:zero risk classifier:toy.alpha>=0.5",
        "    0000  LOAD        found(phrase:zero risk)",
        "    0001  SKIP_FALSE  -> 0009",
        "    0002  LOAD        scored(classifier:toy.alpha)",
        "    0003  SKIP_FALSE  -> 0008",
        "    0004  LOAD        score(classifier:toy.alpha)",
        "    0005  CONST       0.5",
        "    0006  CALL2       _>=_",
        "    0007  AND",
        "    0008  AND",
        "    0009  SKIP_FALSE  -> 0014",
        "    0010  LOAD        request.model",
        "    0011  CONST       'm'",
        "    0012  CALL2       _==_",
        "    0013  AND",
        "    0014  RETURN",
        "rule R-2 enforce [egress: content] phrase:zero risk -> log_event",
        "  on phrase:zero risk: fires",
    ]


def test_a_listing_has_every_signal_rule_and_start() -> None:
    made = program()
    listing = disassemble(made)
    for signal in made.signals:
        assert f"= {signal.title}\n" in listing
    for rule in made.rules:
        assert f"rule {rule.id} {rule.mode} " in listing
    for start in {entry.start for entry in made.entries if entry.start >= 0}:
        assert f"    {start:04}  " in listing


def test_a_stored_program_has_the_same_listing() -> None:
    assert disassemble(load(stored(program()))) == disassemble(program())
