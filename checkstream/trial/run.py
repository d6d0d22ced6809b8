"""Runs a test case through real guards, however its answer may be cut, and says what differs from what it expects."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from checkstream.core.commands import Score, StreamRecord
from checkstream.core.events import (
    EntityFound,
    RequestReceived,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.program import Program
from checkstream.core.terms import Recited, Verdict
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from checkstream.trial.cases import ENDING_ACTIONS, Case
from checkstream.trial.exchange import Answers, Came, Exchange, read_texts
from checkstream.trial.paths import NOWHERE, follow, parse_path
from checkstream.trial.script import Cut, answer_kind, answer_pieces, cuts, request_body

_STEP_S = 0.001
_MOST_TURNS = 4
"""How often an answer is continued before a case gives up on it."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What one way of running a case came to."""

    cut: str
    status: int
    action: str
    verdicts: tuple[Verdict, ...]
    outputs: tuple[str, ...]
    """The text that goes on, of each choice; empty: nothing of it does."""
    texts: Mapping[str, str]
    """All that the caller reads."""
    error: str
    """What an error told the caller, empty when none did."""
    forwarded: bytes | None
    """The request's body as the upstream got it first."""
    record: StreamRecord | None

    def rules(self, mode: str) -> list[str]:
        """Return the ids of rules that fired in a mode and were not excepted, each once."""
        fired = (v.rule_id for v in self.verdicts if v.mode == mode and v.excepted_by is None)
        return sorted(set(fired))


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be."""

    field: str
    """What of `expect`; `same however it is cut` when two ways of running disagree."""
    cut: str
    """The way of running that shows it."""
    expected: object
    got: object


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a case came to."""

    name: str
    line: int | None = None
    """Of the file of cases, where it came from one."""
    mismatches: tuple[Mismatch, ...]
    verdicts: tuple[str, ...] = ()
    """What the rules did in the run that shows the first mismatch, for people."""
    error: str = ""
    """What an error told the caller in that run."""

    @property
    def passed(self) -> bool:
        """All is as expected, however the answer was cut."""
        return not self.mismatches


def run_case(case: Case, program: Program, labels: Sequence[str], *, splits: int = 8) -> Result:
    """Run a case whole, as a stream, and as a stream cut by chance `splits` times.

    Args:
        case: What comes in and what must come of it.
        program: The compiled policies.
        labels: `model.label` of every score that classifiers give; names without a point are those of entities.
        splits: Random cuts of the deltas and of the bytes.
    """
    found: dict[tuple[str, str, str], Mismatch] = {}
    shown: Ran | None = None
    first: dict[bool, Ran] = {}
    plan, answers = Plan(program=program), scripted(case, labels)
    for cut in cuts(case, splits):
        ran = run(case, plan, answers, cut)
        before = first.get(cut.streaming)
        mismatches = _compare(case, ran) if before is None else _same(before, ran)
        if before is None and cut.streaming and False in first:
            mismatches += _alike(first[False], ran)
        first.setdefault(cut.streaming, ran)
        for mismatch in mismatches:
            found.setdefault((mismatch.field, repr(mismatch.expected), repr(mismatch.got)), mismatch)
            shown = shown or ran
    verdicts, error = (tuple(map(summary, shown.verdicts)), shown.error) if shown is not None else ((), "")
    return Result(name=case.name, mismatches=tuple(found.values()), verdicts=verdicts, error=error)


def scripted(case: Case, labels: Sequence[str]) -> Answers:
    """Return what the case's classifiers say of each window; `labels` as for `run_case`."""
    return functools.partial(_answer, case, labels)


def run(case: Case, plan: Plan, answers: Answers, cut: Cut) -> Ran:
    """Run a case one way."""
    surface = SURFACES["openai.chat"]
    earlier = None if case.conversation is None else case.conversation.known
    exchange = Exchange(surface, msgspec.structs.replace(plan, recalls=earlier is not None), answers, earlier)
    came = exchange.came
    body = request_body(case, streaming=cut.streaming)
    now = _STEP_S
    exchange.send(RequestReceived(body, caller=case.caller, confirmed=case.confirmed), now)
    turn = 0
    while len(came.forwarded) > turn and turn < _MOST_TURNS and came.record is None:
        pieces = answer_pieces(case, cut, turn)
        turn += 1
        exchange.send(UpstreamOpened(200, cut.streaming), now)
        for piece in pieces:
            if exchange.over or len(came.forwarded) > turn:
                break
            now += _STEP_S
            exchange.send(UpstreamBytes(piece), now)
        if not exchange.over and len(came.forwarded) == turn:
            exchange.send(UpstreamClosed(), now)
    return _ran(case, surface, cut, came)


