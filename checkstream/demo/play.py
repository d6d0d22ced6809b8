"""Plays the demo: a scripted LLM, the real proxy in front of it, and the conversations through both.

Nothing here is special to the proxy: it is started as users start it, and what fired and how long text was held is
read from its own audit log.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from checkstream.audit.chain import read
from checkstream.audit.segments import lines, segment_name, segments
from checkstream.demo.child import Child, ChildFailed, child, command, environment
from checkstream.demo.conversations import CONVERSATIONS, NAMES, Conversation, conversations, faults
from checkstream.demo.heard import SURFACES, Heard, hear
from checkstream.demo.page import Fired, Page, Shown, printable
from checkstream.errors import AuditError, EventTooLarge

_AUDIT_S = 5.0
"""How long an entry may take to appear; longer than the proxy's loss window."""
_ANSWER_S = 60.0
_STREAM = "x-checkstream-stream"

_NAMES_POLICY = """\
pack: {name: names, version: 1.0.0}
policies:
  - name: people_have_no_names_for_the_model
    id: PSN-001
    stage: [ingress]
    entities: [PERSON, EMAIL]
    actions: [{type: pseudonymise}]
"""

Say = Callable[[str], None]


class Servers(msgspec.Struct, frozen=True):
    """Where the demo's servers listen, and where the proxy writes its audit log."""

    llm: str
    proxy: str
    console: str
    audit: Path
    proxy_child: Child


class _Verdict(msgspec.Struct):
    rule_id: str
    action: str
    mode: str
    triggers: tuple[str, ...]


class _Record(msgspec.Struct):
    verdicts: tuple[_Verdict, ...]
    held_ms: str | float


class _Entry(msgspec.Struct):
    stream: str
    record: _Record


async def play(page: Page, say: Say, *, keep: bool, surface: str = "openai") -> int:
    """Play all conversations; return the exit code.

    Args:
        page: Lays out what is said.
        say: Takes each line.
        keep: Go on serving after the conversations, until the task is cancelled (which is then a good end).
        surface: The API that is spoken, one of `heard.SURFACES`.

    Returns:
        0: all came as it must; 1: something did not, and was named; 2: a server did not start.
    """
    with tempfile.TemporaryDirectory(prefix="checkstream-demo-") as folder:
        try:
            wrong = await _play(page, say, Path(folder), keep=keep, surface=surface)
        except (ChildFailed, aiohttp.ClientError, TimeoutError, EventTooLarge) as error:
            say(page.paint("red", f"checkstream demo: {str(error) or type(error).__name__}"))
            return 2
        wrong += await asyncio.to_thread(_verify, Path(folder) / "audit", page, say)
    say("")
    if wrong:
        say(page.paint("red", f"{wrong} of the demo's checks failed; they are marked WRONG"))
        return 1
    had = len(conversations(surface))
    say(page.paint("green", f"{had} conversations, all as they must be; nothing is left running"))
    return 0


async def _play(page: Page, say: Say, folder: Path, *, keep: bool, surface: str) -> int:
    async with _servers(folder) as servers:
        say(page.paint("bold", "checkstream demo: the same conversations with a model, and with checkstream between"))
        say(f"scripted model {servers.llm}   proxy {servers.proxy}   policies builtin:default")
        say(f"asked by {SURFACES[surface].path}, streamed")
        wrong = 0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_S)) as session:
            for url in (servers.llm, servers.proxy):  # connections and caches are warm before anything is timed
                await hear(session, url, Conversation(title="", model="warm-up", prompt="hello").body(surface), surface)
            for number, conversation in enumerate(conversations(surface), 1):
                shown = await _converse(session, servers, number, conversation, surface)
                wrong += len(shown.faults)
                for line in page.conversation(shown):
                    say(line)
        say("")
        say(page.paint("dim", "times are of one run on this machine; `bench/` measures them properly"))
        complaints = servers.proxy_child.complaints() if wrong else []
        if complaints:
            say(page.paint("dim", "what the proxy says:"))
        for line in complaints:
            say(printable(line))
        if keep:
            await _keep(page, say, servers, surface)
        return wrong


@asynccontextmanager
async def _servers(folder: Path) -> AsyncIterator[Servers]:
    """Run the scripted LLM and the proxy, both on ports that are free.

    Raises:
        ChildFailed: one of them did not start.
    """
    async with child("checkstream.demo.llm", ["--port", "0"]) as model:
        llm = str((await model.said(lambda row: row.get("event") == "listening"))["url"])
        file = folder / "checkstream.yaml"
        file.write_text(json.dumps(_config(llm, folder), indent=1), "utf-8")  # JSON is YAML, too
        async with child("checkstream", ["serve", "--config", str(file)]) as proxy:
            row = await proxy.said(lambda row: row.get("event") == "listening")
            yield Servers(llm, f"http://{row['listen']}", str(row["console"]), folder / "audit", proxy)


