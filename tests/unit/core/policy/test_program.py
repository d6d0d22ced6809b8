from __future__ import annotations

from pathlib import Path

from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import (
    Allow,
    AnyAction,
    LogEvent,
    Op,
    Redact,
    Reject,
    RuleMeta,
    Signal,
    Stop,
    disassemble,
)
from checkstream.core.terms import Stage

TEXT = """pack: {name: p, version: 1.0.0}
policies:
  - name: r
    id: R-1
    stage: [midstream]
    channels: [content]
    match: all
    phrases: [zero risk]
    classifiers: [{name: toy.alpha, threshold: 0.5}]
    actions: [{type: stop}]
"""


def test_placeholders_and_titles() -> None:
    assert Signal(kind="entity", name="EMAIL", regex="x").placeholder == "[EMAIL]"
    for kind in ("pattern", "phrase", "classifier"):
        assert Signal(kind=kind, name="n").placeholder == "[REDACTED]"
    assert Signal(kind="phrase", name="zero risk").title == "phrase:zero risk"
    assert Signal(kind="classifier", name="toy.alpha").classifier == "toy"


def test_what_holds_text() -> None:
    def rule(mode: str, *actions: AnyAction) -> RuleMeta:
        return RuleMeta(
            id="R",
            name="r",
            pack="p",
            version="1",
            stages=frozenset({Stage.MIDSTREAM}),
            channels=frozenset({"content"}),
            mode=mode,  # type: ignore[arg-type]
            actions=actions,
            triggers=(),
            thresholds=(),
        )

    assert all(rule("enforce", action).holds for action in (Allow(), Reject(), Redact(), Stop()))
    assert not rule("enforce", LogEvent()).holds
    assert rule("enforce", LogEvent(), Redact()).holds
    assert not rule("shadow", Redact()).holds


def test_disassembly_names_everything() -> None:
    program = compile_sources([("p.yaml", TEXT)], [ClassifierLabel("toy.alpha")])
    assert disassemble(program).splitlines() == [
        f"program {program.hash}",
        "pack p@1.0.0",
        "const 0 = 0.5",
        "signal 0 = phrase:zero risk",
        "signal 1 = classifier:toy.alpha",
        "rule R-1 enforce [midstream: content] -> stop",
        "  on signal 0 1",
        "        0 SEEN          0      ; phrase:zero risk",
        "        1 JUMP_IF_FALSE 5",
        "        2 SCORE         1      ; classifier:toy.alpha",
        "        3 CONST         0      ; 0.5",
        "        4 AT_LEAST",
        "        5 RETURN",
    ]


def test_every_opcode_is_carried_out_by_the_machine() -> None:
    source = (Path(__file__).parents[4] / "checkstream" / "core" / "policy" / "vm.py").read_text(encoding="utf-8")
    named = {op.name for op in Op if f"Op.{op.name}" in source}
    assert named | {"RETURN"} == {op.name for op in Op}
