"""Which bundle a node is at, and how that changes."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import msgspec
import pytest

from checkstream.app.bundles import compiled
from checkstream.app.following import Follower, Found, Pointer, current, expanded, pointers
from checkstream.config import BundleSettings, Config
from checkstream.config.settings import Match, RouteSettings
from checkstream.control.bundles.look import Look
from checkstream.control.bundles.weight import approval_of
from checkstream.errors import BundleRefused, BundleUnreachable, ConfigError
from tests.bundled import LOGS, STOPS, World, index_of


@pytest.fixture
def settings(tmp_path: Path) -> BundleSettings:
    return BundleSettings(source="s", root="r", name="retail", dir=str(tmp_path / "node"))


def put(world: World, settings: BundleSettings, *rules: str, version: str) -> Found:
    """Put a bundle into the node's folder, as a fetch does."""
    files = world.files(*rules, version=version)
    index = index_of(files)
    digest = hashlib.sha256(files["bundle.json"]).hexdigest()
    weight = approval_of("retail", compiled(index, files)).weight
    folder = Path(settings.dir) / "bundles" / digest
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return Found(pointer=Pointer(digest=digest, weight=weight), version=version, folder=folder)


def routes(settings: BundleSettings | None, *policies: str) -> Config:
    route = RouteSettings(name="chat", match=Match(path="/v1/chat/completions"), upstream="llm", policies=policies)
    return Config(bundles=settings, routes=(route,))


