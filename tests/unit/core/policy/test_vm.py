from __future__ import annotations

import pytest

from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.vm import Machine, counts_undecided, exchange_facts
from checkstream.core.terms import ExchangeFacts, Facts, Stage

TEXT = """pack: {name: p, version: 1.0.0}
policies:
  - name: a
    id: ANY
    stage: midstream
    phrases: [zero risk]
    classifiers: [{name: toy.alpha, threshold: 0.5}]
    actions: [{type: redact}]
  - name: b
    id: ALL
    stage: midstream
    match: all
    phrases: [zero risk]
    classifiers: [{name: toy.alpha, threshold: 0.8}]
    actions: [{type: stop}]
  - {name: c, id: ELSEWHERE, stage: ingress, phrases: [zero risk], actions: [{type: redact}]}
  - name: d
    id: USER
    stage: midstream
    phrases: [zero risk]
    conditions: ["context.user.age >= 18"]
    enabled_when: "context.on"
    actions: [{type: log_event}]
"""
PROGRAM = compile_sources([("p.yaml", TEXT)], [ClassifierLabel("toy.alpha")])
SCOPE = PROGRAM.scope(Stage.MIDSTREAM, "content")
PHRASE, SCORE = 0, 1


def facts(*, found: bool = True, score: float | None = None, exchange: ExchangeFacts | None = None) -> Facts:
    made = Facts(stage=Stage.MIDSTREAM, channel="content", exchange=exchange or ExchangeFacts())
    if found:
        made.counts[PHRASE] = 1
    if score is not None:
        made.scores[SCORE] = score
    return made


def decided(signal: int, known: Facts) -> dict[str, bool | None]:
    machine = Machine(PROGRAM, known)
    return {PROGRAM.rules[entry.rule].id: machine.decide(entry) for entry in SCOPE.rules[signal]}


@pytest.mark.parametrize(
    ("signal", "found", "score", "rules"),
    [
        (PHRASE, True, None, ["ANY"]),
        (PHRASE, True, 0.9, ["ANY", "ALL"]),
        (SCORE, True, 0.9, ["ANY", "ALL"]),
        (SCORE, True, 0.8, ["ANY", "ALL"]),
        (SCORE, True, 0.5, ["ANY"]),
        (SCORE, False, 0.9, ["ANY"]),
        (SCORE, True, 0.1, []),  # the phrase fired the rule when it came: a low score is no second firing
        (SCORE, True, None, []),  # absent is not zero, and not enough
        (SCORE, True, float("nan"), []),
    ],
)
def test_what_fires(signal: int, score: float | None, rules: list[str], *, found: bool) -> None:
    fired = decided(signal, facts(found=found, score=score))
    assert [rule for rule, fires in fired.items() if fires] == rules


def test_rules_of_other_stages_are_not_looked_at() -> None:
    assert "ELSEWHERE" not in decided(PHRASE, facts())


def test_facts_are_read_as_they_are_at_each_decision_and_not_changed() -> None:
    known = facts()
    machine = Machine(PROGRAM, known)
    (entry,) = (entry for entry in SCOPE.rules[PHRASE] if PROGRAM.rules[entry.rule].id == "ALL")
    assert machine.decide(entry) is False
    known.scores[SCORE] = 0.9
    assert machine.decide(entry) is True
    assert (known.counts, known.scores) == ({PHRASE: 1}, {SCORE: 0.9})


@pytest.mark.parametrize(
    ("context", "fires"),
    [
        ({"user": {"age": 18}}, True),
        ({"user": {"age": 17}}, False),
        ({"user": {"age": "old"}}, None),
        ({"user": {}}, None),
        ({}, None),
    ],
)
def test_a_condition_that_errs_decides_nothing(context: dict[str, object], *, fires: bool | None) -> None:
    assert decided(PHRASE, facts(exchange=ExchangeFacts(context=context)))["USER"] is fires


def test_a_condition_on_the_exchange_is_the_same_for_all_of_its_texts() -> None:
    exchange = ExchangeFacts(context={"user": {"age": 18}})
    assert decided(PHRASE, facts(exchange=exchange))["USER"] is True
    assert decided(PHRASE, facts(found=False, exchange=exchange))["USER"] is True
    assert decided(PHRASE, facts(exchange=ExchangeFacts(context={"user": {"age": 1}})))["USER"] is False