def _answer(case: Case, labels: Sequence[str], score: Score) -> Scored:
    asked = dict.fromkeys((label for label in labels if label.partition(".")[0] in score.classifiers), 0.0)
    if isinstance(case.scores, Mapping):
        given: Mapping[str, float] = case.scores
    else:
        given = next((scored.scores for scored in case.scores if scored.contains in score.text), {})
    scores = asked | {label: value for label, value in given.items() if label in asked}
    found = sorted(_entities(case.entities, score.text), key=lambda entity: entity.start)
    return Scored(score.ticket, scores, tuple(found))


def _entities(known: Mapping[str, Sequence[str]], text: str) -> Iterator[EntityFound]:
    """Yield what a model would find in a window that knows these texts, also where one of them has only begun."""
    for name, literals in known.items():
        for literal in literals:
            start = text.find(literal)
            while start >= 0:
                yield EntityFound(name, start, start + len(literal), 1.0)
                start = text.find(literal, start + len(literal))
            begun = next((size for size in range(len(literal) - 1, 0, -1) if text.endswith(literal[:size])), 0)
            if begun and not text[-begun - 1 : -begun].isalnum():
                yield EntityFound(name, len(text) - begun, len(text), 1.0)


def _ran(case: Case, surface: Surface, cut: Cut, came: Came) -> Ran:
    read = read_texts(surface, came)
    texts = read if came.reply is None or came.reply.status < 400 else {}
    forwarded = came.forwarded[0] if came.forwarded else None
    record = came.record
    if case.texts:
        kind = answer_kind(case)
        outputs = tuple(texts.get(f"{kind}/{choice}/0", "") for choice in range(len(case.texts)))
    else:
        outputs = ("" if forwarded is None else _prompt_text(surface, forwarded, case.kind),)
    return Ran(
        cut=cut.name,
        status=came.status,
        action=record.action if record is not None else "",
        verdicts=record.verdicts if record is not None else (),
        outputs=outputs,
        texts=texts,
        error=read.get("error", ""),
        forwarded=forwarded,
        record=record,
    )


def _prompt_text(surface: Surface, body: bytes, kind: str) -> str:
    """Return the text of a channel of the prompt; its messages stand on lines of their own."""
    deltas = surface.read_request(body).unit.deltas
    texts = [d.text for d in deltas if d.channel.kind == kind and d.path[0] == "messages" and d.path[-1] == "content"]
    return "\n".join(texts)


def _compare(case: Case, ran: Ran) -> list[Mismatch]:
    """Return what is not as the case expects it."""
    expect = case.expect
    found: list[Mismatch] = []

    def check(field: str, expected: object, got: object) -> None:
        if expected != got or isinstance(expected, bool) != isinstance(got, bool):
            found.append(Mismatch(field=field, cut=ran.cut, expected=expected, got=got))

    if ran.record is None:
        return [Mismatch(field="record", cut=ran.cut, expected="an end of the exchange", got="it never ended")]
    check("action", expect.action, ran.action)
    behind = sorted({v.rule_id for v in ran.verdicts if v.mode == "enforce" and v.action == ran.action})
    if expect.rule_id is not None and expect.rule_id not in behind:
        check("rule_id", expect.rule_id, ", ".join(behind) or "no rule")
    if expect.fired is not None:
        check("fired", sorted(expect.fired), ran.rules("enforce"))
    if expect.shadow is not None:
        check("shadow", sorted(expect.shadow), ran.rules("shadow"))
    refused = ran.cut == "whole" and ran.status >= 400 and bool(case.texts)
    if expect.status is not None and (ran.cut == "whole" or not case.texts):  # a stream that has begun has said 200
        check("status", expect.status, ran.status)
    outputs = _expected_outputs(case)
    if outputs is not None and not (refused and expect.status == ran.status):
        check("output", _one(outputs), _one(ran.outputs))
    _compare_forwarded(case, ran, found)
    for field, value in expect.record.items():
        check(f"record.{field}", value, _recorded(case, ran, field))
    return found


