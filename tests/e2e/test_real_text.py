"""Real answers of models through the running proxy, cut at random: what is not condemned comes as it came.

The texts lie outside of the project: in the folder that `CHECKSTREAM_DATA` names, else in `shared/data` beside the
checkout. They are read, never copied. `pytest -rP tests/e2e/test_real_text.py` prints what fired, by rule and entity.
"""

from __future__ import annotations

import asyncio
import collections
import gzip
import json
import os
import random
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tests.e2e.harness import ROOT, Proxy, config, running, until

DATA = Path(os.environ.get("CHECKSTREAM_DATA") or ROOT.parent / "shared" / "data")
SOURCES = (
    "out_refusals",
    "out_gptfuzz_responses",
    "out_hh_harmless_test",
    "restricted/out_halueval_general",
    "restricted/out_saferlhf_mini",
    "restricted/out_safety_tuned_safe_responses",
)
ANSWERS, ANSWERS_NIGHTLY = 120, 2000
SEED = 20
AT_ONCE = 12
MESSAGE = "[The rest of this answer was withheld by policy.]"


class Told(msgspec.Struct):
    """One answer: what the model says, and what came of it."""

    text: str
    pieces: list[bytes]
    """The stream's bytes as they are written."""
    stream: str = ""
    heard: bytes = b""

    @property
    def said(self) -> bytes:
        return b"".join(self.pieces)


