"""The demo of a fleet: a control server and two proxies; a bundle with a bad rule reaches the canary and is taken back.

All of it is what users would start and type: each command is run as it is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from checkstream.control.bundles.signers import write_key_pair
from checkstream.demo.child import Child, ChildFailed, child, command, environment
from checkstream.demo.opening import opened
from checkstream.demo.page import Page, printable

Say = Callable[[str], None]

_PEOPLE = {"eve": "engineer", "ruth": "risk_officer", "ada": "org_admin"}
_SIGNERS = ("ann", "ben", "eve", "ruth", "publisher")
_NODES = ("n1", "n2")
_TRUST = """\
keys: {ann: ann.pub, ben: ben.pub, eve: eve.pub, ruth: ruth.pub, publisher: publisher.pub}
roles:
  root: {keys: [ann, ben], threshold: 2}
  targets: {keys: [ann, ben], threshold: 2}
  snapshot: {keys: [publisher], days: 7}
  timestamp: {keys: [publisher], days: 1}
authors: {team: {keys: [eve], bundles: [retail]}}
approvers: {risk: {keys: [ruth], bundles: [retail]}}
"""
_RULES = {
    "1": "{name: no_promises, id: SHOP-1, stage: [midstream], phrases: [guaranteed returns], "
    "actions: [{type: stop, message: We can't promise that.}]}",
    "2": "{name: too_much, id: SHOP-2, stage: [midstream], phrases: [refund], "
    "actions: [{type: stop, message: We don't speak of that.}]}",
}
_QUESTION = "How long does a refund take?"
_EACH = 60
"""Questions that each node gets under each version: enough for the control server to tell."""
_WAIT_S = 90.0


class _Fleet:
    """Everything that runs, and the folder that it stands in."""

    def __init__(self, folder: Path, page: Page, say: Say, stack: AsyncExitStack) -> None:
        self.folder, self.page, self.say = folder, page, say
        self._stack = stack
        self.control = ""
        self.llm = ""
        self.nodes: dict[str, str] = {}
        self.consoles: dict[str, str] = {}
        self.children: dict[str, Child] = {}
        self.browse = False
        self.seen = False
        """A browser shows the console."""

    async def show(self) -> None:
        """Say where the console is and who may log in, and open it if it is wanted."""
        url = f"{self.control}/console/"
        self.say(f"{self.page.paint('bold', 'The console of all nodes:')} {url}")
        self.say(f"  log in as ruth, who may approve and roll back, with the key {_key_of('ruth')}")
        self.seen = self.browse and await opened(url)

    async def run(self, *arguments: str, person: str = "", shown: bool = True, good: tuple[int, ...] = (0, 1)) -> str:
        """Run a command of checkstream as it is typed, and return what it says.

        Raises:
            ChildFailed: it ended otherwise than it should.
        """
        if shown:
            self.say(self.page.paint("dim", f"$ {f'{person}: ' if person else ''}checkstream {' '.join(arguments)}"))
        asked = {"CHECKSTREAM_CONTROL_URL": self.control, "CHECKSTREAM_CONTROL_KEY": _key_of(person)}
        process = await asyncio.create_subprocess_exec(
            *command("checkstream", arguments),
            cwd=self.folder,
            env={**environment(), **asked},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        said = out.decode(errors="replace")
        if process.returncode not in good:  # 1: `status` says that a node has not yet what it should have
            raise ChildFailed(f"`checkstream {' '.join(arguments)}` ended with {process.returncode}\n{said}".rstrip())
        return said

    async def told(self, *arguments: str, person: str) -> None:
        """Run a command and show what it says."""
        for line in (await self.run(*arguments, person=person)).splitlines():
            self.say(f"  {printable(line)}")

    async def release(self, version: str) -> None:
        """Build, sign, approve and publish a bundle."""
        (self.folder / "policy.yaml").write_text(
            f"pack: {{name: shop, version: {version}.0.0}}\npolicies:\n  - {_RULES[version]}\n", "utf-8"
        )
        (self.folder / "bundle.yaml").write_text(
            f'bundle: retail\nversion: "{version}"\nprograms:\n  chat: {{policies: [policy.yaml]}}\n', "utf-8"
        )
        await self.run("bundle", "build", "bundle.yaml", "-o", f"retail-{version}")
        for person in ("eve", "ruth"):
            await self.run("bundle", "sign", "repository", f"retail-{version}", "--key", f"{person}.pem")
        await self.run("bundle", "publish", "repository", "--key", "publisher.pem")

    async def fleet(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        """Return how the fleet stands."""
        headers = {"authorization": f"Bearer {_key_of('ada')}"}
        async with session.get(f"{self.control}/v1/fleets/shop", headers=headers) as answer:
            found: dict[str, Any] = await answer.json()
            return found

    async def until(self, wanted: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait for something.

        Raises:
            ChildFailed: it doesn't come.
        """
        try:
            async with asyncio.timeout(_WAIT_S):
                while not await wanted():  # noqa: ASYNC110 - other processes are waited for
                    await asyncio.sleep(0.25)
        except TimeoutError:
            last = "\n".join(line for each in self.children.values() for line in each.complaints())
            raise ChildFailed(f"{what} did not come within {_WAIT_S:.0f} s\n{last}".rstrip()) from None

    async def begin(self, name: str) -> None:
        """Start a node."""
        self.children[name] = started = await self._stack.enter_async_context(
            child("checkstream", ["serve", "--config", str(self.folder / name / "checkstream.yaml")])
        )
        row = await started.said(lambda row: row.get("event") == "listening")
        self.nodes[name], self.consoles[name] = f"http://{row['listen']}", str(row["console"])


