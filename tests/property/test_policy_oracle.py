"""Law: the compiled program and a slow, obvious reading of the rules say the same of any facts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from checkstream.core.cel.values import from_json
from checkstream.core.policy import stored
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Entry, Program
from checkstream.core.policy.vm import Machine, counts_undecided, exchange_facts
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, Facts, Stage, StreamFacts
from checkstream.errors import PolicyError
from tests import policy_oracle as oracle
from tests.policy_oracle import LABELS, Truth, World

Rule = dict[str, Any]
Written = Mapping[str, Any]
CLASSIFIERS = tuple(ClassifierLabel(name) for name in LABELS)
LEAVES: dict[str, tuple[Any, ...]] = {
    "entities": ("EMAIL", "CREDIT_CARD"),
    "phrases": ("zero risk", "free money"),
    "patterns": ({"name": "code", "regex": "code-[0-9]{2}"},),
}
TITLES = ("entity:EMAIL", "entity:CREDIT_CARD", "phrase:zero risk", "phrase:free money", "pattern:code")
SCORES = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))
ACTIONS: dict[str, tuple[str, ...]] = {
    '{"type": "allow"}': ("ingress", "midstream"),
    '{"type": "redact"}': ("ingress", "midstream"),
    '{"type": "reject", "status": 451}': ("ingress",),
    '{"type": "stop", "message": "No."}': ("midstream",),
    '{"type": "inject_disclaimer", "text": "Mind {model}."}': ("ingress", "midstream", "egress"),
    '{"type": "log_event"}': ("ingress", "midstream", "egress"),
}
"""Actions, and the stages at which they run."""
HOLDING = ("allow", "redact", "reject", "stop")
CHANNELS = {"ingress": INGRESS_CHANNELS, "midstream": ANSWER_CHANNELS, "egress": ANSWER_CHANNELS}
OF_REQUEST = (
    "true",
    "context.role == 'admin'",
    "has(context.user)",
    "context.user.age >= 18",
    "has(context.user.age) && context.user.age >= 18",
    "'vip' in context.tags",
    "request.tools.exists(t, t == 'search')",
    "context.flag",
    "6 / context.zero > 1",
    "request.stream",
    "has(request.temperature)",
    "request.temperature > 0.5",
    "request.model.startsWith('gpt')",
    "size(request.tools) > 1 || 'search' in request.tools",
    "request.metadata['team'] == 'a'",
    "request.user == 'u1'",
)
OF_TEXT = (
    "findings.EMAIL >= 2",
    "findings['zero risk'] > 0",
    "findings.code == 0",
    "stream.tokens > 10",
    "stream.risk >= 0.5",
    "stream.trend > 0.0",
    "stream.language == 'en'",
    "stream.language.matches('^e[ns]$')",
)
OF_SCORES = (
    "scores.toy.alpha >= 0.5",
    "scores['toy.beta'] < 0.5",
    "scores.gamma > 0.2",
    "has(scores.toy.alpha)",
    "has(scores.beta) && scores.beta > scores.toy.alpha",
)


def conditions(of: Sequence[str], depth: int = 2) -> st.SearchStrategy[str]:
    """Expressions over some of what there is to read: well typed; they err where what they read is not there."""
    plain = st.sampled_from(of)
    if depth == 0:
        return plain
    inner = conditions(of, depth - 1)
    made = [st.builds(form.format, inner, inner) for form in ("({}) && ({})", "({}) || ({})", "({}) ? !({}) : true")]
    return st.one_of(plain, plain, plain, *made)


CLASSIFIER = st.fixed_dictionaries(
    {"name": st.sampled_from((*LABELS, "beta")), "threshold": SCORES},
    optional={
        "when": st.lists(
            st.fixed_dictionaries({"condition": conditions(OF_REQUEST + OF_TEXT), "threshold": SCORES}),
            min_size=1,
            max_size=2,
        )
    },
)


def listed(key: str, items: Sequence[Any]) -> st.SearchStrategy[Rule]:
    return st.lists(st.sampled_from(items), min_size=1, max_size=2, unique_by=json.dumps).map(lambda some: {key: some})


LEAF = st.one_of(
    *(listed(key, items) for key, items in LEAVES.items()), CLASSIFIER.map(lambda one: {"classifiers": [one]})
)


def groups(depth: int = 3) -> st.SearchStrategy[Rule]:
    if depth == 0:
        return LEAF
    inner = groups(depth - 1)
    items = st.lists(inner, min_size=1, max_size=3)
    joined = st.builds(lambda key, some: {key: some}, st.sampled_from(("any", "all")), items)
    return st.one_of(LEAF, joined, joined, inner.map(lambda item: {"not": item}))


@st.composite
def triggers(draw: st.DrawFn) -> Rule:
    """What a rule asks for: a tree, flat lists, or nothing."""
    form = draw(st.sampled_from(("tree", "tree", "flat", "none")))
    if form == "tree":
        return {"triggers": draw(groups())}
    if form == "none":
        return {}
    flat: Rule = {}
    for leaf in draw(st.lists(LEAF, min_size=1, max_size=3)):
        flat |= leaf
    if sum(len(items) for items in flat.values()) > 1:
        flat["match"] = draw(st.sampled_from(("any", "all")))
    return flat


def can_be_decided(rule: Rule) -> bool:
    """Tell whether the language allows a tree: something outside of `not`, and not what holds where nothing is."""
    tree = oracle.tree(rule)
    if tree is None or not has_not(tree):
        return True
    nothing = dict.fromkeys(LABELS, 0.0)
    empty = World(context={}, request={}, found=dict.fromkeys(TITLES, 0), scores={}, peaks=nothing, stream={})
    return bool(oracle.titles(tree, outside=True)) and not oracle.holds(fixed(tree), empty)


def fixed(group: Written) -> Rule:
    """Return a tree in which no score of nothing reaches its threshold."""
    if "classifiers" in group:
        return {"classifiers": [{"name": one["name"], "threshold": 2.0} for one in group["classifiers"]]}
    if "not" in group:
        return {"not": fixed(group["not"])}
    return {key: [fixed(item) for item in items] if key in {"any", "all"} else items for key, items in group.items()}


def has_not(group: Written) -> bool:
    return "not" in group or any(has_not(item) for item in (*group.get("any", ()), *group.get("all", ())))


@st.composite
def rules(draw: st.DrawFn, number: int) -> Rule:
    """One rule that can be carried out."""
    rule = draw(triggers())
    if not can_be_decided(rule):
        rule["triggers"] = {"all": [draw(LEAF), rule["triggers"]]}
    tree = oracle.tree(rule)
    action = draw(st.sampled_from(sorted(ACTIONS)))
    rule |= {"id": f"R-{number}", "name": "r", "actions": [json.loads(action)]}
    rule["mode"] = draw(st.sampled_from(("enforce", "enforce", "shadow", "disabled")))
    ends = has_not(tree) and rule["mode"] == "enforce" and holds_text(rule) if tree is not None else True
    barred = {"midstream"} if ends else set()
    stages = [stage for stage in ACTIONS[action] if stage not in barred]
    if tree is None:
        assume(rule["actions"][0]["type"] not in {"allow", "redact"})
    assume(stages)
    rule["stage"] = draw(st.lists(st.sampled_from(stages), min_size=1, unique=True))
    readable = OF_REQUEST if tree is None and "ingress" in rule["stage"] else OF_REQUEST + OF_TEXT + OF_SCORES
    rule["conditions"] = draw(st.lists(conditions(readable), max_size=2, min_size=tree is None))
    if not rule["conditions"]:
        del rule["conditions"]
    optional = st.fixed_dictionaries(
        {}, optional={"enabled_when": conditions(OF_REQUEST), "fail_mode": st.sampled_from(("open", "closed"))}
    )
    return rule | draw(optional)


def holds_text(rule: Rule) -> bool:
    return rule["actions"][0]["type"] in HOLDING


MENTIONS: Rule = {"id": "ALL", "name": "r", "mode": "disabled", **LEAVES, "actions": [{"type": "log_event"}]}
"""Conditions may name what stands in some rule of their pack."""


def source(written: Sequence[Rule]) -> str:
    """Return the policy file: JSON is YAML."""
    return json.dumps({"pack": {"name": "p", "version": "1.0.0"}, "policies": [*written, MENTIONS]})


def build(written: Sequence[Rule]) -> Program:
    """Compile some rules; what would take too many steps is drawn anew."""
    try:
        return compile_sources([("p.yaml", source(written))], CLASSIFIERS)
    except PolicyError as error:
        assume(any("steps" not in fault.reason for fault in error.faults))
        raise


WORLDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "context": st.fixed_dictionaries(
            {},
            optional={
                "role": st.sampled_from(("admin", "guest", 7)),
                "user": st.fixed_dictionaries({}, optional={"age": st.sampled_from((17, 18, 18.5, "old", None))}),
                "tags": st.lists(st.sampled_from(("vip", "new", 1)), max_size=3),
                "flag": st.sampled_from((True, False, "yes", None)),
                "zero": st.sampled_from((0, 1, 0.0)),
            },
        ),
        "request": st.fixed_dictionaries(
            {
                "model": st.sampled_from(("gpt-4", "llama")),
                "stream": st.booleans(),
                "tools": st.lists(st.sampled_from(("search", "mail")), max_size=2),
            },
            optional={
                "temperature": st.sampled_from((0.0, 0.7)),
                "user": st.sampled_from(("u1", "u2")),
                "metadata": st.dictionaries(st.sampled_from(("team", "x")), st.sampled_from(("a", "b")), max_size=2),
            },
        ),
        "found": st.fixed_dictionaries({title: st.integers(0, 3) for title in TITLES}),
        "scores": st.dictionaries(st.sampled_from(LABELS), SCORES),
        "stream": st.fixed_dictionaries(
            {
                "tokens": st.sampled_from((0, 10, 11)),
                "risk": SCORES,
                "trend": st.sampled_from((-0.5, 0.0, 0.5)),
                "language": st.sampled_from(("und", "en", "es", "de")),
            }
        ),
    }
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    drawn = draw(WORLDS)
    peaks = {name: max(score, draw(SCORES)) for name, score in drawn["scores"].items()}
    return World(**drawn, peaks=peaks)


def facts_of(program: Program, world: World, stage: str, channel: str, fail_mode: str) -> Facts:
    """Return the facts that a world is to a program, and hold what `enabled_when` does to the oracle."""
    numbers = {signal.title: number for number, signal in enumerate(program.signals)}
    request = {name: from_json(value) for name, value in world.request.items()}
    exchange, _ = exchange_facts(
        program, from_json(world.context), request, who=("caller", "user"), fail_mode=fail_mode
    )
    scored = {f"classifier:{name}": name for name in LABELS}
    return Facts(
        stage=Stage(stage),
        channel=channel,
        exchange=exchange,
        counts={numbers[title]: count for title, count in world.found.items() if title in numbers and count},
        scores={numbers[t]: world.scores[n] for t, n in scored.items() if t in numbers and n in world.scores},
        peaks={numbers[t]: world.peaks[n] for t, n in scored.items() if t in numbers and n in world.peaks},
        stream=StreamFacts(**world.stream),
    )


def decided(machine: Machine, entries: Sequence[Entry], rule: int) -> Truth:
    """Return what the entries of a rule come to together: it fires when one of them does."""
    return oracle.some(machine.decide(entry) for entry in entries if entry.rule == rule)


def has_come(world: World, title: str) -> bool:
    return title.removeprefix("classifier:") in world.scores or world.found.get(title, 0) > 0


def check_agreement(program: Program, written: Sequence[Rule], world: World, fail_mode: str) -> None:
    for stage, channels in CHANNELS.items():
        for channel in channels[:2]:
            machine = Machine(program, facts_of(program, world, stage, channel, fail_mode))
            scope = program.scope(Stage(stage), channel)
            for index, rule in enumerate(written):
                here = stage in rule["stage"] and rule["mode"] != "disabled"
                here = here and oracle.enabled(rule, world, fail_mode)
                tree = oracle.tree(rule)
                came = [(number, s.title) for number, s in enumerate(program.signals) if has_come(world, s.title)]
                for number, title in came:
                    wanted = here and tree is not None and oracle.decide(rule, title, world)
                    assert decided(machine, scope.rules.get(number, ()), index) == wanted, (rule, title)
                    event("fires" if wanted else "is undecided" if wanted is None else "is quiet")
                # Without triggers: on the request at ingress, at the end of `content` at egress.
                entries = program.bare if stage == "ingress" else scope.bare
                wanted = here and tree is None and channel in {INGRESS_CHANNELS[0], INGRESS_CHANNELS[1], "content"}
                assert decided(machine, entries, index) == (wanted and oracle.decide(rule, None, world)), rule
                assert counts_undecided(program.rules[index], fail_mode) == oracle.counts(rule, None, fail_mode)


@given(st.data(), st.lists(worlds(), min_size=1, max_size=3), st.sampled_from(("open", "closed")))
def test_the_machine_agrees_with_the_oracle(data: st.DataObject, seen: list[World], fail_mode: str) -> None:
    written = [data.draw(rules(number)) for number in range(data.draw(st.integers(1, 3)))]
    program = build(written)
    again = stored.load(stored.stored(program), program.hash)
    assert stored.stored(again) == stored.stored(program)
    for world in seen:
        check_agreement(program, written, world, fail_mode)
        check_agreement(again, written, world, fail_mode)


@given(triggers())
def test_exactly_the_trees_that_can_be_decided_compile(written: Rule) -> None:
    assume(oracle.tree(written) is not None)
    rule = {**written, "id": "R", "name": "r", "stage": ["ingress"], "actions": [{"type": "reject"}]}
    if can_be_decided(written):
        build([rule])
    else:
        with pytest.raises(PolicyError):
            build([rule])


@given(st.data())
def test_scopes_hold_what_enforced_rules_condemn_and_nothing_else(data: st.DataObject) -> None:
    written = [data.draw(rules(number)) for number in range(data.draw(st.integers(1, 3)))]
    program = build(written)
    needs = {rule["id"]: needed(rule) for rule in written}
    for (stage, channel), scope in program.scopes.items():
        here = [
            rule
            for rule in written
            if rule["mode"] != "disabled"
            and stage in rule["stage"]
            and (oracle.tree(rule) is not None or (stage, channel) == ("egress", "content"))
        ]
        hold = {title for rule in here if rule["mode"] == "enforce" and holds_text(rule) for title in needs[rule["id"]]}
        models = {model_of(title) for title in hold if title.startswith("classifier:")}
        held = {pattern.name for pattern in scope.hold.patterns}
        watched = {pattern.name for pattern in scope.watch.patterns}
        assert held == {title.partition(":")[2] for title in hold if not title.startswith("classifier:")}
        assert set(scope.hold_classifiers) == models
        every = {title for rule in here for title in needs[rule["id"]]}
        assert held | watched == {title.partition(":")[2] for title in every if not title.startswith("classifier:")}
        asked = {*scope.hold_classifiers, *scope.watch_classifiers}
        assert asked == {model_of(title) for title in every if title.startswith("classifier:")}
        # Each rule is decided once: what leads has all it needs, or the follower sees all of it.
        for index in scope.active:
            both = needs[program.rules[index].id]
            leads = {t for t in both if t in hold or (t.startswith("classifier:") and model_of(t) in models)}
            if index in scope.watched:
                assert {t.partition(":")[2] for t in both if not t.startswith("classifier:")} <= watched
                assert leads < both
            elif both - leads:
                assert program.rules[index].alone
                assert not program.rules[index].reads


def model_of(title: str) -> str:
    return title.removeprefix("classifier:").partition(".")[0]


def needed(rule: Rule) -> set[str]:
    """Return the titles of all that a rule asks for and of all that its conditions read."""
    tree = oracle.tree(rule)
    said = json.dumps({key: rule.get(key) for key in ("conditions", "triggers", "classifiers")})
    names = {"EMAIL": "entity:EMAIL", "zero risk": "phrase:zero risk", "code": "pattern:code"}
    read = {title for name, title in names.items() if f"findings.{name}" in said or f"findings['{name}']" in said}
    # `scores.toy.alpha`, `scores['toy.beta']`, `scores.gamma`
    scores = re.findall(r"scores(?:\.|\[')((?:toy\.)?[a-z]+)", said)
    return read | {f"classifier:{oracle.full_name(name)}" for name in scores} | (oracle.titles(tree) if tree else set())


@given(st.data())
def test_equal_policies_have_equal_hashes_and_any_change_changes_it(data: st.DataObject) -> None:
    written = [data.draw(rules(number)) for number in range(2)]
    program = build(written)
    assert program.hash == build(written).hash
    rule = written[data.draw(st.integers(0, 1))]
    changed = data.draw(st.sampled_from(sorted(CHANGES)))
    CHANGES[changed](rule)
    assert program.hash != build(written).hash, changed


def _change_threshold(rule: Rule) -> None:
    for classifier in classifiers_of(oracle.tree(rule) or {}):
        classifier["threshold"] = 0.33
        return
    rule["fail_mode"] = "closed" if rule.get("fail_mode") != "closed" else "open"


def classifiers_of(group: Written) -> list[Rule]:
    below = [*group.get("any", ()), *group.get("all", ()), *([group["not"]] if "not" in group else [])]
    return [*group.get("classifiers", ()), *(found for item in below for found in classifiers_of(item))]


def _change_action(rule: Rule) -> None:
    rule["actions"] = [*rule["actions"], {"type": "log_event", "severity": "high"}][-1:]


CHANGES: dict[str, Callable[[Rule], None]] = {
    "threshold": _change_threshold,
    "action": _change_action,
    "condition": lambda rule: rule.update(conditions=[*rule.get("conditions", ()), "request.model == 'x'"]),
    "enabled_when": lambda rule: rule.update(enabled_when="request.model == 'y'"),
    "priority": lambda rule: rule.update(priority=17),
    "metadata": lambda rule: rule.update(metadata={"citation": "Art. 5"}),
    "tags": lambda rule: rule.update(tags=["t"]),
}
