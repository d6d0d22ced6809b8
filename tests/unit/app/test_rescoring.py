"""Released answers judged again: what should have fired is told by rule and place; what a guard let out is clean."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.app import rescoring
from checkstream.app.background import _profiles, exchanges
from checkstream.app.following import Beside
from checkstream.app.force import load
from checkstream.app.models import open_models
from checkstream.app.rescoring import Rescoring, opened_record, opened_rescoring
from checkstream.audit.chain import read
from checkstream.audit.keys import load_public_key
from checkstream.audit.verify import verify
from checkstream.config import BundleSettings, GroundingSettings, RescoreSettings, load_config
from checkstream.core.commands import Enqueue
from checkstream.core.events import RequestReceived
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.terms import Circumstances
from checkstream.errors import ConfigError, JobError, JobInvalid, ModelError, PolicyError, ScoringError
from checkstream.jobs import Exchange, Message
from checkstream.jobs.exchange import read_scoring_job, scoring_jobs
from checkstream.jobs.rescored import RESCORE, Rescored
from checkstream.jobs.scoring import Scorer
from checkstream.proxy.accept import Route
from checkstream.telemetry import open_log
from tests.bundled import STOPS, World
from tests.guarded import CHAT, LABELS
from tests.playbook import Exchange as Guarded
from tests.playbook import constant
from tests.recordings import request, say, streamed
from tests.records import rescored
from tests.unit.app.test_following import put

LAX = """
pack: {name: lax, version: 1.0.0}
policies:
  - {name: mail, id: MAIL, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: refuses, id: ASK, stage: [ingress], phrases: [forbidden], actions: [{type: reject}]}
"""
STRICT = """
pack: {name: strict, version: 2.0.0}
policies:
  - {name: mail, id: MAIL, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: blue, id: BLUE, stage: [midstream], phrases: [blue], actions: [{type: stop}]}
  - {name: red, id: RED, stage: [midstream], phrases: [red], mode: shadow, actions: [{type: stop}]}
  - {name: log, id: LOG, stage: [midstream], phrases: [green], actions: [{type: log_event}]}
  - {name: rude, id: RUDE, stage: [midstream], classifiers: [{name: lexicon.toxicity, threshold: 0.5}],
     actions: [{type: redact}]}
  - {name: refuses, id: ASK, stage: [ingress], phrases: [forbidden], actions: [{type: reject}]}
