"""A program with something of everything, and ways to spoil its stored form."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from checkstream.core.cel.values import Value, from_json
from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, Scored
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.program import Program
from checkstream.core.policy.stored import load, stored
from checkstream.core.policy.vm import Machine, exchange_facts
from checkstream.core.terms import Facts, Stage, StreamFacts
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.errors import ProgramInvalid
from tests.playbook import play

LABELS = (ClassifierLabel("toy.alpha"), ClassifierLabel("toy.beta"), ModelEntity("PERSON", "ner", 0.5))
POLICY = """
pack: {name: p, version: 1.0.0}
policies:
  - {name: mail, id: MAIL, entities: [EMAIL], actions: [{type: redact, text: "<{model}>"}]}
  - name: code
    id: CODE
    stage: midstream
    patterns: [{name: code, regex: 'code-[0-9]{2,}', max_chars: 20}]
    conditions: ["request.model == 'm' && (findings.code >= 1 || context.a.b > 2)", "scores.toy.beta < 0.5"]
    enabled_when: "size(request.tools) < 3"
    enforce_share: 0.5
    actions: [{type: stop, message: "No, {context.name|friend}.", status: 451}]
  - name: both
    id: BOTH
    stage: [ingress]
    triggers:
      all:
        - {phrases: [zero risk]}
        - any:
            - classifiers:
                - {name: toy.alpha, threshold: 0.8, when: [{condition: "stream.tokens > 9", threshold: 0.5}]}
            - {entities: [EMAIL]}
        - {not: {any: [{phrases: [no advice]}, {classifiers: [{name: toy.beta, threshold: 0.25}]}]}}
    actions:
      - {type: require_confirmation, expires_s: 60}
      - {type: safe_mode, temperature: 0.5, bad_words: [x], logit_bias: {7: -100}, tools: [search, "mail_*"]}
      - {type: allow_constrained, json_schema: {type: object}}
  - name: always
    id: ALWAYS
    conditions: ["request.tools.exists(t, t.matches('^s+$')) || context == {'a': [1, 2u, 3.5, null, b'x']}"]
    actions: [{type: lower_temp, temperature: 1}, {type: adapt_tone, instruction: Be kind.}]
  - name: end
    id: END
    stage: egress
    conditions: ["stream.language == 'en'", "timestamp(context.at) > timestamp('2026-01-01T00:00:00Z')"]
    metadata: {regulation: R, citation: C, severity: high}
    tags: [t]
    actions: [{type: attribute_sources, max_sources: 3}]
  - {name: except, id: EXCEPT, phrases: [press office], priority: 5, actions: [{type: allow}]}
  - name: words
    id: WORDS
    stage: midstream
    channels: [content]
    phrases: [guaranteed]
    fail_mode: open
    actions: [{type: rewrite_span, words: {guaranteed: possible}}, {type: log_event}]
  - {name: people, id: PEOPLE, stage: midstream, entities: [PERSON, EMAIL], conditions: [findings.PERSON < 9],
     actions: [{type: redact}]}
