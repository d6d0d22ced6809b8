from __future__ import annotations

import pytest
import yaml

from checkstream.errors import GateError
from checkstream.gate.config_file import normalised, read_yaml, settings_of
from checkstream.gate.settings import GateSettings

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
    assert found.doc_sources == ("s3://acme-support-docs/knowledge-base/", "./docs/policies/")
    assert (found.store, found.index) == ("https://my-cluster.es.amazonaws.com", "acme_trusted_docs")
    assert found.embedder == "model"
    assert settings_of({**LEAST, "evidence": {"store": "sqlite:x", "embedder": "titan"}}).embedder == "titan"
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
    assert (found.num_prompts, found.doc_sources) == (20, ("s3://company-docs/support/",))
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
        ({"evidence": {"store": "sqlite:x", "embedder": "openai"}}, "embedder"),
        ({"evidence": {"store": "sqlite:x", "embeder": "titan"}}, "`evidence` can't be read"),
        ({"history": "runs.db"}, "no address of a history"),
        ({"history": "https://user:password@h"}, "no address of a history"),
        ({"history": ["https://h"]}, "`history` is not a text"),
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


@pytest.mark.parametrize(
    "text",
    [
        "{", "[", "\x00", "use_case: 2026-13-45", "use_case: !!int x", "use_case: !!timestamp x",
        "use_case: !!float ''",
        "a: &a [x]\nb: *a", "? {a: b}\n: c", "- " * 3000, "!!python/object/apply:os.system [id]",
        "<<: 5", "use_case: !!bool q", "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_yaml_is_told(text: str) -> None:
    with pytest.raises(GateError, match=r"^`f` is no YAML"):
        read_yaml("f", text.encode())


def test_bytes_that_are_no_text_are_told_and_a_mark_of_byte_order_is_none_of_it() -> None:
    with pytest.raises(GateError, match=r"^`f` is no YAML"):
        read_yaml("f", b"\xff\xfe\x00")
    assert read_yaml("f", b"\xef\xbb\xbfa: 1") == {"a": 1}


def nested(depth: int) -> list[object]:
    found: list[object] = ["x"]
    for _ in range(depth):
        found = [found] * 9
    return found


@pytest.mark.parametrize("name", ["num_prompts", "prompt_categories", "prompt_library", "parallel", "min_claims"])
def test_what_would_take_for_ever_to_compare_is_refused_by_its_type(name: str) -> None:
    with pytest.raises(GateError, match=f"`{name}`"):
        settings_of({**LEAST, name: nested(40), "evaluation": {name: nested(40)}})
    with pytest.raises(GateError, match="thresholds must satisfy"):
        settings_of(
            {**LEAST, "thresholds": {"deploy": nested(40), "warn": 1}, "risk_tolerance": {"deploy_threshold": 0}}
        )


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(GateError, match="no character"):
        settings_of({**LEAST, "use_case": "\ud800"})


def test_a_model_may_verify_itself_where_that_is_said() -> None:
    found = settings_of({**LEAST, "judge": TARGET, "allow_same_model": True})
    assert found.judge == found.target


def test_runs_of_other_targets_are_compared_and_runs_of_other_demands_are_not() -> None:
    def of(**change: object) -> GateSettings:
        return settings_of(LEAST | change)

    assert of().fingerprint() == of(model={**TARGET, "model_id": "newer"}).fingerprint()
    assert of().fingerprint() == of(evaluation={"parallel": 8}).fingerprint()
    assert of().fingerprint() != of(thresholds={"deploy": 0.1, "warn": 0.3}).fingerprint()
    assert of().fingerprint() != of(use_case="other").fingerprint()
    assert of().fingerprint("these prompts") != of().fingerprint("those prompts")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("use_case", 5, "`use_case` is not a text"),
        ("prompt_categories", "recall", "`prompt_categories` is not a list"),
        ("prompt_categories", [""], "`prompt_categories` holds something that is no text"),
        ("doc_sources", "docs/", "`doc_sources` is not a list"),
        ("min_claims", -1, "`min_claims` must be a whole number from 0 to 10000"),
        ("num_prompts", True, "`num_prompts` must be a whole number from 1 to 10000"),
        ("thresholds", [0.1, 0.2], "`thresholds` is not a mapping"),
        ("prompt_categories", [], "`prompt_categories` is empty"),
        ("prompt_library", 5, "`prompt_library` is not a list"),
        ("allow_same_model", "yes", "`allow_same_model` must be true or false"),
        ("evaluation", "many", "`evaluation` is not a mapping"),
    ],
)
def test_what_can_not_be_meant_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(GateError, match="^" + message.replace("(", r"\(")):
        normalised({**LEAST, field: value})


def test_not_a_number_is_no_threshold() -> None:
    with pytest.raises(GateError, match="0 <= deploy <= warn <= 1"):
        normalised({"thresholds": {"deploy": float("nan"), "warn": 0.2}})
