"""Judges answers afresh, as they were released and as one text, by the policies of their route or by stricter ones.

What fires now has left: a violation after the fact. It is told by rule and place, never by its text. Runs in a worker,
beside what holds answers against evidence; the request path knows nothing of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import msgspec

from checkstream.app.force import load_base, title_of
from checkstream.app.models import OpenModel, open_models
from checkstream.app.parts import open_journal
from checkstream.audit.entries import RescoredEntry
from checkstream.config import Config, RouteSettings
from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.capabilities import RESPONSES
from checkstream.core.policy.program import Program
from checkstream.core.terms import Stage, Verdict, keeps_back
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import AuditError, ConfigError, JobError, JobInvalid, ScoringError
from checkstream.jobs.exchange import Exchange, Message
from checkstream.jobs.rescored import Rescored, Violation, cutoff_ms
from checkstream.jobs.scoring import Assessment
from checkstream.jobs.scoring import Scorer as JobScorer
from checkstream.scoring.opening import open_session
from checkstream.scoring.scorer import Scorer
from checkstream.telemetry.logs import Log

_NO_CAP = 1 << 30
"""What the proxy took in was within its own limits."""
_TURN_WORK = 1000
_SURFACE = SURFACES["openai.chat"]
_JUDGED = frozenset({"complete", "stopped"})
_ROLES = MappingProxyType({"system": "system", "assistant": "assistant", "tool_result": "tool"})
"""Kind of a text of a prompt -> role of a message; all else the user has said."""


class Rescoring:
    """Judges what is put before it."""

    def __init__(self, programs: Mapping[str, Program], scorer: Scorer, models: Mapping[str, str]) -> None:
        """Judge by `programs`, by route; `scorer` asks their classifiers, `models` are those by name and version."""
        self._programs = programs
        self._scorer = scorer
        self._models = models

    @property
    def version(self) -> str:
        """Changes with what it judges by."""
        made = {route: program.hash for route, program in self._programs.items()}, self._models
        return f"1 {hashlib.sha256(msgspec.json.encode(made, order='deterministic')).hexdigest()[:16]}"

    async def assess(self, exchange: Exchange) -> Assessment:
        """Judge an answer.

        Raises:
            JobInvalid: nobody re-scores its route here.
            JobError: a classifier could not answer; it is tried again.
        """
        program = self._programs.get(exchange.route)
        if program is None:
            raise JobInvalid(f"answers of the route `{exchange.route}` are not scored again here")
        unsure = _unsure(program, exchange)
        record = await self._run(_without(program, unsure), exchange)
        if record.outcome not in _JUDGED and record.outcome != "refused":
            raise JobError(f"the answer could not be judged: {record.outcome}")
        judged = record.outcome in _JUDGED
        found = tuple(_told(each) for each in record.verdicts if judged and _condemns(each))
        if found and any(rule.excepts for rule in program.rules if rule.id in unsure):
            judged, found = False, ()
        cut_ms = cutoff_ms(found, exchange.ages)
        report = Rescored(
            caller=exchange.caller,
            judged=judged,
            violations=found,
            cutoff_ms=cut_ms,
            policies=record.policies,
            left_out=tuple(sorted(unsure)),
        )
        return Assessment(risk=100.0 if found else 0.0, report=msgspec.json.encode(report))

    async def _run(self, program: Program, exchange: Exchange) -> do.StreamRecord:
        """Run a prompt and its answer through a guard, and return what it records.

        Raises:
            JobError: a classifier could not answer, or the guard came to no end.
        """
        plan = Plan(
            program=program, route=exchange.route, models=self._models, turn_work=_TURN_WORK, tells=False,
            prompt_chars=_NO_CAP, prompt_messages=_NO_CAP, answer_bytes=_NO_CAP, event_bytes=_NO_CAP,
            held_bytes=_NO_CAP, call_bytes=_NO_CAP, said=_said(exchange),
        )  # fmt: skip
        guard = machine_for(_SURFACE, plan, lambda _: "")
        pending: list[on.AnyEvent] = [_request(exchange)]
        while pending:
            await asyncio.sleep(0)
            for command in guard.receive(pending.pop(0), time.monotonic()):
                match command:
                    case do.Score():
                        pending.append(await self._scored(command))
                    case do.ForwardRequest():
                        pending += _answered(exchange.answer)
                    case do.Yield():
                        pending.insert(0, on.Resumed())
                    case do.Recall():
                        pending.append(on.Recalled(None))
                    case do.Record():
                        return command.record
                    case _:
                        pass
        raise JobError("the guard came to no end; this is a bug, please report it")

    async def _scored(self, command: do.Score) -> on.Scored:
        """Ask classifiers.

        Raises:
            JobError: they could not answer.
        """
        try:
            checked = await self._scorer.ask(
                command.classifiers, command.text, command.deadline_ms, ingress=command.ingress,
                fresh_chars=command.fresh_chars, open_chars=command.open_chars, parts=command.parts,
            ).answer()  # fmt: skip
        except ScoringError as error:
            raise JobError(f"a classifier did not answer ({error.reason}); it is asked again later") from error
        return on.Scored(command.ticket, checked.scores, checked.entities)


def _condemns(verdict: Verdict) -> bool:
    """Tell whether a verdict is that something of the answer should not have left."""
    enforced = verdict.mode == "enforce" and verdict.excepted_by is None
    return enforced and verdict.stage is not Stage.INGRESS and keeps_back(verdict.action, verdict.stage)


def _told(verdict: Verdict) -> Violation:
    return Violation(
        rule_id=verdict.rule_id,
        action=verdict.action,
        confidence=verdict.confidence,
        start=verdict.spans[0].start if verdict.spans else 0,
        end=verdict.spans[-1].end if verdict.spans else 0,
        triggers=verdict.triggers,
        model=verdict.model or "",
    )


def _unsure(program: Program, exchange: Exchange) -> frozenset[str]:
    """Return the ids of rules that ask for what nobody knows any more.

    What a caller had said spares what is said again; of exceptions that only makes more of them. Earlier requests, and
    all that a document said, are known to none.
    """
    about = exchange.circumstances
    kept = exchange.surface == RESPONSES and "conversation" in about.request  # the provider has what was said before
    none_is_known = about.edited or kept or "previous_response_id" in about.request
    unsure = set(program.recalling)
    for rule in program.rules:
        spares = (each for number in rule.needs if (each := program.signals[number].spares) is not None)
        asked = {channel for each in spares for channel in each.request}
        if asked and not rule.excepts and (none_is_known or (exchange.documents and "document" in asked)):
            unsure.add(rule.id)
    return frozenset(unsure)


def _without(program: Program, rules: frozenset[str]) -> Program:
    """Return a program in which some rules are enforced for nobody."""
    changed = (msgspec.structs.replace(each, enforce_share=0.0) if each.id in rules else each for each in program.rules)
    return msgspec.structs.replace(program, rules=tuple(changed)) if rules else program


def _said(exchange: Exchange) -> dict[str, Any]:
    """Return fields of `request` as conditions read them: lists come out of the queue as such."""
    said = exchange.circumstances.request
    return {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}


def _request(exchange: Exchange) -> on.RequestReceived:
    """Return the prompt as a request: what the user has said is nobody's leak where it is said again."""
    told = [_message(each) for each in exchange.messages]
    body = {"model": "m", "messages": told or [{"role": "user", "content": " "}]}
    about = exchange.circumstances
    return on.RequestReceived(
        json.dumps(body).encode(),
        caller=about.request.get("caller"),
        context=about.context or None,
        confirmed=about.confirmed,
        known=about.known,
    )