"""


def program() -> Program:
    return compile_sources([("p.yaml", POLICY)], LABELS)


def plain() -> dict[str, Any]:
    """Return the stored form as plain data."""
    data: dict[str, Any] = msgspec.json.decode(stored(program()))
    return data


def rule(data: dict[str, Any], rule_id: str) -> dict[str, Any]:
    return next(each for each in data["rules"] if each["id"] == rule_id)


def number(data: dict[str, Any], rule_id: str) -> int:
    return [each["id"] for each in data["rules"]].index(rule_id)


def entries(data: dict[str, Any], rule_id: str) -> list[dict[str, Any]]:
    return [entry for entry in data["entries"] if entry["rule"] == number(data, rule_id)]


def action(data: dict[str, Any], rule_id: str, kind: str) -> dict[str, Any]:
    return next(each for each in rule(data, rule_id)["actions"] if each["type"] == kind)


Spoil = Callable[[dict[str, Any]], object]


def put(rule_id: str, **fields: Any) -> Spoil:
    return lambda data: rule(data, rule_id).update(fields)


def act(rule_id: str, kind: str, **fields: Any) -> Spoil:
    return lambda data: action(data, rule_id, kind).update(fields)


def enter(rule_id: str, **fields: Any) -> Spoil:
    return lambda data: entries(data, rule_id)[0].update(fields)


def signal(place: int, **fields: Any) -> Spoil:
    return lambda data: data["signals"][place].update(fields)


def code(place: int, *instruction: int) -> Spoil:
    return lambda data: data["code"].__setitem__(place, list(instruction))


def appended(*instructions: tuple[int, int]) -> Spoil:
    """Let a rule without triggers be decided by other code."""

    def spoil(data: dict[str, Any]) -> None:
        entries(data, "ALWAYS")[0]["start"] = len(data["code"])
        data["code"] += [list(each) for each in instructions]

    return spoil


SPOILED: dict[str, Spoil] = {
    "another version of the form": lambda data: data.update(format="checkstream.program.1"),
    "a key that is not known": lambda data: data.update(extra=1),
    "functions of another version": lambda data: data["functions"].reverse(),
    "a pack that is not named": lambda data: data.update(packs=["q@1.0.0"]),
    "an instruction that is none": code(0, 99, 0),
    "an argument below zero": code(0, 0, -1),
    "a variable that is not there": code(0, 0, 1000),
    "code that never returns": lambda data: data["code"].pop(),
    "a start behind the code": enter("ALWAYS", start=10_000_000),
    "a start before the code": enter("ALWAYS", start=-2),
    "a start within an expression": lambda data: entries(data, "ALWAYS")[0].update(
        start=entries(data, "ALWAYS")[0]["start"] + 1
    ),
    "a jump back": appended((1, 0), (14, 0), (9, 0)),
    "a jump to itself": lambda data: appended((14, len(data["code"])), (9, 0))(data),
    "a jump behind the end": lambda data: appended((14, len(data["code"]) + 5), (9, 0))(data),
    "a stack that grows too deep": appended(*([(1, 0)] * 9000), (15, 9000), (9, 0)),
    "an empty stack": appended((5, 0), (9, 0)),
    "two values returned": appended((1, 0), (1, 0), (9, 0)),
    "a loop that steps into nothing": appended((1, 0), (20, 0), (9, 0)),
    "an expression without end": appended((1, 0), *([(1, 0), (5, 0)] * 60_000), (9, 0)),
    "a rule twice": lambda data: data["rules"].append(dict(data["rules"][0])),
    "an id with a line end": put("MAIL", id="MAIL\n"),
    "an id with a blank": put("MAIL", id="MA IL"),
    "an empty id": put("MAIL", id=""),
    "a mode that is none": put("MAIL", mode="enforced"),
    "a stage that is none": put("MAIL", stages=["midair"]),
    "no stage": put("MAIL", stages=[]),
    "a channel that is none": put("MAIL", channels=["contents"]),
    "no channel": put("MAIL", channels=[]),
    "a channel of another stage": put("CODE", channels=["content", "user"]),
    "a stage without channels": put("CODE", stages=["ingress", "midstream"], channels=["content"]),
    "an action at a stage where it can't run": put("MAIL", stages=["egress", "ingress", "midstream"]),
    "an action on a channel where it can't run": lambda data: (
        rule(data, "WORDS").update(channels=["reasoning"]),
        rule(data, "WORDS")["actions"].append({"type": "inject_disclaimer", "text": "x", "position": "after_sentence"}),
    ),
    "no action": put("MAIL", actions=[]),
    "an action that is none": put("MAIL", actions=[{"type": "pseudonymize"}]),
    "an action twice": lambda data: rule(data, "MAIL")["actions"].append(rule(data, "MAIL")["actions"][0]),
    "an exception that stops": lambda data: rule(data, "EXCEPT")["actions"].append(
        {"type": "redact", "text": None, "style": "mask", "scope": "span", "numbers": "label"}
    ),
    "a status that is none": act("CODE", "stop", status=200),
    "a status of any size": act("CODE", "stop", status=10**12),
    "a text that is no template": act("CODE", "stop", message="{"),
    "a text with an unknown variable": act("CODE", "stop", message="{secret}"),
    "a text with a control character": act("CODE", "stop", message="a\x1b[2J"),
    "a text of any size": act("CODE", "stop", message="x" * 4001),
    "a temperature above all": act("ALWAYS", "lower_temp", temperature=2.5),
    "a temperature below zero": act("ALWAYS", "lower_temp", temperature=-0.5),
    "a temperature that is none": act("ALWAYS", "lower_temp", temperature=None),
    "a bias out of bounds": act("BOTH", "safe_mode", logit_bias=[[7, -101]]),
    "a token out of bounds": act("BOTH", "safe_mode", logit_bias=[[-1, 0]]),
    "a tool that is none": act("BOTH", "safe_mode", tools=["a b"]),
    "every tool": act("BOTH", "safe_mode", tools=["*"]),
    "a token that never expires": act("BOTH", "require_confirmation", expires_s=10**9),
    "two forms": act("BOTH", "allow_constrained", grammar="x"),
    "no form": act("BOTH", "allow_constrained", json_schema=None),
    "a form that is no JSON": act("BOTH", "allow_constrained", json_schema="{"),
    "a form that is no mapping": act("BOTH", "allow_constrained", json_schema="[]"),
    "no sources in the text": act("END", "attribute_sources", text="None."),
    "too many sources": act("END", "attribute_sources", max_sources=51),
    "no words to rewrite": act("WORDS", "rewrite_span", words=[]),
    "an editor that is none": act("WORDS", "rewrite_span", editor="model"),
    "a text in another style": act("MAIL", "redact", style="mask"),
    "a style without its text": act("MAIL", "redact", text=None),
    "a severity that is none": act("WORDS", "log_event", severity="fatal"),
    "another severity that is none": put("END", severity="fatal"),
    "a citation of any size": put("END", citation="x" * 1001),
    "a share above all": put("CODE", enforce_share=1.5),
    "a threshold above all": put("BOTH", thresholds=[None, 1.5, None, None, 0.25]),
    "a threshold for what is found": put("MAIL", thresholds=[0.5]),
    "thresholds for others": put("MAIL", thresholds=[]),
    "a trigger that is not there": put("MAIL", triggers=[1000]),
    "a trigger below zero": put("MAIL", triggers=[-1]),
    "reads what is not there": put("CODE", reads=[1000]),
    "an entry of no rule": enter("MAIL", rule=1000),
    "an entry of no signal": enter("MAIL", signal=1000),
    "an entry for a signal of another rule": enter("MAIL", signal=1),
    "an entry without a signal": enter("MAIL", signal=-1),
    "a bare entry with a signal": enter("ALWAYS", signal=0),
    "a floor that is no threshold": enter("MAIL", floor=0.5),
    "a rule without entry": lambda data: data["entries"].remove(entries(data, "MAIL")[0]),
    "a trigger without entry": lambda data: data["entries"].remove(entries(data, "CODE")[0]),
    "a bare rule with two entries": lambda data: data["entries"].append(dict(entries(data, "ALWAYS")[0])),
    "conditions that nobody asks": enter("CODE", start=-1),
    "code of another rule": lambda data: entries(data, "MAIL")[0].update(start=entries(data, "BOTH")[0]["start"]),
    "alone, and reads others": put("BOTH", alone=True),
    "reads less than its code": put("CODE", reads=[]),
    "conditions without code": put("CODE", condition_starts=[]),
    "code without conditions": put("CODE", conditions=[]),
    "no wait for the scores that it reads": put("CODE", waits="no"),
    "a wait for no scores": put("MAIL", waits="check"),
    "a wait that is none": put("MAIL", waits="forever"),
    "a wait for the end of what is alone": put("MAIL", waits="end"),
    "a wait for the end of an answer": put(
        "BOTH", stages=["midstream"], channels=["content"], actions=[{"type": "stop", "message": "", "status": None}]
    ),
    "a rule without triggers midstream": put(
        "ALWAYS", stages=["midstream"], channels=["content"], actions=[{"type": "stop", "message": "", "status": None}]
    ),
    "a rule without triggers on a channel": put("ALWAYS", channels=["user"]),
    "a rule without triggers on a span": put("ALWAYS", actions=[{"type": "allow"}]),
    "a rule of the request that reads the text": lambda data: entries(data, "ALWAYS")[0].update(
        start=entries(data, "END")[0]["start"]
    ),
    "a switch that reads the text": lambda data: rule(data, "CODE").update(
        enabled_start=entries(data, "END")[0]["start"]
    ),
    "an entity of another version": signal(0, regex="[a-z]+@"),
    "an entity that is none": signal(0, name="EMIAL"),
    "a model for what has an expression": signal(0, model="ner", threshold=0.5),
    "a threshold for what has an expression": signal(0, threshold=0.5),
    "a model without a threshold": lambda data: of_model(data).update(threshold=None),
    "a threshold without a model": lambda data: of_model(data).update(model=None),
    "a threshold beyond one": lambda data: of_model(data).update(threshold=1.5),
    "a model that is no name": lambda data: of_model(data).update(model="n e r"),
    "an entity of a model with an expression": lambda data: of_model(data).update(regex="x"),
    "an entity of a model that is no name": lambda data: of_model(data).update(name="per\nson"),
    "a pattern of a model": lambda data: pattern(data, model="ner", threshold=0.5),
    "no wait for what a model finds": put("PEOPLE", waits="no"),
    "a pattern without expression": lambda data: pattern(data, regex=None),
    "a pattern that is no expression": lambda data: pattern(data, regex="("),
    "a pattern without bound": lambda data: pattern(data, max_chars=None),
    "a pattern of nothing": lambda data: pattern(data, regex="x*"),
    "a bound of any size": lambda data: pattern(data, max_chars=10**9),
    "a phrase that looks for something else": lambda data: found(data, "phrase").update(regex="(?i)other"),
    "a score with an expression": lambda data: found(data, "classifier").update(regex="x"),
    "a score of no classifier": lambda data: found(data, "classifier").update(name="alpha"),
    "a kind of signal that is none": signal(0, kind="oracle"),
    "a signal twice": lambda data: data["signals"].append(dict(data["signals"][0])),
    "a variable of no field": lambda data: variable(data, "request").update(name="password"),
    "a variable of no signal": lambda data: variable(data, "count").update(signal=1000),
    "a variable of a signal without one": lambda data: variable(data, "count").update(signal=-1),
    "a constant of no type": lambda data: data["constants"].append(["object", "x"]),
    "a constant of another spelling": lambda data: data["constants"].append(["int", "007"]),
    "a number too large": lambda data: data["constants"].append(["int", str(2**63)]),
    "digits of another script": lambda data: data["constants"].append(["int", "\u0663"]),
    "an expression that RE2 can't run": lambda data: data["constants"].append(["regex", "(?=x)"]),
    "a time that is none": lambda data: data["constants"].append(["timestamp", str(10**21)]),
    "a list of no constants": lambda data: data["constants"].append(["list", "[1]"]),
    "a map with a key twice": lambda data: data["constants"].append(
        ["map", '[[["int","1"],["int","1"]],[["int","1"],["int","2"]]]']
    ),
}
"""What is wrong -> how the plain data is made so."""


def found(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in data["signals"] if each["kind"] == kind)


def of_model(data: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in data["signals"] if each["model"] is not None)


def pattern(data: dict[str, Any], **fields: Any) -> None:
    found(data, "pattern").update(fields)


def variable(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in data["variables"] if each["kind"] == kind)


# --- what is loaded runs

CHAT = OpenAIChat()
CONTEXT = from_json({"a": {"b": 3}, "name": "Ann", "at": "2026-11-22T00:00:00Z"})
REQUEST: dict[str, Value] = {"model": "m", "stream": True, "tools": ("search", "sss")}
TEXT = "Write to ann@example.com about code-123, zero risk and the press office: guaranteed."


def scored(score: Score) -> AnyEvent:
    return Scored(score.ticket, {"toy.alpha": 0.9, "toy.beta": 0.1, "lexicon.toxicity": 0.9})


def exercise(made: Program) -> None:
    """Decide everything once, list it, and run exchanges under it."""
    exchange, _ = exchange_facts(made, CONTEXT, REQUEST, who=("c", "u"), fail_mode="closed")
    every = range(len(made.signals))
    for stage, channel in made.scopes:
        empty = Facts(stage, channel, exchange)
        full = Facts(
            stage,
            channel,
            exchange,
            counts=dict.fromkeys(every, 3),
            scores=dict.fromkeys(every, 0.9),
            peaks=dict.fromkeys(every, 0.9),
            stream=StreamFacts(tokens=12, risk=0.5, trend=0.1, language="en"),
        )
        for facts in (empty, full):
            machine = Machine(made, facts)
            for entry in made.entries:
                rule = made.rules[entry.rule]
                if stage in rule.stages and (entry.signal >= 0 or stage is not Stage.MIDSTREAM):
                    assert machine.decide(entry) in {True, False, None}
            for rule in made.rules:
                for start in rule.condition_starts:
                    machine.value(start)
    assert disassemble(made)
    message = {"role": "user", "content": TEXT}
    for streaming in (True, False):
        asked = {"model": "m", "stream": streaming, "messages": [message]}
        words = TEXT.split(" ")
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        rows = [{**head, "choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in words]
        rows.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        pieces = [b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows]
        whole = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
        body = {**head, "object": "chat.completion", "choices": [whole]}
        out = play(
            CHAT,
            Plan(program=made),
            json.dumps(asked).encode(),
            [*pieces, b"data: [DONE]\n\n"] if streaming else [json.dumps(body).encode()],
            streaming=streaming,
            scorer=scored,
        )
        assert out.record is not None


def refused(data: bytes) -> bool:
    """Load a program and run all of it, if it isn't refused."""
    try:
        made = load(data)
    except ProgramInvalid as error:
        str(error).encode()  # can be printed
        return True
    assert stored(made) == data
    exercise(made)
    return False