"""
MAIL = "joe@example.com"


def written(folder: Path, **route: Any) -> Path:
    (folder / "lax.yaml").write_text(LAX)
    (folder / "strict.yaml").write_text(STRICT)
    settings: dict[str, Any] = {
        "upstreams": {"local": {"url": "http://127.0.0.1:8000"}},
        "routes": [
            {"name": "chat", "match": {"path": "/v1/chat/completions"}, "upstream": "local", "policies": ["lax.yaml"]}
            | route
        ],
    }
    file = folder / "checkstream.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file


def said(answer: str, *prompt: Message, route: str = "chat") -> Exchange:
    return Exchange(stream="s1", route=route, surface="openai.chat", messages=prompt, answer=answer)


@pytest_asyncio.fixture
async def strict(tmp_path: Path) -> AsyncIterator[Scorer]:
    config = load_config(written(tmp_path, rescore={"sample": 1, "policies": ["strict.yaml"]}))
    async with opened_rescoring(config) as found:
        yield found[RESCORE]


async def judged(scorer: Scorer, answer: str, *prompt: Message) -> Rescored:
    assessment = await scorer.assess(said(answer, *prompt))
    told = msgspec.json.decode(assessment.report, type=Rescored)
    assert assessment.risk == (100.0 if told.violations else 0.0)
    assert MAIL.encode() not in assessment.report
    return told


async def test_what_has_left_and_should_not_have_is_told_by_rule_and_place(strict: Scorer) -> None:
    told = await judged(strict, f"Write to {MAIL}. It is blue.", Message("user", "Whom?"))
    assert (told.result, told.policies) == ("violation", ("strict@2.0.0",))
    assert [(each.rule_id, each.action, each.start, each.end) for each in told.violations] == [
        ("MAIL", "redact", 9, 9 + len(MAIL)),
        ("BLUE", "stop", 32, 36),
    ]
    assert [each.model for each in told.violations] == ["", ""]


async def test_a_classifiers_violation_says_which_model_has_scored(strict: Scorer) -> None:
    told = await judged(strict, "You are a stupid idiot, shut up you moron.")
    assert told.violations
    for found in told.violations:
        assert found.rule_id == "RUDE"
        assert found.model.startswith("lexicon@")
        assert found.confidence >= 0.5


@pytest.mark.parametrize(
    "answer", ["", "All is well.", "It is red and green.", f"Write to [EMAIL] at {'a' * 20_000}.", "\ud83d half"]
)
async def test_what_no_rule_would_have_kept_is_clean(strict: Scorer, answer: str) -> None:
    assert (await judged(strict, answer, Message("user", "Hi"), Message("tool", "x"))).result == "clean"


async def test_of_an_answer_whose_prompt_would_be_refused_nothing_is_said(strict: Scorer) -> None:
    told = await judged(strict, f"Write to {MAIL}.", Message("user", "something forbidden"))
    assert (told.result, told.violations) == ("unjudged", ())


async def test_a_route_that_nobody_judges_is_a_dead_letter(strict: Scorer) -> None:
    with pytest.raises(JobInvalid, match="`other`"):
        await strict.assess(said("x", route="other"))


async def test_without_policies_of_its_own_the_routes_judge_and_without_routes_nothing_is_opened(
    tmp_path: Path,
) -> None:
    async with opened_rescoring(load_config(written(tmp_path, rescore={"sample": 1}))) as found:
        told = await judged(found[RESCORE], f"{MAIL} is blue")
        assert [each.rule_id for each in told.violations] == ["MAIL"]
        version = found[RESCORE].version
    (tmp_path / "lax.yaml").write_text(LAX.replace("1.0.0", "1.0.1"))
    async with opened_rescoring(load_config(tmp_path / "checkstream.yaml")) as found:
        assert found[RESCORE].version != version, "other policies judge anew"
    for nothing in ({}, {"rescore": {"sample": 0}}):
        async with opened_rescoring(load_config(written(tmp_path, **nothing))) as found:
            assert found == {}


async def test_policies_that_can_not_be_used_are_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        load_config(written(tmp_path, rescore={"policies": ["none.yaml"]}))
    with pytest.raises(ConfigError, match="sample"):
        load_config(written(tmp_path, rescore={"sample": 1.5}))
    file = written(tmp_path, rescore={"sample": 1, "policies": ["strict.yaml"]})
    (tmp_path / "strict.yaml").write_text(STRICT.replace("EMAIL", "NOTHING"))
    with pytest.raises(PolicyError, match="NOTHING"):
        async with opened_rescoring(load_config(file)):
            pass


async def test_a_candidate_whose_model_can_not_be_opened_stops_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the base judges: a proxy goes on, too, where the candidate of a rollout can't be used."""

    def refuse(_: object) -> Any:
        raise ModelError("the file has another hash")

    monkeypatch.setattr(rescoring, "open_session", refuse)
    settings = BundleSettings(source="s", root="r", name="retail", dir=str(tmp_path / "node"))
    reads = "{name: m, id: R-2, stage: [midstream], classifiers: [{name: lexicon.toxicity, threshold: 0.5}]"
    base, beside = (
        put(World(tmp_path / version), settings, rules, version=version).pointer
        for version, rules in (("1", STOPS), ("2", f"{reads}, actions: [{{type: stop}}]}}"))
    )
    candidate = Beside(digest=beside.digest, weight=beside.weight, share=10, salt="ab")
    here = msgspec.structs.replace(base, candidate=candidate)
    (tmp_path / "node" / "current").write_bytes(msgspec.json.encode(here))
    as_written = load_config(written(tmp_path, rescore={"sample": 1}))
    routes = tuple(msgspec.structs.replace(route, policies=("bundle:chat",)) for route in as_written.routes)
    config = msgspec.structs.replace(as_written, bundles=settings, routes=routes)
    loaded = load(lambda: config)
    assert loaded.candidate is not None
    with pytest.raises(ConfigError, match="another hash"):
        open_models(loaded.models, (), refuse)
    async with opened_rescoring(config) as found:
        told = await judged(found[RESCORE], "There is zero risk.")
        assert [each.rule_id for each in told.violations] == ["R-1"]


class Failing:
    def ask(self, *_: object, **__: object) -> Any:
        raise ScoringError("busy", reason="overload")


async def test_a_classifier_that_does_not_answer_is_asked_again_later() -> None:
    program = compile_sources([("s", STRICT)], LABELS)
    judging = Rescoring({"chat": program}, Failing(), {})  # type: ignore[arg-type]
    with pytest.raises(JobError, match="overload"):
        await judging.assess(said("All is well."))


@pytest.mark.parametrize(
    ("ages", "cut_ms"),
    [((), None), (((0, 0.9), (9, 0.75), (30, 0.02)), 750.0), (((0, 0.9), (30, 0.02)), 900.0), (((20, 0.5),), 500.0)],
)
async def test_of_a_stopped_answer_it_is_told_how_long_before_that_the_first_violation_had_come(
    strict: Scorer, ages: tuple[tuple[int, float], ...], cut_ms: float | None
) -> None:
    stopped = msgspec.structs.replace(said(f"Write to {MAIL}. It is blue."), ages=ages)
    told = msgspec.json.decode((await strict.assess(stopped)).report, type=Rescored)
    assert told.cutoff_ms == cut_ms
    clean = msgspec.json.decode((await strict.assess(msgspec.structs.replace(stopped, answer="Hi"))).report)
    assert clean["cutoff_ms"] is None


