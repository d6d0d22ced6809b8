from __future__ import annotations

from xml.etree import ElementTree as ET

import msgspec
import pytest

from checkstream.gate.history import comparison, trends
from checkstream.gate.markdown import junit, markdown
from checkstream.gate.page import page
from checkstream.gate.report import Baseline, Detail, Report, compared, headline
from checkstream.gate.terms import EvidenceDocument, Prompt, Response, Run
from checkstream.grounding.terms import Verdict

HOSTILE = '<script>alert(1)</script> | `x` "quoted" & ]]> \x00\x1b[31m\ud800 @everyone [a](http://b)\n# head'


def report(**change: object) -> Report:
    document = EvidenceDocument(chunk_id="chunk", source="docs/returns.md", content="Within 30 days.", rank=1)
    known = Report(
        run_id="r1",
        begun=1_790_000_000.0,
        ended=1_790_000_060.0,
        score=0.5,
        decision="block",
        reason="",
        total_claims=2,
        supported=1,
        unsupported=1,
        weakly_supported=0,
        contradicted=1,
        not_checkable=0,
        details=(
            Detail(
                claim="Returns are free",
                label=Verdict.SUPPORTED,
                justification="said",
                source_prompt="What of returns?",
                evidence=(document,),
                claim_id="p1.c1",
                category="factual_recall",
                evidence_ids=("chunk",),
            ),
            Detail(
                claim="Returns take 90 days",
                label=Verdict.CONTRADICTED,
                justification="30 is not 90",
                source_prompt="What of returns?",
                evidence=(document,),
                claim_id="p1.c2",
                category="factual_recall",
            ),
        ),
        use_case="support bot",
        target="openai:m",
        verifier="embedded@1",
        config_hash="c",
        snapshot="s" * 64,
        thresholds={"deploy": 0.1, "warn": 0.25},
        prompts=(Prompt(id="p1", text="What of returns?", category="factual_recall"),),
        responses=(Response(prompt_id="p1", text="Returns are free and take 90 days."),),
    )
    return msgspec.structs.replace(known, **change)


def hostile() -> Report:
    known = report()
    (first, second) = known.details
    bad = msgspec.structs.replace(second, claim=HOSTILE, justification=HOSTILE, source_prompt=HOSTILE, category=HOSTILE)
    return report(
        use_case=HOSTILE,
        target=HOSTILE,
        details=(first, bad),
        prompts=(*known.prompts, Prompt(id="p2", text=HOSTILE, category="x")),
        responses=(Response(prompt_id="p1", text=HOSTILE),),
    )


def run(name: str, begun: float, risk: float, decision: str, **more: object) -> Run:
    known: dict[str, object] = {"config_hash": "c", "target": "openai:m", "verifier": "v", "snapshot": "s"}
    return Run(run_id=name, begun=begun, risk=risk, decision=decision, **(known | more))  # type: ignore[arg-type]


def test_markdown_begins_with_the_decision_and_lists_failing_claims_alone() -> None:
    text = markdown(report(baseline=Baseline(run_id="r0", target="t", risk=0.1, difference=0.4, regression=True)))
    assert text.startswith("## ⛔ block: support bot\n")
    assert "Returns take 90 days" in text
    assert "Returns are free" not in text
    assert "+0.4000 against `r0`, a regression" in text


def test_text_from_outside_can_not_leave_its_cell_in_markdown() -> None:
    text = markdown(hostile())
    row = next(line for line in text.splitlines() if line.startswith("| \\<script\\>"))
    assert row.count(" | ") == 3
    assert "<script>" not in text
    assert "@everyone" not in text
    assert "[a](" not in text


def test_junit_fails_each_unsupported_claim_and_the_decision() -> None:
    suite = ET.fromstring(junit(report()))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["openai:m", "p1.c2 Returns take 90 days"]
    deployed = ET.fromstring(junit(report(decision="deploy", details=report().details[:1])))
    assert deployed.get("failures") == "0"


def test_junit_of_hostile_text_is_xml() -> None:
    suite = ET.fromstring(junit(hostile()))
    assert "alert(1)" in (suite[2].get("name") or "")


def test_the_page_shows_claims_evidence_and_answers_and_escapes_them() -> None:
    text = page(hostile(), [run("r1", 1.0, 0.5, "block"), run("r0", 0.0, 0.1, "deploy")])
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "Within 30 days." in text
    assert text.count("<circle") == 2
    assert "default-src 'none'" in text
    assert "http://" not in text.replace("http://b", "")


def test_the_page_stands_without_claims_or_history() -> None:
    text = page(report(details=(), total_claims=0, supported=0, unsupported=0, contradicted=0, decision="warn"))
    assert "No claim was found in any answer." in text
    assert "NaN" not in text
    assert "nan" not in text


def test_the_headline_gives_the_reason() -> None:
    assert headline(
        report(decision="warn", reason="insufficient_claims", total_claims=0, unsupported=0, score=0.0)
    ) == ("warn: risk 0.0000, 0 of 0 claims unsupported, 0 weakly supported (insufficient_claims)")


@pytest.mark.parametrize(
    ("risk", "decision", "regression"),
    [
        (0.05, "deploy", False),
        (0.10, "deploy", False),
        (0.1001, "deploy", True),
        (0.06, "warn", True),
        (0.01, "block", True),
    ],
)
def test_a_run_that_is_worse_than_the_last_deployed_one_is_a_regression(
    risk: float, decision: str, *, regression: bool
) -> None:
    found = compared(risk, decision, run("r0", 0.0, 0.05, "deploy"))  # type: ignore[arg-type]
    assert found is not None
    assert found.regression is regression
    assert compared(risk, "block", None) is None


def test_trends_tell_regressions_from_the_last_deployed_run_of_the_same_configuration() -> None:
    runs = [
        run("a", 1.0, 0.05, "deploy"),
        run("b", 2.0, 0.20, "warn"),
        run("d", 3.0, 0.08, "deploy"),
        run("e", 4.0, 0.14, "deploy"),
        run("x", 9.0, 0.9, "block", config_hash="other"),
    ]
    other, ours = trends(list(reversed(runs)), [each for each in runs if each.decision == "deploy"], {})
    assert (other.config_hash, other.slope) == ("other", None)
    assert [(point.run_id, point.difference, point.regression) for point in ours.points] == [
        ("a", None, False),
        ("b", 0.15, True),
        ("d", 0.03, False),
        ("e", 0.06, True),
    ]
    assert ours.slope == pytest.approx(0.015)


def test_two_runs_are_compared_prompt_by_prompt() -> None:
    second = report(run_id="r2", target="openai:n", score=0.25, decision="warn", details=report().details[:1])
    found = comparison(report(), second)
    assert (found.difference, found.comparable, found.decision) == (-0.25, True, ("block", "warn"))
    assert found.prompts[0].first == {"supported": 1, "contradicted": 1}
    assert found.prompts[0].second == {"supported": 1}
    assert not comparison(report(), report(snapshot="t")).comparable
