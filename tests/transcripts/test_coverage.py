"""The corpus shows each kind of thing that happens to an answer on each surface that can have it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest

from checkstream.core.wire.surfaces import SURFACES
from tests.transcripts.case import Audited, Case, cases

EVERYWHERE = frozenset({"clean", "redact content", "rewrite_span", "stop", "ingress block", "upstream error", "usage"})
CALLS, THOUGHTS = "redact tool_arguments", "redact reasoning"
ANSWERS = {
    "openai.chat": EVERYWHERE | {CALLS, THOUGHTS},
    "openai.completions": EVERYWHERE,
    "openai.responses": EVERYWHERE | {CALLS, THOUGHTS},
    "anthropic.messages": EVERYWHERE | {CALLS, THOUGHTS},
    "ollama.chat": EVERYWHERE | {CALLS, THOUGHTS},
    "ollama.generate": EVERYWHERE | {THOUGHTS},
}
"""What an answer of each surface may meet."""
MESSAGES = frozenset({
    "clean", "redact arguments", "redact result", "redact resource", "redact prompt", "redact notice", "block",
    "injection in result", "injection in resource", "injection in prompt", "injection in description",
    "injection in notice", "changed tool told", "changed tool refused", "pinned tool", "upstream error",
})  # fmt: skip
"""What messages to and from a server of tools may meet."""
ASKED = {
    "tools/call": "result",
    "resources/read": "resource",
    "prompts/get": "prompt",
    "tools/list": "description",
}
"""Method -> what its answer holds; a notice is what nobody has asked for."""
COUNTS = (b'"usage":{', b'"usage": {', b'"eval_count"')


@pytest.mark.parametrize("surface", ANSWERS)
def test_each_kind_of_answer_has_a_case(surface: str) -> None:
    shown = {kind for folder in cases() for kind in _shown(Case(folder), surface)}
    assert shown >= ANSWERS[surface], sorted(ANSWERS[surface] - shown)


def test_each_kind_of_message_has_a_case() -> None:
    shown = {kind for folder in cases() for kind in _shown_of_messages(Case(folder))}
    assert shown >= MESSAGES, sorted(MESSAGES - shown)
    for kind in ("clean", "redact result", "injection in result", "changed tool told"):
        forms = {case.streaming for case in map(Case, cases()) if kind in _shown_of_messages(case)}
        assert forms == {True, False}, kind


def test_a_surface_without_cases_answers_with_no_text() -> None:
    silent = {"openai.embeddings", "openai.moderations", "cohere.rerank", "anthropic.count_tokens"}
    silent |= {"openai.responses.input_tokens"}
    silent |= {"openai.responses.stored", "openai.responses.cancel"}  # the same answers, asked for again
    assert ANSWERS.keys() == SURFACES.keys() - silent - {"ollama.embed", "ollama.embeddings"}


def _shown(case: Case, surface: str) -> Iterator[str]:
    audit = msgspec.json.decode((case.folder / "audit.json").read_bytes(), type=Audited)
    record = audit.record
    if record["surface"] != surface:
        return
    verdicts = record["verdicts"]
    assert isinstance(verdicts, list)
    if record["outcome"] == "complete" and not verdicts and case.upstream:
        yield "clean"
    if record["upstream_failure"] is not None:
        yield "upstream error"
    if case.streaming and _has_counts(case.upstream or b"") and record["outcome"] == "complete":
        (body,) = case.folder.glob("downstream.*")
        if _has_counts(body.read_bytes()):
            yield "usage"
    for verdict in verdicts:
        if verdict["stage"] == "ingress" and record["outcome"] == "refused":
            yield "ingress block"
        elif verdict["stage"] == "midstream" and verdict["action"] == "redact":
            yield f"redact {verdict['channel']['kind']}"
        elif verdict["stage"] == "midstream":
            yield verdict["action"]


def _shown_of_messages(case: Case) -> Iterator[str]:
    audit = msgspec.json.decode((case.folder / "audit.json").read_bytes(), type=Audited)
    record = audit.record
    if record["surface"] != "mcp":
        return
    verdicts, degradations = record["verdicts"], record["degradations"]
    assert isinstance(verdicts, list)
    assert isinstance(degradations, list)
    asked = json.loads(case.request).get("method") if case.request.startswith(b"{") else None
    where = ASKED.get(asked or "", "notice")
    if record["outcome"] == "complete" and not verdicts and not degradations and case.upstream:
        yield "pinned tool" if case.script.pins else "clean"
    if record["upstream_failure"] is not None:
        yield "upstream error"
    if "mcp_tool_changed" in degradations:
        yield f"changed tool {'refused' if record['action'] == 'reject' else 'told'}"
    for verdict in verdicts:
        if verdict["channel"]["kind"] in ("user", "assistant"):
            yield "block" if verdict["action"] == "reject" else "redact arguments"
        else:
            yield f"redact {where}" if verdict["action"] == "redact" else f"injection in {where}"


def _has_counts(body: bytes) -> bool:
    return any(count in body for count in COUNTS)