WORDS = st.sampled_from(["blue", "red", MAIL, "a", "sky", "BLUE", "joe@", "example.com", "\n", "."])
_OF_MODELS = STRICT[STRICT.index("  - {name: rude") : STRICT.index("  - {name: refuses")]
ONLY_PATTERNS = compile_sources([("s", STRICT.replace(_OF_MODELS, ""))], LABELS)


OF_CIRCUMSTANCES = """
pack: {name: of_circumstances, version: 1.0.0}
policies:
  - {name: mask, id: MASK, stage: [ingress], entities: [EMAIL], enabled_when: "has(context.masks)",
     actions: [{type: redact}]}
  - {name: mail, id: MAIL, stage: [midstream], actions: [{type: redact}],
     entities: [{name: EMAIL, unless: in_request, in: [user, tool_result, document]}]}
  - {name: blue, id: BLUE, stage: [midstream], phrases: [blue], enabled_when: "!has(context.tenant)",
     actions: [{type: redact}]}
  - {name: red, id: RED, stage: [midstream], phrases: [red], conditions: ['request.stream && !has(request.user)'],
     actions: [{type: redact}]}
  - {name: sky, id: SKY, stage: [midstream], phrases: [sky], enforce_share: 0.5, actions: [{type: redact}]}
  - {name: kin, id: KIN, stage: [midstream], phrases: [kin], enabled_when: '!has(context.role)',
     actions: [{type: redact}]}
  - {name: ask, id: ASK, stage: [ingress], phrases: [sky], actions: [{type: require_confirmation}]}
  - {name: more, id: MORE, stage: [midstream], phrases: [more], conditions: ['conversation.turns > 1'],
     actions: [{type: redact}]}
"""
CIRCUMSTANCES = compile_sources([("c", OF_CIRCUMSTANCES)], LABELS)
SAID = st.lists(st.sampled_from(["blue", "red", "sky", "kin", "more", MAIL]), max_size=6).map(" ".join)


def released(program: Program, received: RequestReceived, answer: str) -> Exchange:
    """Return what is handed over of an exchange that a guard has let out."""
    guarded = Guarded(CHAT, Plan(program=program, route="chat", scored_chars=10_000), constant(0.0))
    for event in (received, *streamed(say([answer]), step=7)):
        guarded.send(event)
    (put_,) = (command for command in guarded.out.commands if isinstance(command, Enqueue))
    route = Route(name="chat", match=None, upstream=None, surface=CHAT)  # type: ignore[arg-type]
    (exchange,) = exchanges(put_.dialogue, "s1", route, received.caller)
    (job,) = scoring_jobs(exchange, (RESCORE,), 1, 1 << 20)
    return read_scoring_job(job)[1]


def rejudged(program: Program, exchange: Exchange) -> Rescored:
    judging = Rescoring({"chat": program}, Failing(), {})  # type: ignore[arg-type]
    return msgspec.json.decode(asyncio.run(judging.assess(exchange)).report, type=Rescored)


@given(st.lists(WORDS, max_size=12))
@settings(deadline=None)
def test_what_a_guard_has_let_out_is_clean_under_its_own_rules(words: list[str]) -> None:
    exchange = released(ONLY_PATTERNS, request("Hi", stream=True), " ".join(("So", *words)))
    assert rejudged(ONLY_PATTERNS, exchange) == Rescored(judged=True, policies=("strict@2.0.0",))


@st.composite
def requests(draw: st.DrawFn) -> RequestReceived:
    """Return a request of some caller, with what rules read besides its texts."""
    facts = dict.fromkeys(draw(st.sets(st.sampled_from(["masks", "tenant"]))), "x")
    within, found, user = draw(st.booleans()), draw(st.none() | SAID), draw(st.none() | st.sampled_from(["u1", "u2"]))
    own = {"context": facts if within else None, "documents": draw(st.none() | st.lists(SAID, max_size=1))}
    tool = [] if found is None else [{"role": "tool", "tool_call_id": "c", "content": found}]
    who = {} if user is None else {"user": user}
    return msgspec.structs.replace(
        request(draw(SAID), *tool, stream=True, checkstream=own, **who),
        caller=draw(st.none() | st.sampled_from(["ann", "bob", "cy", "dee"])),
        context=json.dumps(facts) if facts and not within else None,
        confirmed=("ASK",),
        known=draw(st.sampled_from(["", '{"role": "clerk"}'])),
    )