def _expected_outputs(case: Case) -> tuple[str, ...] | None:
    output = case.expect.output
    if output is not None:
        return (output,) if isinstance(output, str) else output
    if case.expect.action in ENDING_ACTIONS or case.kind == "document":
        return None
    if case.texts:
        return case.texts
    if isinstance(case.prompt, tuple):
        return ("\n".join(message.content for message in case.prompt if message.role == "user"),)
    return (case.prompt if case.prompt is not None else "Hello.",)


def _one(outputs: Sequence[str | None]) -> object:
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _compare_forwarded(case: Case, ran: Ran, found: list[Mismatch]) -> None:
    body = {} if ran.forwarded is None else msgspec.json.decode(ran.forwarded)
    for path, expected in case.expect.forwarded.items():
        got = follow(body, parse_path(path) or ())
        if path == "tools" and isinstance(got, list) and isinstance(expected, list):
            got = [follow(tool, ("function", "name")) for tool in got]
        if expected != got and not (expected is None and got is NOWHERE):
            shown = got if got is not NOWHERE else "nothing"
            found.append(Mismatch(field=f"forwarded.{path}", cut=ran.cut, expected=expected, got=shown))


def _recorded(case: Case, ran: Ran, field: str) -> object:
    """Return a field of the record, or of the first verdict of the expected rule, as JSON."""
    if ran.record is not None and hasattr(ran.record, field):
        return _json(getattr(ran.record, field))
    verdict = next((v for v in ran.verdicts if case.expect.rule_id in (None, v.rule_id)), None)
    return None if verdict is None else _json(getattr(verdict, field))


def _json(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value))


_BY_CUT = frozenset({"held_ms", "answer_chars", "verdicts"})
"""What of a record another cut may change: times, and how much was read of an answer that was cut off."""


def _same(first: Ran, ran: Ran) -> list[Mismatch]:
    """Return what depends on how the same answer was cut."""
    pairs: list[tuple[str, object, object]] = [
        ("text", first.texts, ran.texts),
        ("forwarded", _shown(first.forwarded), _shown(ran.forwarded)),
    ]
    if first.record is not None and ran.record is not None:
        pairs += [
            (field, getattr(first.record, field), getattr(ran.record, field))
            for field in StreamRecord.__struct_fields__
            if field not in _BY_CUT
        ]
        pairs.append(("verdicts", _timeless(first.record.verdicts), _timeless(ran.record.verdicts)))
    return _differences(first, ran, pairs)


def _timeless(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [msgspec.structs.replace(verdict, latency_ms=msgspec.UNSET) for verdict in verdicts]


def _alike(whole: Ran, stream: Ran) -> list[Mismatch]:
    """Return what differs between an answer that came whole and the same as a stream."""
    pairs: list[tuple[str, object, object]] = [
        ("action", whole.action, stream.action),
        ("verdicts", list(map(summary, whole.verdicts)), list(map(summary, stream.verdicts))),
    ]
    if whole.status < 400:  # else the message of a stop stands in an error
        pairs.append(("output", whole.outputs, stream.outputs))
    return _differences(whole, stream, pairs)


def _differences(first: Ran, ran: Ran, pairs: Sequence[tuple[str, object, object]]) -> list[Mismatch]:
    return [
        Mismatch(field=f"same {name} however it is cut ({first.cut})", cut=ran.cut, expected=one, got=other)
        for name, one, other in pairs
        if one != other
    ]


def _shown(body: bytes | None) -> str | None:
    return None if body is None else body.decode("utf-8", "replace")


def summary(verdict: Verdict) -> str:
    """Return a verdict in one line: which rule did what, where, and why."""
    spans = " ".join(f"{span.start}..{span.end}" for span in verdict.spans)
    where = f"{verdict.stage}:{verdict.channel.kind}/{verdict.channel.choice}/{verdict.channel.index}"
    why = ", ".join(verdict.triggers)
    notes = [verdict.mode] if verdict.mode != "enforce" else []
    notes += [f"excepted by {verdict.excepted_by}"] if verdict.excepted_by else []
    notes += [f"{verdict.recited.words} words"] if isinstance(verdict.recited, Recited) else []
    parts = (verdict.rule_id, verdict.action, *notes, where, spans, f"({why})" if why else "")
    return " ".join(part for part in parts if part)
