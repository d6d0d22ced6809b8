"""Which bundle a node is at, and how that changes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from checkstream.app.following import Follower, Step, current, expanded, pointers
from checkstream.config import BundleSettings, Config
from checkstream.config.settings import Match, RouteSettings
from checkstream.control.index import Index
from checkstream.errors import BundleRefused, BundleUnreachable, ConfigError
from tests.bundled import LOGS, STOPS, World, index_of


@pytest.fixture
def settings(tmp_path: Path) -> BundleSettings:
    return BundleSettings(source="s", root="r", name="retail", dir=str(tmp_path / "node"))


def put(world: World, settings: BundleSettings, *rules: str, version: str) -> tuple[str, Index, Path]:
    """Put a bundle into the node's folder, as a fetch does."""
    files = world.files(*rules, version=version)
    index = index_of(files)
    digest = f"{int(version):064x}"
    folder = Path(settings.dir) / "bundles" / digest
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return digest, index, folder


def routes(settings: BundleSettings | None, *policies: str) -> Config:
    route = RouteSettings(name="chat", match=Match(path="/v1/chat/completions"), upstream="llm", policies=policies)
    return Config(bundles=settings, routes=(route,))


def test_a_program_is_the_files_of_its_policies(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    follower = Follower(settings, lambda _: found, lambda _folder, _digest: None)
    assert current(settings) is None
    with pytest.raises(ConfigError, match="no bundle `retail` has been fetched yet"):
        expanded(routes(settings, "bundle:chat"))
    assert follower.step() == Step(outcome="accepted", bundle="retail", version="1", digest=found[0])
    assert follower.step().outcome == "same"
    config, bundle = expanded(routes(settings, "builtin:default", "bundle:chat"))
    assert bundle == "retail@1#000000000000"
    assert config.routes[0].policies == ("builtin:default", str(found[2] / "chat/00-ours/policy.yaml"))
    assert pointers(config) == (Path(settings.dir) / "current",)
    with pytest.raises(ConfigError, match="the bundle has no program `bundle:tools`; it has `bundle:chat`"):
        expanded(routes(settings, "bundle:tools"))
    assert expanded(routes(None, "ours.yaml")) == (routes(None, "ours.yaml"), "")
    assert pointers(routes(None, "ours.yaml")) == ()


def test_a_bundle_that_was_changed_on_disk_is_not_run(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    Follower(settings, lambda _: found, lambda _folder, _digest: None).step()
    policy = found[2] / "chat/00-ours/policy.yaml"
    policy.write_bytes(policy.read_bytes().replace(b"stop", b"redact"))
    with pytest.raises(ConfigError, match="is not what the bundle says"):
        expanded(routes(settings, "bundle:chat"))
    (Path(settings.dir) / "current").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="can't be read"):
        expanded(routes(settings, "bundle:chat"))
    (Path(settings.dir) / "current").write_text("../..")
    with pytest.raises(ConfigError, match="is no bundle"):
        expanded(routes(settings, "bundle:chat"))


def test_a_bad_bundle_is_tried_once_and_changes_nothing(tmp_path: Path, settings: BundleSettings) -> None:
    world = World(tmp_path)
    newest = put(world, settings, STOPS, version="1")
    tried: list[str] = []

    def accept(_folder: Path, digest: str) -> None:
        tried.append(digest)
        if digest.endswith("2"):
            raise RuntimeError("anything\nat all")

    follower = Follower(settings, lambda _: newest, accept)
    assert follower.step().outcome == "accepted"
    newest = put(world, settings, LOGS, version="2")
    for _ in range(3):
        assert follower.step().reason == "anything"
    assert tried == [f"{1:064x}", f"{2:064x}"]
    assert current(settings) == f"{1:064x}"
    newest = put(world, settings, STOPS, LOGS, version="3")
    assert follower.step().outcome == "accepted"


def test_what_the_source_says_is_told(settings: BundleSettings) -> None:
    errors: list[Exception] = [BundleRefused("old"), BundleUnreachable("away")]

    def fetch(_: BundleSettings) -> tuple[str, Index, Path]:
        raise errors.pop(0)

    follower = Follower(settings, fetch, lambda _folder, _digest: None)
    assert [(follower.step().outcome, follower.step().outcome)] == [("refused", "unreachable")]
    Path(settings.dir, "lock").unlink()
    Path(settings.dir).rmdir()
    Path(settings.dir).write_text("a file")
    assert follower.step().outcome == "unreachable"


def test_old_bundles_go_but_for_the_last_ones(tmp_path: Path, settings: BundleSettings) -> None:
    world = World(tmp_path)
    newest = put(world, settings, STOPS, version="1")
    follower = Follower(settings, lambda _: newest, lambda _folder, _digest: None)
    for version in range(1, 7):
        newest = put(world, settings, STOPS, version=str(version))
        assert follower.step().outcome == "accepted"
    left = {path.name for path in (Path(settings.dir) / "bundles").iterdir()}
    assert len(left) == 3
    assert f"{6:064x}" in left


def test_two_processes_take_turns(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    inside, most = [0], [0]
    lock = threading.Lock()

    def fetch(_: BundleSettings) -> tuple[str, Index, Path]:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.02)
        with lock:
            inside[0] -= 1
        return found

    threads = [threading.Thread(target=Follower(settings, fetch, lambda _folder, _digest: None).step) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_source_is_one() -> None:
    with pytest.raises(ValueError, match="`ftp://x` is no source of bundles"):
        BundleSettings(source="ftp://x", root="r", name="retail")
