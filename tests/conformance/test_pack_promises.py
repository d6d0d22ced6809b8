"""What the packs that come with the package promise their readers: sources, limits, and that they run anywhere."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from checkstream.cli.sources import installed_labels
from checkstream.core.policy.capabilities import Target
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.errors import PolicyError
from checkstream.trial.cases import Case, read_cases

POLICIES = Path(__file__).parents[2] / "policies"
PACKS = sorted(path.parent for path in POLICIES.glob("*/policy.yaml"))
WRITTEN_FOR_AN_INDUSTRY = [pack for pack in PACKS if pack.name != "default"]
LABELS = installed_labels()
BARE = Target(route="chat", surface="openai.chat", upstream="local", can=frozenset())


def compiled(*packs: Path) -> Program:
    sources = [(f"builtin:{pack.name}", (pack / "policy.yaml").read_bytes()) for pack in packs]
    return compile_sources(sources, LABELS, [BARE])


def cases(pack: Path) -> tuple[Case, ...]:
    rules = {rule.id for rule in compiled(pack).rules}
    read = read_cases(pack.name, (pack / "tests.yaml").read_bytes(), rules, [label.name for label in LABELS])
    return tuple(case.value for case in read)


def test_the_packs_are_there() -> None:
    assert {pack.name for pack in PACKS} == {
        "default",
        "eu-ai-act-transparency",
        "fca-consumer-duty",
        "finra",
        "gdpr-pii",
        "hipaa-phi",
        "owasp-llm-top10",
        "pci-dss",
        "pseudonyms",
        "self-harm-support",
        "source-code-and-secrets",
    }


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_g08_a_pack_runs_on_an_upstream_that_can_do_nothing_special(pack: Path) -> None:
    assert compiled(pack).rules


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_the_page_of_the_packs_says_which_can_not_run_on_completions(pack: Path) -> None:
    page = " ".join((POLICIES / "README.md").read_text("utf-8").split())
    listed = page.partition("The packs `")[2].partition(" can't run on a route of `/v1/completions`")[0]
    target = Target(route="r", surface="openai.completions", upstream="local", can=frozenset())
    source = (pack.name, (pack / "policy.yaml").read_bytes())
    if f"{pack.name}`" in listed:
        with pytest.raises(
            PolicyError, match=r"needs the API `anthropic\.messages` or `ollama\.chat` or `openai\.chat`"
        ):
            compile_sources([source], LABELS, [target])
    else:
        assert compile_sources([source], LABELS, [target]).rules


def test_all_packs_load_together_and_share_no_id() -> None:
    program = compiled(*PACKS)
    assert len(program.packs) == len(PACKS)
    assert len({rule.id for rule in program.rules}) == len(program.rules)


@pytest.mark.parametrize("pack", WRITTEN_FOR_AN_INDUSTRY, ids=lambda pack: pack.name)
def test_every_rule_says_what_it_serves_and_what_it_does_not_cover(pack: Path) -> None:
    for rule in compiled(pack).rules:
        assert rule.regulation, rule.id
        assert (rule.citation or "").startswith("https://"), rule.id
        assert rule.severity, rule.id
        assert rule.owner, rule.id
        assert "Does not cover: " in (rule.description or ""), rule.id


@pytest.mark.parametrize("pack", WRITTEN_FOR_AN_INDUSTRY, ids=lambda pack: pack.name)
def test_the_head_of_a_pack_says_what_it_leaves_out_and_names_the_context_that_it_reads(pack: Path) -> None:
    text = (pack / "policy.yaml").read_text("utf-8")
    head = "".join(itertools.takewhile(lambda line: line.startswith("#"), text.splitlines(keepends=True)))
    assert "What it is for:" in head
    assert "What it does not cover:" in head
    for rule in compiled(pack).rules:
        for condition in rule.conditions:
            for word in condition.replace("(", " ").replace(")", " ").split():
                if word.startswith("context.") and word.count(".") > 1:
                    assert word in head, (rule.id, word)


@pytest.mark.parametrize("pack", WRITTEN_FOR_AN_INDUSTRY, ids=lambda pack: pack.name)
def test_every_pack_has_eight_benign_cases_that_pass_untouched(pack: Path) -> None:
    benign = [case for case in cases(pack) if case.name.startswith("benign, ")]
    assert len(benign) >= 8
    for case in benign:
        assert case.expect.action == "allow", case.name
        assert case.expect.output is None, case.name


@pytest.mark.parametrize("pack", WRITTEN_FOR_AN_INDUSTRY, ids=lambda pack: pack.name)
def test_every_rule_has_a_case_in_which_it_fires(pack: Path) -> None:
    fired = {rule for case in cases(pack) for rule in case.rules}
    assert {rule.id for rule in compiled(pack).rules if rule.mode != "disabled"} <= fired


def test_the_readme_lists_every_pack() -> None:
    page = (POLICIES / "README.md").read_text("utf-8")
    for pack in PACKS:
        assert f"| [{pack.name}]({pack.name}/policy.yaml) |" in page
