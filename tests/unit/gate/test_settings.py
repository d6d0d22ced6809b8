from __future__ import annotations

import pytest
import yaml

from checkstream.errors import GateError
from checkstream.gate.settings import GateSettings, settings_of

TARGET = {"provider": "openai", "model_id": "m", "url": "http://localhost:8000/v1"}
LEAST = {"use_case": "bot", "thresholds": {"deploy": 0.1, "warn": 0.25}, "model": TARGET}

SEED = """
use_case: "customer support chatbot for Acme Corp"
risk_tolerance:
  deploy_threshold: 0.10
  warn_threshold: 0.25
evaluation:
  num_prompts: 20
  prompt_categories:
    - factual_recall
    - edge_cases
    - policy_boundaries
    - ambiguous_queries
doc_sources:
  - type: s3
    bucket: acme-support-docs
    prefix: knowledge-base/
  - type: local
    path: ./docs/policies/
model:
  provider: bedrock
  model_id: "anthropic.claude-3-sonnet-20240229-v1:0"
elasticsearch:
  host: "https://my-cluster.es.amazonaws.com"
  index: "acme_trusted_docs"
"""


def test_the_file_of_the_design_is_read() -> None:
    found = settings_of(yaml.safe_load(SEED))
    assert (found.thresholds.deploy, found.thresholds.warn, found.num_prompts) == (0.10, 0.25, 20)
    assert found.documents == ("s3://acme-support-docs/knowledge-base/", "./docs/policies/")
    assert (found.store, found.index) == ("https://my-cluster.es.amazonaws.com", "acme_trusted_docs")
    assert found.target.name == "bedrock:anthropic.claude-3-sonnet-20240229-v1:0"
    assert found.judge is None


def test_the_flat_shape_of_the_design_means_the_same() -> None:
    found = settings_of(
        {
            "use_case": "customer support chatbot",
            "risk_tolerance": 0.15,
            "doc_sources": ["s3://company-docs/support/"],
            "num_prompts": 20,
            "thresholds": {"deploy": 0.10, "warn": 0.25},
            "target": {"provider": "ollama", "model_id": "llama3.2"},
        }
    )
    assert (found.num_prompts, found.documents) == (20, ("s3://company-docs/support/",))
    assert found.target.root == "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"thresholds": {"deploy": 0.3, "warn": 0.2}}, "thresholds must satisfy"),
        ({"model": None}, "`model` is missing"),
        ({"model": {**TARGET, "url": "localhost:8000"}}, "is not the address of a server"),
        ({"model": {**TARGET, "url": "http://user:pass@host"}}, "is not the address of a server"),
        ({"model": {**TARGET, "url": "file:///etc/passwd"}}, "is not the address of a server"),
        ({"model": {**TARGET, "url": ""}}, "is not the address of a server"),
        ({"model": {"provider": "bedrock", "model_id": "m", "url": "http://x"}}, "has no meaning for bedrock"),
        ({"model": {**TARGET, "provider": "other"}}, "provider"),
        ({"model": {**TARGET, "api_key": "sk-secret"}}, "api_key"),
        ({"model": "gpt"}, "target"),
        ({"judge": TARGET}, "none may verify its own output"),
        ({"judge": {**TARGET, "model_id": "M", "url": "http://localhost:8000"}}, "none may verify its own output"),
        ({"evaluation": {"num_prompts": 0}}, "num_prompts"),
        ({"evaluation": {"parallel": 1000}}, "parallel"),
        ({"evaluation": {"prompt_categorys": []}}, "`evaluation` has `prompt_categorys`, which is not known"),
        ({"evaluations": {}}, "the configuration has `evaluations`, which is not known"),
        ({"elasticsearch": {"index": "x"}}, "`elasticsearch` can't be read"),
        ({"elasticsearch": {"host": "https://x"}, "evidence": {"store": "sqlite:x"}}, "both say where documents are"),
        ({"use_case": ""}, "use_case"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, object], why: str) -> None:
    with pytest.raises(GateError, match=why):
        settings_of(LEAST | change)


@pytest.mark.parametrize("hostile", [None, [], "x", 7, {1: 2}, {"use_case": {}}, {"model": {"a": {"b": []}}}])
def test_hostile_shapes_are_refused(hostile: object) -> None:
    with pytest.raises(GateError):
        settings_of(hostile)


def test_a_model_may_verify_itself_where_that_is_said() -> None:
    found = settings_of({**LEAST, "judge": TARGET, "allow_same_model": True})
    assert found.judge == found.target


def test_runs_of_other_targets_are_compared_and_runs_of_other_demands_are_not() -> None:
    def of(**change: object) -> GateSettings:
        return settings_of(LEAST | change)

    assert of().fingerprint == of(model={**TARGET, "model_id": "newer"}).fingerprint
    assert of().fingerprint == of(evaluation={"parallel": 8}).fingerprint
    assert of().fingerprint != of(thresholds={"deploy": 0.1, "warn": 0.3}).fingerprint
    assert of().fingerprint != of(use_case="other").fingerprint