@given(requests(), SAID)
@settings(deadline=None)
def test_what_has_been_let_out_under_its_circumstances_is_clean_under_them(
    received: RequestReceived, answer: str
) -> None:
    told = rejudged(CIRCUMSTANCES, released(CIRCUMSTANCES, received, f"So {answer} and so on."))
    assert (told.judged, told.violations) == (True, ())


def test_what_is_not_known_any_more_is_left_out_and_all_else_is_judged() -> None:
    of_two = compile_sources(
        [("c", OF_CIRCUMSTANCES.replace('blue], enabled_when: "!has(context.tenant)"', "blue]"))], LABELS
    )
    masked = msgspec.structs.replace(request(f"Ask {MAIL}", stream=True), context='{"masks": 1}')
    exchange = released(CIRCUMSTANCES, masked, f"I asked {MAIL}.")
    told = rejudged(of_two, msgspec.structs.replace(exchange, answer=f"It is blue, says {MAIL}."))
    assert ([each.rule_id for each in told.violations], told.left_out) == (["BLUE"], ("MAIL", "MORE"))
    plain = msgspec.structs.replace(said(f"It is blue, says {MAIL}."), circumstances=Circumstances())
    assert [each.rule_id for each in rejudged(of_two, plain).violations] == ["BLUE", "MAIL"]


def test_where_an_exception_can_not_be_decided_any_more_nothing_is_said_of_what_was_found() -> None:
    excepting = """
pack: {name: e, version: 1.0.0}
policies:
  - {name: blue, id: BLUE, stage: [midstream], phrases: [blue], actions: [{type: redact}]}
  - {name: known, id: KNOWN, stage: [midstream], phrases: [so blue], conditions: ['conversation.turns > 1'],
     actions: [{type: allow}]}
"""
    program = compile_sources([("e", excepting)], LABELS)
    told = rejudged(program, said("It is so blue."))
    assert (told.result, told.violations, told.left_out) == ("unjudged", (), ("KNOWN",))
    assert rejudged(program, said("It is green.")).result == "clean"


def test_an_exchange_is_of_one_sample_of_the_other_or_of_both() -> None:
    def found(stream: str, **route: Any) -> tuple[str, ...]:
        made = Route(name="chat", match=None, upstream=None, **route)  # type: ignore[arg-type]
        return _profiles(made, stream)

    held, all_, some = GroundingSettings(), RescoreSettings(sample=1), RescoreSettings(sample=0.25)
    assert found("s1") == ()
    assert found("s1", grounding=held) == ("watchdog",)
    assert found("s1", rescore=all_) == (RESCORE,)
    assert found("s1", grounding=held, rescore=all_) == ("watchdog", RESCORE)
    share = sum(bool(found(f"s{number}", rescore=some)) for number in range(4000)) / 4000
    assert 0.2 < share < 0.3
    (job,) = scoring_jobs(said("x"), (RESCORE,), 1, 1 << 20)
    assert read_scoring_job(job) == (RESCORE, said("x"))


async def test_what_was_judged_again_goes_on_record_in_a_chain_of_its_own(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, rescore={"sample": 1}))
    async with opened_record(config, open_log("json", io.BytesIO())) as record:
        assert record is not None
        record(rescored(violated=True))
    (chain,) = verify(Path(config.audit.dir), keys=[load_public_key(tmp_path / "var" / "audit.key.pub")])
    assert (chain.bad, chain.records, chain.signed) == (None, 1, 1)
    (line,) = (Path(config.audit.dir) / f"{chain.chain}-000001.jsonl").read_bytes().splitlines()
    assert (read(line).kind, read(line).body["rules"]) == ("rescored", ["BLUE-1"])


async def test_without_a_folder_to_write_answers_are_judged_and_the_log_says_so(tmp_path: Path) -> None:
    file = io.BytesIO()
    (tmp_path / "var").write_text("no folder")
    for sample, said in ((0, 0), (1, 1)):
        config = load_config(written(tmp_path, rescore={"sample": sample}))
        async with opened_record(config, open_log("json", file)) as record:
            assert record is None
        assert file.getvalue().count(b"rescored.unrecorded") == said
    assert str(tmp_path / "var").encode() in file.getvalue()


async def test_an_answer_says_whose_it_is_where_its_route_knows(strict: Scorer) -> None:
    exchange = msgspec.structs.replace(said("Fine."), caller="ann")
    (job,) = scoring_jobs(exchange, [RESCORE], 0, 10_000)
    _, come = read_scoring_job(job)
    assert msgspec.json.decode((await strict.assess(come)).report, type=Rescored).caller == "ann"