def test_a_program_is_the_files_of_its_policies(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    follower = Follower(settings, lambda *_: found, lambda _: None)
    assert current(settings) is None
    with pytest.raises(ConfigError, match="no bundle `retail` has been fetched yet"):
        expanded(routes(settings, "bundle:chat"))
    assert follower.step() == Look(outcome="accepted", bundle="retail", version="1", digest=found.pointer.digest)
    assert follower.step().outcome == "same"
    config, bundle, digest = expanded(routes(settings, "builtin:default", "bundle:chat"))
    assert digest == found.pointer.digest
    assert bundle == f"retail@1#{found.pointer.digest[:12]}"
    assert config.routes[0].policies == ("builtin:default", str(found.folder / "chat/00-ours/policy.yaml"))
    assert pointers(config) == (Path(settings.dir) / "current",)
    with pytest.raises(ConfigError, match="the bundle has no program `bundle:tools`; it has `bundle:chat`"):
        expanded(routes(settings, "bundle:tools"))
    assert expanded(routes(None, "ours.yaml")) == (routes(None, "ours.yaml"), "", "")
    assert pointers(routes(None, "ours.yaml")) == ()


def test_a_bundle_that_was_changed_on_disk_is_not_run(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    Follower(settings, lambda *_: found, lambda _: None).step()
    policy = found.folder / "chat/00-ours/policy.yaml"
    policy.write_bytes(policy.read_bytes().replace(b"stop", b"redact"))
    with pytest.raises(ConfigError, match="is not what the bundle says"):
        expanded(routes(settings, "bundle:chat"))
    (Path(settings.dir) / "current").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="can't be read"):
        expanded(routes(settings, "bundle:chat"))
    for hostile in ("../..", "\0", "/", "0" * 64, '{"digest": "../../../../x", "weight": "' + "0" * 64 + '"}'):
        (Path(settings.dir) / "current").write_text(hostile)
        with pytest.raises(ConfigError, match="can't be read"):
            expanded(routes(settings, "bundle:chat"))


def test_g27_what_is_loaded_is_held_to_digest_and_approval_again(tmp_path: Path, settings: BundleSettings) -> None:
    """Whoever writes to the folder, and a package that compiles to something else, are found out at the next load."""
    found = put(World(tmp_path), settings, STOPS, version="1")
    other = put(World(tmp_path / "other"), settings, LOGS, version="2")
    Follower(settings, lambda *_: found, lambda _: None).step()
    pointer = Pointer(digest=other.pointer.digest, weight=found.pointer.weight)
    with pytest.raises(ConfigError, match="is not what was approved"):
        expanded(routes(settings, "bundle:chat"), pointer)
    for path in other.folder.rglob("*"):
        if path.is_file():
            (found.folder / path.relative_to(other.folder)).parent.mkdir(parents=True, exist_ok=True)
            (found.folder / path.relative_to(other.folder)).write_bytes(path.read_bytes())
    with pytest.raises(ConfigError, match="is not what was fetched"):
        expanded(routes(settings, "bundle:chat"))


def test_a_bundle_that_was_refused_is_tried_again_later(tmp_path: Path, settings: BundleSettings) -> None:
    """What was wrong may be this node's own: a policy of its own beside the bundle's, a model."""
    found, wrong = put(World(tmp_path), settings, STOPS, version="1"), [True]

    def accept(_: Found) -> None:
        if wrong[0]:
            raise RuntimeError("not here")

    follower = Follower(settings, lambda *_: found, accept)
    assert follower.step().outcome == "refused"
    wrong[0] = False
    outcomes = [follower.step().outcome for _ in range(10)]
    assert outcomes == ["refused"] * 8 + ["accepted", "same"]


def test_another_approval_of_the_same_bundle_is_news(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    withdrawn = msgspec.structs.replace(found, pointer=Pointer(digest=found.pointer.digest, weight="0" * 64))
    newest, tried = found, list[str]()
    follower = Follower(settings, lambda *_: newest, lambda each: tried.append(each.pointer.weight))
    assert follower.step().outcome == "accepted"
    newest = withdrawn
    assert follower.step().outcome == "accepted"
    assert tried == [found.pointer.weight, "0" * 64]


def test_a_bad_bundle_is_tried_once_and_changes_nothing(tmp_path: Path, settings: BundleSettings) -> None:
    world = World(tmp_path)
    newest = first = put(world, settings, STOPS, version="1")
    tried: list[str] = []

    def accept(found: Found) -> None:
        tried.append(found.version)
        if found.version == "2":
            raise RuntimeError("anything\nat all")

    follower = Follower(settings, lambda *_: newest, accept)
    assert follower.step().outcome == "accepted"
    newest = put(world, settings, LOGS, version="2")
    for _ in range(3):
        assert follower.step().reason == "anything"
    assert tried == ["1", "2"]
    assert current(settings) == first.pointer
    newest = put(world, settings, STOPS, LOGS, version="3")
    assert follower.step().outcome == "accepted"


def test_what_the_source_says_is_told(settings: BundleSettings) -> None:
    errors: list[Exception] = [BundleRefused("old"), BundleUnreachable("away")]

    def fetch(*_: object) -> Found:
        raise errors.pop(0)

    follower = Follower(settings, fetch, lambda _: None)
    assert [(follower.step().outcome, follower.step().outcome)] == [("refused", "unreachable")]
    Path(settings.dir, "lock").unlink()
    Path(settings.dir).rmdir()
    Path(settings.dir).write_text("a file")
    assert follower.step().outcome == "unreachable"


def test_old_bundles_go_but_for_the_last_ones(tmp_path: Path, settings: BundleSettings) -> None:
    world = World(tmp_path)
    newest = put(world, settings, STOPS, version="1")
    follower = Follower(settings, lambda *_: newest, lambda _: None)
    for version in range(1, 7):
        newest = put(world, settings, STOPS, version=str(version))
        assert follower.step().outcome == "accepted"
    left = {path.name for path in (Path(settings.dir) / "bundles").iterdir()}
    assert len(left) == 3
    assert newest.pointer.digest in left


def test_two_processes_take_turns(tmp_path: Path, settings: BundleSettings) -> None:
    found = put(World(tmp_path), settings, STOPS, version="1")
    inside, most = [0], [0]
    lock = threading.Lock()

    def fetch(*_: object) -> Found:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.02)
        with lock:
            inside[0] -= 1
        return found

    threads = [threading.Thread(target=Follower(settings, fetch, lambda _: None).step) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_source_is_one() -> None:
    with pytest.raises(ValueError, match="`ftp://x` is no source of bundles"):
        BundleSettings(source="ftp://x", root="r", name="retail")
