"""What a run is told as: the record of a run, and the answer of `POST /evaluate`. Pure.

INVARIANT: the same settings, documents and answers of models give the same bytes, but for the fields of `Times`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.gate import steps
from checkstream.gate.state import State
from checkstream.gate.terms import ClaimVerdict, EvidenceDocument, Prompt, Response, Run
from checkstream.grounding.decision import Decision
from checkstream.grounding.terms import Verdict

REGRESSION = 0.05
"""How much higher than that of the last deployed run a risk must be to count as a regression."""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """One claim with all that was found out about it."""

    claim: str
    label: Verdict
    justification: str
    source_prompt: str
    evidence: tuple[EvidenceDocument, ...]
    claim_id: str
    category: str
    evidence_ids: tuple[str, ...] = ()
    """Chunks that the verdict rests on."""
    degraded: tuple[str, ...] = ()


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The last deployed run of the same configuration, and whether this one is worse."""

    run_id: str
    target: str
    risk: float
    difference: float
    """This run's risk less that one's."""
    regression: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended."""

    run_id: str
    begun: float
    ended: float
    score: float
    decision: Decision
    reason: str
    total_claims: int
    supported: int
    unsupported: int
    weakly_supported: int
    contradicted: int
    not_checkable: int
    details: tuple[Detail, ...]
    use_case: str
    target: str
    verifier: str
    config_hash: str
    snapshot: str
    """Names the state of the trusted documents."""
    thresholds: dict[str, float]
    prompts: tuple[Prompt, ...]
    responses: tuple[Response, ...]
    baseline: Baseline | None = None


def compared(risk: float, decision: Decision, baseline: Run | None) -> Baseline | None:
    """Hold a run against the last deployed one of its configuration.

    Args:
        risk: of this run.
        decision: of this run.
        baseline: that run; None: there is none.
    """
    if baseline is None or baseline.risk is None:
        return None
    difference = round(risk - baseline.risk, 4)
    worse = decision != "deploy"  # a baseline was deployed, so anything else is worse
    return Baseline(
        run_id=baseline.run_id,
        target=baseline.target,
        risk=baseline.risk,
        difference=difference,
        regression=difference > REGRESSION or worse,
    )


def reported(state: State, run: Run, ended: float, baseline: Run | None) -> Report:
    """Put together what the steps wrote.

    Args:
        state: after the last step.
        run: as it began.
        ended: seconds since 1970.
        baseline: the last deployed run of the same configuration.
    """
    config, score = state.of(steps.CONFIG), state.of(steps.SCORE)
    prompts = state.of(steps.PROMPTS)
    labels = [verdict.label for verdict in state.of(steps.VERDICTS)]
    return Report(
        run_id=run.run_id,
        begun=run.begun,
        ended=ended,
        score=score.risk,
        decision=score.decision,
        reason=score.reason or "",
        total_claims=score.total_claims,
        supported=score.supported,
        unsupported=score.unsupported,
        weakly_supported=score.weakly_supported,
        contradicted=labels.count(Verdict.CONTRADICTED),
        not_checkable=labels.count(Verdict.NOT_CHECKABLE),
        details=_details(state, {prompt.id: prompt for prompt in prompts}),
        use_case=config.use_case,
        target=run.target,
        verifier=run.verifier,
        config_hash=run.config_hash,
        snapshot=run.snapshot,
        thresholds={"deploy": config.thresholds.deploy, "warn": config.thresholds.warn},
        prompts=prompts,
        responses=state.of(steps.RESPONSES),
        baseline=compared(score.risk, score.decision, baseline),
    )


def _details(state: State, prompts: dict[str, Prompt]) -> tuple[Detail, ...]:
    verdicts: Sequence[ClaimVerdict] = state.of(steps.VERDICTS)
    return tuple(
        Detail(
            claim=claim.text,
            label=verdict.label,
            justification=verdict.justification,
            source_prompt=prompts[claim.prompt_id].text,
            evidence=found.documents,
            claim_id=claim.id,
            category=prompts[claim.prompt_id].category,
            evidence_ids=verdict.evidence_ids,
            degraded=verdict.degraded,
        )
        for claim, found, verdict in zip(state.of(steps.CLAIMS), state.of(steps.EVIDENCE), verdicts, strict=True)
    )


def ended_run(run: Run, report: Report) -> Run:
    """Return the run with how it ended; that it failed before it went on is over."""
    return msgspec.structs.replace(
        run,
        failure=None,
        ended=report.ended,
        decision=report.decision,
        risk=report.score,
        total_claims=report.total_claims,
        supported=report.supported,
        weakly_supported=report.weakly_supported,
        unsupported=report.unsupported,
    )


def headline(report: Report) -> str:
    """Return the decision in one sentence."""
    counts = (
        f"{report.unsupported} of {report.total_claims} claims unsupported, {report.weakly_supported} weakly supported"
    )
    why = f" ({report.reason})" if report.reason else ""
    return f"{report.decision}: risk {report.score:.4f}, {counts}{why}"