def test_a_rule_that_is_off_never_fires() -> None:
    number = next(place for place, rule in enumerate(PROGRAM.rules) if rule.id == "ANY")
    assert decided(PHRASE, facts(exchange=ExchangeFacts(off=frozenset({number}))))["ANY"] is False


@pytest.mark.parametrize(
    ("context", "fail_mode", "off", "undecided"),
    [
        ({"on": True}, "closed", False, ()),
        ({"on": False}, "closed", True, ()),
        ({"on": "yes"}, "closed", False, ("USER",)),
        ({}, "closed", False, ("USER",)),
        ({}, "open", True, ("USER",)),
    ],
)
def test_what_is_not_enabled_is_off(
    context: dict[str, object], fail_mode: str, undecided: tuple[str, ...], *, off: bool
) -> None:
    made, unsure = exchange_facts(PROGRAM, context, {}, who=("c", "u"), fail_mode=fail_mode)
    assert bool(made.off) == off
    assert unsure == undecided


def rule(fail_mode: str, action: str) -> str:
    return (
        "pack: {name: p, version: 1.0.0}\npolicies:\n"
        f"  - {{name: r, id: R, phrases: [a b], {fail_mode}actions: [{{type: {action}}}]}}\n"
    )


@pytest.mark.parametrize(
    ("own", "action", "route", "counts"),
    [
        ("", "redact", "closed", True),
        ("", "redact", "open", False),
        ("fail_mode: open, ", "redact", "closed", False),
        ("fail_mode: closed, ", "redact", "open", True),
        ("fail_mode: closed, ", "allow", "closed", False),
    ],
)
def test_the_fail_mode_decides_for_what_is_undecided(own: str, action: str, route: str, *, counts: bool) -> None:
    program = compile_sources([("p.yaml", rule(own, action))])
    assert counts_undecided(program.rules[0], route) == counts


# --- gradual enforcement


def shadowed(share: str, who: tuple[str, str], rule_id: str = "R") -> bool:
    text = (
        "pack: {name: p, version: 1.0.0}\npolicies:\n"
        f"  - {{name: r, id: {rule_id}, phrases: [a b], enforce_share: {share}, actions: [{{type: redact}}]}}\n"
    )
    made, _ = exchange_facts(compile_sources([("p.yaml", text)]), {}, {}, who=who, fail_mode="closed")
    return bool(made.shadowed)


def test_a_share_of_all_takes_in_everybody_and_none_nobody() -> None:
    for user in map(str, range(50)):
        assert not shadowed("1", ("c", user))
        assert shadowed("0", ("c", user))


def test_a_share_is_stable_grows_and_is_about_as_large_as_it_says() -> None:
    users = [("caller", f"user-{number}") for number in range(200)]
    small, large = ({who for who in users if not shadowed(share, who)} for share in ("0.2", "0.6"))
    assert small <= large  # a growing share keeps those that it has
    assert 20 <= len(small) <= 60
    assert 90 <= len(large) <= 150
    assert small == {who for who in users if not shadowed("0.2", who)}  # a retry rolls no new dice


def test_shares_of_two_rules_and_two_callers_differ() -> None:
    users = [str(number) for number in range(100)]
    chosen = [
        [shadowed("0.5", (caller, user), rule_id) for user in users]
        for caller, rule_id in (("a", "R"), ("b", "R"), ("a", "S"))
    ]
    assert chosen[0] != chosen[1]
    assert chosen[0] != chosen[2]


def test_where_the_caller_ends_and_the_user_begins_counts() -> None:
    pairs = [(("ab", "c"), ("a", "bc")), (("x", ""), ("", "x")), (("1", "23"), ("12", "3")), (("q", "w"), ("qw", ""))]
    many = [(("a" * n + "b", "c"), ("a" * n, "bc")) for n in range(20)]
    assert any(shadowed("0.5", one) != shadowed("0.5", other) for one, other in pairs + many)