def _config(llm: str, folder: Path) -> dict[str, Any]:
    # The demo shows what policies do, also on a machine that is busy with its set-up. A late score would be treated
    # as `fail_mode: closed` says, which is another story.
    deadline = {"ingress_ms": 5000, "check_ms": 5000}
    guarded = {
        "upstream": "scripted",
        "policies": ["builtin:default"],
        "deadline": deadline,
        "grounding": {"sample": 0, "inline_ms": 10_000},  # only for requests that ask for it
    }
    (folder / "names.yaml").write_text(_NAMES_POLICY, "utf-8")
    named = {**guarded, "policies": ["builtin:default", "names.yaml"]}
    paths = {
        "chat": "/v1/chat/completions", "completions": "/v1/completions", "responses": "/v1/responses",
        "messages": "/v1/messages", "ollama": "/api/chat",
    }  # fmt: skip
    return {
        "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"},
        "upstreams": {"scripted": {"url": llm}},
        "routes": [
            *(
                {"name": f"{name}-{NAMES}", "match": {"path": at, "model": NAMES}, **named}
                for name, at in paths.items()
            ),
            *({"name": name, "match": {"path": at}, **guarded} for name, at in paths.items()),
            {"name": "models", "match": {"path": "/v1/models", "method": "GET"}, "upstream": "scripted", "pass": True},
        ],
        "audit": {"dir": str(folder / "audit"), "fsync_ms": 20},
    }


async def _converse(
    session: aiohttp.ClientSession, servers: Servers, number: int, conversation: Conversation, surface: str
) -> Shown:
    body = conversation.body(surface)
    raw = await hear(session, servers.llm, body, surface)
    guarded = await hear(session, servers.proxy, body, surface)
    entry = await _entry(servers.audit, guarded)
    fired = _fired(entry)
    saw = await _seen(session, servers.llm, conversation)
    found = faults(conversation, raw, guarded, [one.rule for one in fired], surface, saw=saw)
    if entry is None:
        found.append("the audit log has no entry of this stream")
    return Shown(
        number=number,
        conversation=conversation,
        raw=raw,
        guarded=guarded,
        fired=fired,
        held_ms=None if entry is None else float(entry.record.held_ms),
        faults=tuple(found),
        saw=saw,
        reason=SURFACES[surface].reason,
    )


async def _seen(session: aiohttp.ClientSession, llm: str, conversation: Conversation) -> str:
    """Return what the model got of the user, of the last request for a conversation; empty where it is not shown."""
    if not conversation.unseen:
        return ""
    async with session.get(f"{llm}/_scripted/requests", params={"scenario": conversation.model}) as answer:
        body = (await answer.json())[-1]["body"]
    said = body.get("messages") or body.get("input") or [{}]
    return str(said[-1].get("content", ""))


async def _entry(folder: Path, heard: Heard) -> _Entry | None:
    """Wait for the audit entry of an answer."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _AUDIT_S
    while loop.time() < end:
        found = await asyncio.to_thread(_find, folder, heard.headers.get(_STREAM, ""))
        if found is not None:
            return found
        await asyncio.sleep(0.02)
    return None


def _find(folder: Path, stream: str) -> _Entry | None:
    for chain, numbers in segments(folder).items():
        for number in numbers:
            for line in lines(folder / segment_name(chain, number)):
                try:
                    record = read(line.data)
                except AuditError:
                    continue  # a line that is being written; `audit verify` has the last word
                if record.kind == "stream" and record.body.get("stream") == stream:
                    return msgspec.convert(record.body, _Entry)
    return None


def _fired(entry: _Entry | None) -> tuple[Fired, ...]:
    """Return each rule that fired once, with all that made it fire."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for verdict in () if entry is None else entry.record.verdicts:
        key = (verdict.rule_id, verdict.action, verdict.mode)
        found.setdefault(key, {}).update(dict.fromkeys(verdict.triggers))
    return tuple(Fired(rule, action, tuple(triggers), mode) for (rule, action, mode), triggers in found.items())


async def _keep(page: Page, say: Say, servers: Servers, surface: str) -> None:
    say("")
    say(page.paint("bold", "The proxy goes on until Ctrl-C. Try it:"))
    for line in curl(servers.proxy, CONVERSATIONS[1], surface):
        say(line)
    say(f"console: {servers.console} shows what was done with it")
    say(f"clients: {servers.proxy}{SURFACES[surface].base} as the base URL, any key")
    say(
        "models: "
        + ", ".join(conversation.model for conversation in conversations(surface))
        + "; any other name echoes"
    )
    try:
        await servers.proxy_child.ended()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()  # to be told to stop is how this ends well
        return
    raise ChildFailed(f"the proxy has ended\n{servers.proxy_child.output}")


def curl(url: str, conversation: Conversation, surface: str = "openai") -> Sequence[str]:
    """Return the command line that has a conversation by hand."""
    return (
        f"curl -N {url}{SURFACES[surface].path} -H 'content-type: application/json' \\",
        f"  -d '{json.dumps(conversation.body(surface))}'",
    )


def _verify(folder: Path, page: Page, say: Say) -> int:
    """Run `checkstream audit verify` on the demo's own log; return the number of faults."""
    say("")
    say(page.paint("dim", "$ checkstream audit verify DIR"))
    keys = [f"--key={file}" for file in sorted(folder.parent.glob("*.pub"))]
    done = subprocess.run(  # noqa: S603 - our own command, with paths of our own making
        command("checkstream", ["audit", "verify", str(folder), *keys]),
        capture_output=True, text=True, check=False, timeout=60, env=environment(),
    )  # fmt: skip
    for line in (done.stdout + done.stderr).splitlines():
        say(line)
    if done.returncode != 0:
        say(page.paint("red", f"WRONG   the audit chain does not hold (exit code {done.returncode})"))
    return int(done.returncode != 0)