@pytest.fixture(scope="module", params=[ANSWERS, pytest.param(ANSWERS_NIGHTLY, marks=pytest.mark.nightly)])
def texts(request: pytest.FixtureRequest) -> list[str]:
    """A sample of all sources."""
    count: int = request.param
    for source in SOURCES:
        if not (DATA / f"{source}.jsonl.gz").is_file():
            pytest.skip(f"real answers are not here: no `{source}.jsonl.gz` in the folder of CHECKSTREAM_DATA")
    chance = random.Random(SEED)
    found: list[str] = []
    for place, source in enumerate(SOURCES):
        with gzip.open(DATA / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
            known = [text for text in (json.loads(line)["text"] for line in lines) if isinstance(text, str) and text]
        share = (count - len(found)) // (len(SOURCES) - place)
        found += chance.sample(known, min(share, len(known)))
    assert len(found) == count
    return found


def told(text: str, seed: int) -> Told:
    """Say a text in deltas of random length, and cut the bytes of the stream at random."""
    chance = random.Random(seed)
    text = text.encode("utf-8", "replace").decode()
    events: list[dict[str, Any]] = [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
    most = chance.choices((3, 20, 80), (1, 4, 5))[0]
    at = 0
    while at < len(text):
        size = chance.randint(1, most)
        events.append({"delta": {"content": text[at : at + size]}, "finish_reason": None})
        at += size
    events.append({"delta": {}, "finish_reason": "stop"})
    head = {"id": f"chatcmpl-{seed}", "object": "chat.completion.chunk", "created": 1, "model": f"answer-{seed}"}
    ascii_only = chance.random() < 0.5
    data = b"".join(
        b"data: " + json.dumps({**head, "choices": [{"index": 0, **event}]}, ensure_ascii=ascii_only).encode() + b"\n\n"
        for event in events
    )
    data += b"data: [DONE]\n\n"
    pieces = []
    at = 0
    while at < len(data):
        size = chance.randint(1, 4000)
        pieces.append(data[at : at + size])
        at += size
    return Told(text, pieces)


@pytest.fixture(scope="module")
def answers(texts: list[str]) -> list[Told]:
    return [told(text, seed) for seed, text in enumerate(texts)]


@pytest.fixture
async def model_url(answers: list[Told]) -> AsyncIterator[str]:
    """A model server that says the answers; the request's model is the answer's number."""

    async def say(request: web.Request) -> web.StreamResponse:
        number = int((await request.json())["model"].removeprefix("answer-"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in answers[number].pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", say)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
def real_proxy(model_url: str, tmp_path: Path) -> Iterator[Proxy]:
    """The default policies; a check that is late on a busy machine is not what is tested here."""
    settings = config(model_url, tmp_path, ["builtin:default"], deadline={"check_ms": 30_000, "ingress_ms": 30_000})
    with running(Proxy(settings, tmp_path)) as proxy:
        yield proxy


async def hear(session: aiohttp.ClientSession, url: str, number: int, one: Told) -> None:
    body = {"model": f"answer-{number}", "stream": True, "messages": [{"role": "user", "content": "Hello!"}]}
    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
        one.heard = await response.read()
        assert response.status == 200, one.heard
        one.stream = response.headers["x-checkstream-stream"]


def bodies(data: bytes) -> list[dict[str, Any]]:
    """Return the events' JSON, in order, without what tells what was done; the last word comes as a word."""
    said = [line.removeprefix("data: ") for line in data.decode().split("\n") if line.startswith("data: ")]
    found = [{"done": True} if line == "[DONE]" else json.loads(line) for line in said]
    return [event for event in found if "checkstream" not in event]


def content(events: list[dict[str, Any]]) -> str:
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ()))


def blanked(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events with their content taken out."""
    copied: list[dict[str, Any]] = json.loads(json.dumps(events))
    for event in copied:
        for choice in event.get("choices", ()):
            choice["delta"].pop("content", None)
    return copied


def redacted(text: str, verdicts: list[dict[str, Any]]) -> re.Pattern[str]:
    """Return what the text must look like: as it came outside of the spans, one of their labels or more inside."""
    spans: list[tuple[int, int, set[str]]] = []
    for span, labels in sorted(
        ((span["start"], span["end"]), {trigger.partition(":")[2] for trigger in verdict["triggers"]})
        for verdict in verdicts
        if verdict["action"] == "redact"
        for span in verdict["spans"]
    ):
        if spans and span[0] < spans[-1][1]:
            start, end, known = spans.pop()
            spans.append((start, max(end, span[1]), known | labels))
        else:
            spans.append((*span, labels))
    pattern, at = "", 0
    for start, end, labels in spans:
        inside = "|".join(re.escape(f"[{label}]") for label in sorted(labels))
        pattern += re.escape(text[at:start]) + f"(?:{inside})+"
        at = end
    return re.compile(pattern + re.escape(text[at:]), re.DOTALL)


def check(one: Told, record: dict[str, Any]) -> None:
    """Hold what came to what the audit log says was done."""
    assert all(name.endswith("_over_budget") for name in record["degradations"])  # a slow check still decides
    done = [v for v in record["verdicts"] if v["stage"] == "midstream" and v["mode"] == "enforce"]
    said, heard = bodies(one.said), bodies(one.heard)
    stops = [v for v in done if v["action"] == "stop"]
    if stops:
        at = min(span["start"] for verdict in stops for span in verdict["spans"])
        kept = content(heard)
        assert kept.endswith(MESSAGE)
        assert heard[-2]["choices"][0]["finish_reason"] == "content_filter"
        released = kept.removesuffix(MESSAGE)
        assert record["outcome"] == "stopped"
        earlier = [v for v in done if v["action"] == "redact"]
        assert redacted(one.text[: record["released_chars"]], earlier).fullmatch(released)
        assert at <= record["released_chars"] <= len(one.text)
    elif any(v["action"] == "redact" for v in done):
        assert redacted(one.text, done).fullmatch(content(heard)), (done, content(heard))
        assert blanked(heard) == blanked(said)
    else:
        assert heard == said


async def test_g05_g09_real_answers_come_as_they_came_but_for_what_fired(
    answers: list[Told], real_proxy: Proxy
) -> None:
    waiting = iter(enumerate(answers))

    async def work(session: aiohttp.ClientSession) -> None:
        for number, one in waiting:
            await hear(session, real_proxy.url, number, one)

    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout) as session, asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work(session))

    def records() -> dict[str, dict[str, Any]] | None:
        rows = [row["body"] for row in real_proxy.records() if "record" in row["body"]]
        return {row["stream"]: row["record"] for row in rows} if len(rows) == len(answers) else None

    known = await asyncio.to_thread(until, records, what="all audit entries")
    rules: collections.Counter[str] = collections.Counter()
    detectors: collections.Counter[str] = collections.Counter()
    for one in answers:
        record = known[one.stream]
        check(one, record)
        rules.update({f"{verdict['rule_id']} {verdict['action']}" for verdict in record["verdicts"]})
        detectors.update(finding["detector"] for finding in record["findings"])
    quiet = sum(not known[one.stream]["verdicts"] for one in answers)
    lines = [f"{len(answers)} answers, {sum(len(one.text) for one in answers)} characters; nothing fired in {quiet}"]
    lines += [f"answers with rule {rule}: {count}" for rule, count in rules.most_common()]
    lines += [f"findings of {detector}: {count}" for detector, count in detectors.most_common()]
    print("\n".join(lines))  # noqa: T201 - shown by `pytest -rP`