def _message(message: Message) -> dict[str, str]:
    role = _ROLES.get(message.role, "user")
    return {"role": role, "content": message.text} | ({"tool_call_id": "c"} if role == "tool" else {})


def _answered(answer: str) -> Iterator[on.AnyEvent]:
    """Yield the answer as one that came whole."""
    choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
    body = {"id": "a", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    yield on.UpstreamOpened(200, streaming=False)
    yield on.UpstreamBytes(json.dumps(body).encode())
    yield on.UpstreamClosed()


@asynccontextmanager
async def opened_rescoring(config: Config) -> AsyncIterator[dict[str, JobScorer]]:
    """Open what judges answers afresh, as workers use it; nothing where no route asks for it.

    Raises:
        ConfigError: a model can't be used.
        PolicyError: the policies can't be used.
    """
    routes = {
        route.name: msgspec.structs.replace(route, policies=route.rescore.policies or route.policies)
        for route in config.routes
        if route.rescore is not None and _is_rescored(route)
    }
    if not routes:
        yield {}
        return
    alone = msgspec.structs.replace(config, routes=tuple(routes.values()))

    def opened() -> tuple[dict[str, Program], tuple[OpenModel, ...]]:
        loaded = load_base(alone)
        programs = {route.name: loaded.programs[route.policies] for route in loaded.config.routes}
        return programs, open_models(loaded.models, (), open_session)

    programs, models = await asyncio.to_thread(opened)
    sessions = {model.source.entry.name: model.session for model in models}
    scorer = Scorer([model.model for model in models], lambda model: sessions[model.name])
    try:
        rescoring = Rescoring(programs, scorer, {model.source.entry.name: title_of(model) for model in models})
        yield {"rescore": JobScorer(version=rescoring.version, assess=rescoring.assess)}
    finally:
        await scorer.close()


@asynccontextmanager
async def opened_record(config: Config, log: Log) -> AsyncIterator[Callable[[RescoredEntry], None] | None]:
    """Give what puts answers that were judged afresh on record, in an audit chain of this process; None: nothing does.

    Nothing does where no route asks for it, or where the folder can't be written: answers are judged and counted all
    the same, and the log says that the control server will not hear of it.
    """
    if not any(map(_is_rescored, config.routes)):
        yield None
        return
    try:
        _, journal = await asyncio.to_thread(open_journal, config.audit, "worker")
    except (AuditError, ConfigError) as error:
        log.warning("rescored.unrecorded", detail=str(error))
        yield None
        return
    told = False

    def record(entry: RescoredEntry) -> None:
        nonlocal told
        try:
            journal.append(entry)
        except AuditError as error:
            if not told:
                log.warning("rescored.unrecorded", detail=str(error))
            told = True

    try:
        yield record
    finally:
        try:
            await journal.aclose()
        except AuditError as error:
            if not told:
                log.warning("rescored.unrecorded", detail=str(error))


def _is_rescored(route: RouteSettings) -> bool:
    return route.rescore is not None and route.rescore.sample > 0