async def play_fleet(page: Page, say: Say, *, keep: bool, browse: bool) -> int:
    """Play it; return the exit code.

    Args:
        page: Paints what is said.
        say: Takes each line.
        keep: Leave all running until the task is cancelled, which is then a good end.
        browse: Open the control server's console in a browser; where that works, all is left running, too.

    Returns:
        0: the bad bundle was taken back; 1: something was not as it must be; 2: something did not start.
    """
    with tempfile.TemporaryDirectory(prefix="checkstream-demo-") as folder:
        try:
            async with AsyncExitStack() as stack, aiohttp.ClientSession() as session:
                fleet = _Fleet(Path(folder), page, say, stack)
                fleet.browse = browse
                wrong = await _play(fleet, stack, session)
                if keep or fleet.seen:
                    await _keep(fleet)
                return wrong
        except (ChildFailed, aiohttp.ClientError, TimeoutError) as error:
            say(page.paint("red", f"checkstream demo: {str(error) or type(error).__name__}"))
            return 2


async def _play(fleet: _Fleet, stack: AsyncExitStack, session: aiohttp.ClientSession) -> int:
    say, page = fleet.say, fleet.page
    say(
        page.paint("bold", "checkstream demo: a fleet of two proxies, and a bundle that should not have been published")
    )
    await _establish(fleet)
    await fleet.release("1")
    async with _serving(fleet, stack):
        say("")
        await fleet.show()
        say("")
        say(page.paint("bold", "Version 1 goes to all: eve asks, ruth approves"))
        for name in _NODES:  # each says what it is, and hears that there is nothing for it yet
            await fleet.run(
                "bundle", "follow", "--config", f"{name}/checkstream.yaml", "--once", shown=False, good=(2,)
            )
        await fleet.told("control", "rollout", "shop", "1", person="eve")
        await fleet.told("control", "approve", "1", person="ruth")
        await fleet.run("control", "promote", "1", person="ruth", shown=False)
        await asyncio.gather(*(fleet.begin(name) for name in _NODES))
        await _asked(fleet, session)
        say(f"  n1: {await _answer(fleet, session, 'n1')}")
        say("")
        say(page.paint("bold", "Version 2 has a rule that stops every answer about refunds. It goes to the canary, n1"))
        await fleet.release("2")

        async def offered() -> bool:
            return [each["version"] for each in (await fleet.fleet(session))["offered"]] == ["2", "1"]

        await fleet.until(offered, "word of version 2")
        await fleet.told("control", "rollout", "shop", "2", "--reason", "a new rule", person="eve")
        await fleet.told("control", "approve", "2", person="ruth")
        await fleet.until(lambda: _has(fleet, session, "n1", "2"), "version 2 on the canary")
        canary, other = await _answer(fleet, session, "n1"), await _answer(fleet, session, "n2")
        say(f"  n1: {canary}")
        say(f"  n2: {other}")
        say("")
        say(page.paint("bold", "People ask. Nobody does anything about it"))
        await _asked(fleet, session)
        await fleet.until(lambda: _has(fleet, session, "n1", "1"), "the way back")
        after = await _answer(fleet, session, "n1")
        say(f"  n1: {after}")
        await fleet.told("control", "status", person="ada")
        await fleet.told("control", "events", "--most", "6", person="ada")
        await fleet.told("audit", "verify", "var/control-audit", "--key", "var/control-audit.key.pub", person="")
        stage = (await fleet.fleet(session))["rollout"]["stage"]
        right = "We don't speak" in canary and _QUESTION in other and _QUESTION in after and stage == "rolled_back"
        say("")
        told = "the bad bundle reached one node and was taken back" if right else "WRONG   it did not go as it must"
        say(page.paint("green" if right else "red", told))
        return int(not right)


async def _establish(fleet: _Fleet) -> None:
    """Make keys, and a repository in which all who may have signed who may sign."""
    folder = fleet.folder
    for name in (*_SIGNERS, *_NODES):
        await asyncio.to_thread(write_key_pair, folder / f"{name}.pem", folder / f"{name}.pub")
    await asyncio.to_thread((folder / "trust.yaml").write_text, _TRUST, "utf-8")
    await fleet.run("bundle", "init", "repository", "--trust", "trust.yaml")
    for name in ("ann", "ben", "eve", "ruth"):
        await fleet.run("bundle", "sign", "repository", "--key", f"{name}.pem", shown=name == "ann")


