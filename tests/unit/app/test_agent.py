"""The agent of a node against a real control server and a real repository: what it says, takes and keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkstream.app.agent import Told
from checkstream.app.following import current, expanded
from checkstream.cli.bundle_follow import _looking
from checkstream.config import Config, load_config
from checkstream.control.attestation import Running
from checkstream.control.bundles.look import Look
from checkstream.control.identity import NodeKey, reading
from checkstream.errors import ConfigError, ControlError
from tests.bundled import STOPS, World
from tests.controlled import Server, asked

MORE = "{name: m, id: R-3, stage: [midstream], phrases: [no risk], actions: [{type: redact}]}"


class Node:
    """The folder of a node of the fleet `shop`, whose control server also serves the bundles."""

    def __init__(self, folder: Path, world: World, server: Server, name: str = "n1") -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.silence = ""
        self.key = server.nodes[name]
        server.write_key(name, self.folder / "node.pem")
        (self.folder / "root.json").write_bytes(world.root)
        self.written: dict[str, Any] = {
            "upstreams": {"llm": {"url": "http://127.0.0.1:1"}},
            "routes": [
                {"name": "c", "match": {"path": "/v1/completions"}, "upstream": "llm", "policies": ["bundle:chat"]}
            ],
            "bundles": {"source": f"{server.url}/bundles/", "root": "root.json", "name": "retail", "poll_s": 1},
            "control": {"url": server.url, "node": name, "key": "node.pem"},
        }

    @property
    def bundles(self) -> Path:
        return self.folder / "var" / "bundles"

    def config(self) -> Config:
        (self.folder / "checkstream.yaml").write_text(yaml.safe_dump(self.written), encoding="utf-8")
        return load_config(self.folder / "checkstream.yaml")

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Any]:
        config = await asyncio.to_thread(self.config)
        told = Told(Running(configuration="b" * 64), self.silence)
        async with _looking(self.folder / "checkstream.yaml", config, lambda: told) as look:
            yield look


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "world").mkdir()
    made = World(tmp_path / "world")
    made.establish()
    made.release(STOPS, version="1")
    return made


@pytest.fixture
def made(tmp_path: Path, world: World) -> Server:
    server = Server(tmp_path, allow={"packages": "any", "configurations": ["b" * 64]})
    server.written["repository"] = str(world.public)
    return server


async def test_a_node_that_is_allowed_attests_and_says_what_is_offered(
    tmp_path: Path, world: World, made: Server
) -> None:
    async with made.serving() as server:
        async with Node(tmp_path, world, server).looking() as look:
            said: Look = await look()
        assert said.outcome == "refused"
        assert "`checkstream control rollout FLEET 1` begins" in said.reason
        fleet = (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]
        assert fleet["nodes"][0]["configuration"] == "b" * 64
        assert [each["version"] for each in fleet["offered"]] == ["1"]


async def test_a_node_that_is_not_allowed_gets_and_reads_nothing(tmp_path: Path, world: World, made: Server) -> None:
    made.written["fleets"]["shop"]["allow"]["configurations"] = ["c" * 64]
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        async with node.looking() as look:
            said: Look = await look()
        assert (said.outcome, "is not on the list of fleet `shop`" in said.reason) == ("refused", True)
        assert not (node.bundles / "metadata").exists()
        status, body = await asked("GET", server.url, "/bundles/metadata/timestamp.json", node=node.key)
        assert (status, body["error"]["code"]) == (403, "node_refused")


async def test_bundles_are_for_nodes_that_have_attested_and_nothing_else_is_served(
    tmp_path: Path, world: World, made: Server
) -> None:
    path = "/bundles/metadata/timestamp.json"
    (world.public / ".secret").write_text("x")
    (world.public / "out").symlink_to(tmp_path / "control.yaml")
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        assert (await asked("GET", server.url, path))[0] == 401
        assert (await asked("GET", server.url, path, person="ada"))[0] == 401
        assert (await asked("GET", server.url, path, node=node.key))[0] == 403
        async with node.looking() as look:
            await look()
        sequence = await asyncio.to_thread(lambda: int((node.bundles / "sequence").read_text()))
        assert (await asked("GET", server.url, path, node=node.key, sequence=sequence))[0] == 200
        for other in (sequence - 1, sequence + 1, 0):
            assert (await asked("GET", server.url, path, node=node.key, sequence=other))[0] == 403
        for wrong in (
            "",
            "metadata",
            ".secret",
            "out",
            "metadata/%2e%2e/%2e%2e/trust.yaml",
            "metadata//timestamp.json",
        ):
            assert (await asked("GET", server.url, f"/bundles/{wrong}", node=node.key, sequence=sequence))[0] in {
                401,
                404,
            }, wrong
        assert (await asked("POST", server.url, path, node=node.key))[0] == 405


async def test_a_request_that_was_seen_on_its_way_is_of_no_use_to_anybody(
    tmp_path: Path, world: World, made: Server
) -> None:
    path = "/bundles/metadata/timestamp.json"
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        async with node.looking() as look:
            await look()
        sequence = await asyncio.to_thread(lambda: int((node.bundles / "sequence").read_text()))
        seen = reading(node.key, path, sequence)
        assert [(await asked("GET", server.url, path, headers=seen))[0] for _ in range(2)] == [200, 403]
        many = await asyncio.gather(
            *(asked("GET", server.url, path, node=node.key, sequence=sequence) for _ in range(8))
        )
        assert {status for status, _ in many} == {200}, "several at once"
        other = {**reading(node.key, path, sequence), "x-checkstream-once": f"{sequence}.{'0' * 32}"}
        assert (await asked("GET", server.url, path, headers=other))[0] == 401


async def test_a_server_that_is_away_changes_nothing(tmp_path: Path, world: World, made: Server) -> None:
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        async with node.looking() as look:
            await look()
    async with node.looking() as look:
        said: Look = await look()
    assert (said.outcome, "can't be reached" in said.reason) == ("unreachable", True)


async def test_numbers_grow_whatever_the_clock_says(
    tmp_path: Path, world: World, made: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    real = time.time_ns
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        for hours in (0, 1, -1, 0):
            monkeypatch.setattr("checkstream.app.agent.time.time_ns", lambda h=hours: real() + h * 3600 * 10**9)
            async with node.looking() as look:
                assert "names no bundle yet" in (await look()).reason
        monkeypatch.undo()
        (node.bundles / "sequence").write_bytes(b"no number")
        async with node.looking() as look:  # the clock alone: it is behind what was said an hour ahead
            assert "is not newer than" in (await look()).reason


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1]", b'{"bundle": 1}', b'{"bundle": "x"}', b"\xff" * 10, b"x" * (2 << 20)]
)
async def test_a_server_that_answers_nonsense_is_as_good_as_away(tmp_path: Path, body: bytes) -> None:
    from aiohttp import web
    from aiohttp.test_utils import TestServer

    from checkstream.config import ControlSettings
    from checkstream.control.client import opened_client
    from tests.controlled import node_key

    async def respond(_: web.Request) -> web.StreamResponse:
        import io

        return web.Response(body=io.BytesIO(body))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    key: NodeKey = node_key("n1", tmp_path)
    async with TestServer(app) as server:
        settings = ControlSettings(url=f"http://127.0.0.1:{server.port}", node="n1", key="k")
        async with opened_client(settings, key) as client:
            if len(body) > 1 << 20:
                with pytest.raises(ControlError, match="answers without end"):
                    await client.post("/v1/attestations", b"{}")
            else:
                answer = await client.post("/v1/attestations", b"{}")
                assert answer.reason == "it answers 200"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"url": "ftp://x"}, "is no address of a server"),
        ({"url": "http://control.example"}, "in the clear"),
        ({"url": "https://u:p@control.example"}, "is no address"),
        ({"url": "https://control.example/path"}, "is no address"),
        ({"node": "N 1"}, "node"),
    ],
)
def test_settings_that_are_wrong_say_what_to_do(
    tmp_path: Path, world: World, made: Server, change: dict[str, str], says: str
) -> None:
    made.url = "http://127.0.0.1:1"
    node = Node(tmp_path, world, made)
    node.written["control"] |= change
    with pytest.raises(ConfigError, match=says):
        node.config()


async def test_a_key_that_is_none_is_said(tmp_path: Path, world: World, made: Server) -> None:
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        for content in (b"", b"nonsense", (tmp_path / "keys" / "n1.pub").read_bytes()):
            (node.folder / "node.pem").write_bytes(content)
            with pytest.raises(ControlError, match="no private key in PEM"):
                async with node.looking():
                    pytest.fail("it looks")
        (node.folder / "node.pem").unlink()
        with pytest.raises(ControlError, match="can't be read"):
            async with node.looking():
                pytest.fail("it looks")


async def _rolled_out(server: Server, version: str) -> int:
    made = (await asked("POST", server.url, "/v1/rollouts", {"fleet": "shop", "version": version}, person="eve"))[1]
    assert (await asked("POST", server.url, "/v1/approvals", {"rollout": made["id"]}, person="rob"))[0] == 200
    return int(made["id"])


async def test_g27_a_node_has_what_it_is_told_and_keeps_it_while_the_server_is_away(
    tmp_path: Path, world: World, made: Server
) -> None:
    made.written["fleets"]["shop"]["rings"] = [{"name": "all", "percent": 100, "soak_s": 3600}]
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        async with node.looking() as look:
            await look()
            number = await _rolled_out(server, "1")
            assert (await look()).outcome == "accepted"
            await asyncio.to_thread(world.release, STOPS, MORE, version="2")
            assert ((await look()).outcome, (await look()).version) == ("same", "1")  # a newer one is not taken unasked
            await asked("POST", server.url, "/v1/promotions", {"rollout": number}, person="eve")
            await _rolled_out(server, "2")
            said: Look = await look()
            assert (said.outcome, said.version) == ("accepted", "2")
    node.written["bundles"]["source"] = str(world.public)
    async with node.looking() as look:  # begun anew without the server: it knows what it was told last
        assert (await look()).outcome == "unreachable"
        assert (await asyncio.to_thread(_current, node)).startswith("retail@2#")
        (node.bundles / "desired").write_bytes(b"no such thing")
        assert (await look()).outcome == "unreachable"
        assert (await asyncio.to_thread(_current, node)).startswith("retail@2#")


async def test_g27_a_node_has_a_candidate_that_is_signed_and_keeps_both_while_the_server_is_away(
    tmp_path: Path, world: World, made: Server
) -> None:
    made.written["fleets"]["shop"]["rings"] = [{"name": "tenth", "callers": 10}, {"name": "all", "percent": 100}]
    one = (await asyncio.to_thread(world.accepted)).digest
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        async with node.looking() as look:
            await look()
            number = await _rolled_out(server, "1")
            assert (await look()).outcome == "accepted"
            await asked("POST", server.url, "/v1/promotions", {"rollout": number}, person="eve")
            await asyncio.to_thread(world.release, STOPS, MORE, version="2")
            for _ in range(2):  # it hears of the version, and says so
                await look()
            await _rolled_out(server, "2")
            said: Look = await look()
            assert (said.outcome, said.version) == ("accepted", "2")
            both = current(node.config().bundles)  # type: ignore[arg-type]
            assert both is not None
            assert both.candidate is not None
            assert (both.digest, both.candidate.digest, both.candidate.share) == (one, said.digest, 10)
            assert (await look()).outcome == "same"
    node.written["bundles"]["source"] = str(world.public)
    async with node.looking() as look:
        assert (await look()).outcome == "unreachable"
        assert current(node.config().bundles) == both  # type: ignore[arg-type]
        await asyncio.to_thread(world.withdraw)  # of the base: it stays, as ever, and so does what stands beside it
        assert (await look()).outcome == "unreachable"
        assert current(node.config().bundles) == both  # type: ignore[arg-type]


async def test_g27_a_server_can_not_name_what_is_not_signed(tmp_path: Path, world: World, made: Server) -> None:
    """Not a bundle that was withdrawn, nor any other; and the node says so."""
    one = (await asyncio.to_thread(world.accepted)).digest
    await asyncio.to_thread(world.release, STOPS, MORE, version="2")
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        async with node.looking() as look:
            await look()
            number = await _rolled_out(server, "1")
            for _ in range(3):
                await asked("POST", server.url, "/v1/promotions", {"rollout": number}, person="eve")
            await asyncio.to_thread(world.withdraw)
            said: Look = await look()
            assert (said.outcome, f"the version {one[:12]} of the bundle" in said.reason) == ("refused", True)
            await look()
        shown = (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["nodes"][0]
        assert (shown["drifted"], "was withdrawn" in shown["why"]) == (True, True)


def _current(node: Node) -> str:
    return expanded(node.config())[1]


async def test_a_proxy_that_says_nothing_of_itself_is_shown(tmp_path: Path, world: World, made: Server) -> None:
    async with made.serving() as server:
        node = Node(tmp_path, world, server)
        node.silence = "the proxy has said nothing of itself for 31 s"
        async with node.looking() as look:
            await look()
        shown = (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["nodes"][0]
        assert shown["why"] == node.silence
