"""What comes of one text under a policy: for people who write policies and ask what their rules do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent
from checkstream.core.exchange.ingress.known import told_of
from checkstream.core.exchange.meter import Meter
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.program import Program
from checkstream.core.terms import Span, Told
from checkstream.core.wire.surfaces import SURFACES
from checkstream.trial.cases import Case
from checkstream.trial.run import run, scripted
from checkstream.trial.script import Cut, request_body

_SURFACE = "openai.chat"


class Exempt(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that fired and was kept from acting by a rule with `allow`."""

    rule_id: str
    by: str
    spans: tuple[Span, ...]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of a text."""

    action: str
    """The strictest that is carried out."""
    texts: dict[str, str]
    """Channel -> what stands in it afterwards: for the caller, or of a prompt for the model."""
    error: str = ""
    """What an error tells the caller, empty when none does."""
    exempt: tuple[Exempt, ...] = ()
    degraded: tuple[str, ...] = ()
    """What was checked less than it should have been, or could not be done."""


def explained(case: Case, plan: Plan, labels: Sequence[str]) -> Explained:
    """Run an exchange through a real guard and return what comes of the text that the case looks at.

    Scores and entities of the case are said of that text alone; of the rest of the exchange classifiers say 0.
    """
    script = scripted(case, labels)
    beside = scripted(msgspec.structs.replace(case, scores=(), entities={}), labels)

    def answers(score: Score) -> AnyEvent | None:
        return (script if score.ingress is not bool(case.texts) else beside)(score)

    ran = run(case, plan, answers, Cut("stream"))
    exempt = (
        Exempt(rule_id=verdict.rule_id, by=verdict.excepted_by, spans=verdict.spans)
        for verdict in ran.verdicts
        if verdict.excepted_by is not None
    )
    return Explained(
        action=ran.action,
        texts=_texts(case, ran.texts, ran.outputs),
        error=ran.error,
        exempt=tuple(exempt),
        degraded=ran.record.degradations if ran.record is not None else (),
    )


def told_in(program: Program, case: Case) -> Told:
    """Return what stands in a case's prompt, as far as triggers spare it."""
    request = SURFACES[_SURFACE].read_request(request_body(case, streaming=True))
    reading = told_of(program, request, Meter(turn=0, budget=0), lambda _: None)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            told: Told = end.value
            return told


def _texts(case: Case, read: Mapping[str, str], outputs: Sequence[str]) -> dict[str, str]:
    """Return what goes on of the text's channel, and what rules have written into others."""
    if case.kind == "document":
        return {}  # the caller's documents are read and not forwarded
    if not case.texts:
        return dict.fromkeys((case.kind,), *outputs)
    found = {case.kind: "".join(outputs)}
    for name, text in read.items():
        kind = name.partition("/")[0]
        if kind not in (case.kind, "extra", "error", "tool_name", "tool_arguments") and text:
            found[kind] = found.get(kind, "") + text
    return found
