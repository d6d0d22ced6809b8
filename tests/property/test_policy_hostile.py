"""Law: whatever stands in a policy file, reading it gives a program or a `PolicyError` with places in the file."""

from __future__ import annotations

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.syntax import RULE_KEYS
from checkstream.core.policy.triggers import GROUP_KEYS
from checkstream.errors import Fault, PolicyError
from tests.chance import examples

GOOD = """pack: {name: good, version: 1.0.0}
policies:
  - name: one
    id: G-1
    stage: [midstream]
    phrases: [zero risk, "can't lose"]
    match: any
    conditions: ['context.a == "x" && scores.toxicity > 0.5', 'findings["zero risk"] < 3']
    enabled_when: has(request.temperature) && request.tools.exists(t, t.startsWith("pay_"))
    enforce_share: 0.5
    actions:
      - {type: redact, text: "[cut] {model} {context.user.phone|hotline}"}
      - {type: log_event, severity: low}
    metadata: {regulation: none}
  - id: G-2
    extends: G-1
    stage: egress
    triggers:
      all:
        - any:
            - entities: [EMAIL]
            - classifiers: [{name: toxicity, when: [{condition: stream.risk > 0.2, threshold: 0.9}]}]
        - not: {patterns: [{name: p, regex: 'a{2,5}b'}]}
    actions: [{type: attribute_sources, text: "From {sources}", max_sources: 3}]
  - id: G-3
    name: three
    stage: ingress
    conditions: ["true"]
    actions:
      - {type: safe_mode, logit_bias: {5: -100}, bad_words: [x], tools: [a*], instruction: Be kind.}
      - {type: allow_constrained, json_schema: {type: object, properties: {a: {const: 1}}}}
"""
KEYS = st.sampled_from((*RULE_KEYS, *GROUP_KEYS, "pack", "policies", "type", "condition", "threshold", "when", "regex"))
LABELS = (ClassifierLabel("lexicon.toxicity", 0.5), ClassifierLabel("lexicon.injection", 0.5))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "redact",
            "safe_mode",
            "midstream",
            "EMAIL",
            "all",
            "shadow",
            "group:pii",
            "content",
            "X-1",
            "toxicity",
            "{model}",
        ]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def compiles_or_says_where(content: str | bytes) -> None:
    faults: tuple[Fault, ...] = ()
    try:
        compile_sources([("f.yaml", content)], LABELS)
    except PolicyError as error:
        faults = error.faults or (Fault(file="", reason=""),)
    text = content if isinstance(content, str) else content.decode("utf-8", errors="replace")
    lines = len(text.splitlines()) + 1
    for fault in faults:
        assert fault.render()
        assert fault.file == "f.yaml"
        assert 0 <= fault.line <= lines
        assert fault.reason


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    compiles_or_says_where(content)


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=200))
def test_any_text(content: str) -> None:
    compiles_or_says_where(content)


@settings(max_examples=examples(150), deadline=None)
@given(VALUES)
def test_any_yaml_value(value: object) -> None:
    compiles_or_says_where(yaml.safe_dump(value))


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_rule(rule: dict[str, object]) -> None:
    tree = {"pack": {"name": "p", "version": "1"}, "policies": [{"name": "n", "id": "X-1", **rule}]}
    compiles_or_says_where(yaml.safe_dump(tree))


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(max_size=6))
def test_a_good_file_with_a_hole_or_a_patch(start: int, length: int, patch: str) -> None:
    compiles_or_says_where(GOOD[:start] + patch + GOOD[start + length :])


def test_the_good_file_is_good() -> None:
    assert len(compile_sources([("f.yaml", GOOD)], LABELS).rules) == 3


def rule_with(**keys: object) -> str:
    rule = {"name": "n", "id": "X-1", "phrases": ["x"], "actions": [{"type": "redact"}], **keys}
    return str(yaml.safe_dump({"pack": {"name": "p", "version": "1"}, "policies": [rule]}, allow_unicode=True))


PIECES = """
context request scores findings stream .a ["a"] [0] toxicity EMAIL tokens model == != < in && || ! ? : ( ) [ ] { } , .
"x" 'y' 1 1.5 2u true null has size all(x, exists(x, map(x, x x) matches( "a(b" timestamp( - + * / % \\ " '
"""
WORDS = st.sampled_from(PIECES.split())
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=14).map(" ".join) | TEXTS)
def test_any_condition(text: str) -> None:
    case = {"name": "toxicity", "when": [{"condition": text, "threshold": 0.5}]}
    compiles_or_says_where(rule_with(conditions=[text, "true"]))
    compiles_or_says_where(rule_with(enabled_when=text, classifiers=[case]))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from(["{", "}", "{{", "|", ".", "model", "context.a", "x", " "])).map("".join) | TEXTS)
def test_any_template(text: str) -> None:
    compiles_or_says_where(rule_with(actions=[{"type": "redact", "text": text}]))


GROUPS = st.recursive(
    st.sampled_from([{"phrases": ["x"]}, {"entities": ["EMAIL", "PHONE"]}, {"classifiers": [{"name": "toxicity"}]}]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: {"any": items})
        | st.lists(inner, max_size=3).map(lambda items: {"all": items})
        | inner.map(lambda item: {"not": item})
    ),
    max_leaves=8,
)


@settings(max_examples=examples(150), deadline=None)
@given(GROUPS, st.sampled_from(["ingress", "midstream", "egress"]))
def test_any_tree_of_groups(tree: dict[str, object], stage: str) -> None:
    rule = {"name": "n", "id": "X-1", "stage": stage, "triggers": tree, "actions": [{"type": "log_event"}]}
    compiles_or_says_where(yaml.safe_dump({"pack": {"name": "p", "version": "1"}, "policies": [rule]}))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 6), VALUES), max_size=10))
def test_any_graph_of_rules_that_extend_each_other(graph: list[tuple[int, int | None, object]]) -> None:
    rules: list[dict[str, object]] = []
    for id_, extends, value in graph:
        if extends is None:
            rules.append({"name": "n", "id": f"X-{id_}", "phrases": ["x"], "actions": [{"type": "redact"}]})
        else:
            rules.append({"id": f"X-{id_}", "extends": f"X-{extends}", "mode": value})
    compiles_or_says_where(yaml.safe_dump({"pack": {"name": "p", "version": "1"}, "policies": rules}))