@asynccontextmanager
async def _serving(fleet: _Fleet, stack: AsyncExitStack) -> AsyncIterator[None]:
    """Run the scripted model and the control server; write what nodes begin with."""
    folder = fleet.folder
    model = await stack.enter_async_context(child("checkstream.demo.llm", ["--port", "0"]))
    fleet.llm = str((await model.said(lambda row: row.get("event") == "listening"))["url"])
    await asyncio.to_thread((folder / "control.yaml").write_text, json.dumps(_control(folder)), "utf-8")
    server = await stack.enter_async_context(
        child("checkstream", ["control", "serve", "--config", str(folder / "control.yaml")])
    )
    fleet.control = f"http://{(await server.said(lambda row: row.get('event') == 'listening'))['listen']}"
    fleet.children = {"control": server}
    await asyncio.to_thread(_write_nodes, fleet)
    yield


def _write_nodes(fleet: _Fleet) -> None:
    root = (fleet.folder / "repository" / "public" / "metadata" / "1.root.json").read_bytes()
    for name in _NODES:
        own = fleet.folder / name
        own.mkdir()
        (own / "root.json").write_bytes(root)
        (own / "checkstream.yaml").write_text(json.dumps(_node(fleet, name)), "utf-8")


def _control(folder: Path) -> dict[str, Any]:
    people = {
        name: {"role": role, "key_sha256": hashlib.sha256(_key_of(name).encode()).hexdigest()}
        for name, role in _PEOPLE.items()
    }
    shop = {
        "bundle": "retail",
        "nodes": {name: f"{name}.pub" for name in _NODES},
        "allow": {"packages": "any", "configurations": "any"},
        "rings": [
            {"name": "canary", "nodes": ["n1"], "soak_s": 3600},
            {"name": "all", "percent": 100, "soak_s": 0},
        ],
        "health": {"exchanges": 40},
    }
    return {
        "listen": "127.0.0.1:0",
        "repository": str(folder / "repository" / "public"),
        "people": people,
        "fleets": {"shop": shop},
    }


def _node(fleet: _Fleet, name: str) -> dict[str, Any]:
    route = {"name": "chat", "match": {"path": "/v1/chat/completions"}, "upstream": "scripted"}
    return {
        "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"},
        "upstreams": {"scripted": {"url": fleet.llm}},
        "routes": [{**route, "policies": ["bundle:chat"]}],
        "bundles": {"source": f"{fleet.control}/bundles/", "root": "root.json", "name": "retail"},
        "control": {"url": fleet.control, "node": name, "key": f"../{name}.pem", "poll_s": 1},
        "audit": {"dir": str(fleet.folder / name / "audit")},
    }


async def _has(fleet: _Fleet, session: aiohttp.ClientSession, name: str, version: str) -> bool:
    """Tell whether a node has a version in force, as it has attested."""
    nodes = (await fleet.fleet(session))["nodes"]
    return any(node["node"] == name and node["version"] == version for node in nodes)


async def _asked(fleet: _Fleet, session: aiohttp.ClientSession) -> None:
    """Have people ask both nodes."""
    for _ in range(_EACH):
        await asyncio.gather(*(_answer(fleet, session, name) for name in fleet.nodes))


async def _answer(fleet: _Fleet, session: aiohttp.ClientSession, name: str) -> str:
    """Return what a node answers to the question."""
    body = {"model": "echo", "messages": [{"role": "user", "content": _QUESTION}]}
    async with session.post(f"{fleet.nodes[name]}/v1/chat/completions", json=body) as answer:
        said = await answer.json()
    return printable(str(said["choices"][0]["message"]["content"]))


async def _keep(fleet: _Fleet) -> None:
    fleet.say(fleet.page.paint("bold", "The fleet goes on until Ctrl-C. Ask the control server:"))
    fleet.say(f"export CHECKSTREAM_CONTROL_URL={fleet.control} CHECKSTREAM_CONTROL_KEY={_key_of('ada')}")
    fleet.say("checkstream control status")
    fleet.say(f"console of all nodes: {fleet.control}/console/ (ruth: {_key_of('ruth')})")
    fleet.say(f"consoles: {', '.join(f'{name} {url}' for name, url in sorted(fleet.consoles.items()))}")
    try:
        await fleet.children["n1"].ended()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()  # to be told to stop is how this ends well
        return
    raise ChildFailed(f"the proxy n1 has ended\n{fleet.children['n1'].output}")


def _key_of(person: str) -> str:
    """Return a person's key: of a demo on this machine alone, which is gone with it."""
    return f"demo-key-of-{person or 'nobody'}-0123456789"
