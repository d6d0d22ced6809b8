"""What a node takes, and what it refuses (G27): the attacks that The Update Framework names, and our own."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tuf.api.metadata import Delegations, Metadata, TargetFile, Targets

from checkstream.control.bundles import fetching
from checkstream.control.bundles.metadata import hashed
from checkstream.control.bundles.trust import approval_target, delegated_roles
from checkstream.errors import BundleRefused, BundleUnreachable
from tests.bundled import LOGS, STOPS, World, index_of

MORE = "{name: m, id: R-3, stage: [midstream], phrases: [no risk], actions: [{type: redact}]}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.establish()
    made.release(STOPS, version="1")
    assert made.accepted().index.version == "1"
    return made


def kept(world: World, name: str = "old") -> Path:
    """Keep what is public now."""
    return Path(shutil.copytree(world.public, world.folder / name))


def restore(world: World, old: Path) -> None:
    shutil.rmtree(world.public)
    shutil.copytree(old, world.public)


def refused(world: World, says: str, error: type[Exception] = BundleRefused) -> None:
    """The node refuses, and has what it had."""
    before = [*(world.folder / "node" / "bundles").iterdir()]
    with pytest.raises(error, match=says):
        world.accepted()
    assert [*(world.folder / "node" / "bundles").iterdir()] == before
    assert {path.name for path in (world.folder / "node").iterdir()} == {"metadata", "bundles"}


def newest(world: World, role: str) -> Path:
    """Return the file of the newest metadata of a role."""
    return max((world.public / "metadata").glob(f"*.{role}.json"), key=lambda path: int(path.name.partition(".")[0]))


def test_a_node_takes_what_was_signed_and_approved(world: World) -> None:
    fetched = world.accepted()
    files = {path.relative_to(fetched.folder).as_posix() for path in fetched.folder.rglob("*") if path.is_file()}
    assert files == {"bundle.json", *fetched.index.files}
    world.release(STOPS, LOGS, version="2")
    assert world.accepted().index.version == "2"
    assert world.accepted().index.version == "2"  # once more changes nothing


def test_g27_an_older_state_is_refused(world: World) -> None:
    old = kept(world)
    world.release(STOPS, version="2")
    assert world.accepted().index.version == "2"
    restore(world, old)
    refused(world, "version")
    assert world.accepted("new").index.version == "1"  # who has seen nothing can't know; that is what days are for


def test_g27_an_older_bundle_in_a_newer_state_is_refused(world: World) -> None:
    """Whoever has the publisher's key alone can't bring an older version back."""
    old = newest(world, "team")
    world.release(STOPS, version="2")
    assert world.accepted().index.version == "2"
    snapshot = json.loads(newest(world, "snapshot").read_bytes())
    snapshot["signed"]["meta"]["team.json"] = {"version": int(old.name.partition(".")[0])}
    snapshot["signed"]["version"] += 1
    _resigned(world, "snapshot", snapshot)
    refused(world, "version")


def _resigned(world: World, role: str, content: Mapping[str, Any]) -> None:
    """Put metadata in force that the publisher has signed by hand."""
    metadata: Metadata[Any] = Metadata.from_dict({"signatures": [], "signed": content["signed"]})
    metadata.sign(world.signer("publisher"))
    (world.public / "metadata" / f"{metadata.signed.version}.{role}.json").write_bytes(metadata.to_bytes())
    timestamp: Metadata[Any] = Metadata.from_file(str(world.public / "metadata" / "timestamp.json"))
    timestamp.signed.version += 1
    timestamp.signed.snapshot_meta.version = metadata.signed.version
    timestamp.signed.snapshot_meta.hashes = timestamp.signed.snapshot_meta.length = None
    timestamp.sign(world.signer("publisher"))
    (world.public / "metadata" / "timestamp.json").write_bytes(timestamp.to_bytes())


def test_g27_a_state_that_nobody_calls_the_newest_any_more_is_refused(world: World) -> None:
    world.publish(now=datetime.now(UTC) - timedelta(days=2), look=False)
    refused(world, "timestamp.*expired")
    world.publish()
    assert world.accepted().index.version == "1"


def test_g27_an_hour_of_a_wrong_clock_is_nothing_to_a_state_of_a_day(world: World) -> None:
    world.publish(now=datetime.now(UTC) - timedelta(hours=1))
    assert world.accepted().index.version == "1"
    world.publish(now=datetime.now(UTC) + timedelta(hours=1))
    assert world.accepted().index.version == "1"


def test_g27_parts_of_two_states_are_refused(world: World) -> None:
    old = newest(world, "team")
    world.release(STOPS, LOGS, version="2")
    shutil.copy(old, newest(world, "team"))
    refused(world, "[Ll]ength|hash|version")


def test_g27_keys_that_nobody_trusts_are_refused(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    other.establish()
    other.release(LOGS, version="9")
    restore(world, other.public)
    refused(world, "root|timestamp.*sign")


@pytest.mark.parametrize("role", ["root", "targets", "snapshot", "team", "risk"])
def test_g27_metadata_that_was_changed_is_refused(world: World, role: str) -> None:
    path = newest(world, role)
    content = json.loads(path.read_bytes())
    content["signed"]["expires"] = "2090-01-01T00:00:00Z"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BundleRefused):
        world.accepted("new", root=path.read_bytes() if role == "root" else None)


def test_g27_a_file_that_was_changed_or_goes_on_and_on_is_refused(world: World) -> None:
    files = world.release(STOPS, LOGS, version="2")
    policy = index_of(files).files["chat/00-ours/policy.yaml"].sha256
    path = world.public / "targets" / "bundles" / "retail" / "files" / f"{policy}.{policy}"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"stop", b"STOP"))
    refused(world, "hash")
    with path.open("wb") as file:
        file.truncate(1 << 32)
    refused(world, "exceeding")
    path.unlink()
    refused(world, "can't be read", BundleUnreachable)
    path.write_bytes(content)
    assert world.accepted().index.version == "2"


def test_g27_what_nobody_has_approved_is_refused(world: World) -> None:
    """An author's key alone changes nothing that is enforced, and takes nothing away either."""
    for number, rules in enumerate(((STOPS, MORE), (LOGS,), (STOPS.replace("No.", "Nope."),)), 2):
        world.sign(world.files(*rules, version=str(number)))
        with pytest.raises(BundleRefused, match="is not what was approved"):
            world.publish()
        world.publish(look=False)
        with pytest.raises(BundleRefused, match="is not what was approved"):
            world.accepted()


def test_what_is_not_enforced_needs_no_approval(world: World) -> None:
    files = world.files(STOPS, LOGS, MORE.replace("actions", "mode: shadow, actions"), version="2")
    world.sign(files)
    world.publish()
    assert world.accepted().index.version == "2"


def test_g27_an_approval_of_another_bundle_is_refused(world: World) -> None:
    world.approve(world.files(STOPS, LOGS, version="2"))
    world.approve(world.files(MORE, version="3"))
    found = next((world.folder / "repository" / "staged" / "targets").rglob("*.retail.json")).read_bytes()
    other = {approval_target("retail"): found.replace(b'"bundle":"retail"', b'"bundle":"other"')}
    world.repository.offer("risk", other, approval_target("retail"), datetime.now(UTC))
    world.repository.sign("risk", world.signer("ruth"))
    world.publish(look=False)
    with pytest.raises(BundleRefused, match="calls itself by another name"):
        world.accepted()


def test_g27_one_key_for_both_roles_is_refused(world: World) -> None:
    """Whoever has the keys of `targets` can say so; a node does not take it."""
    world.establish(signers=())
    path = world.folder / "repository" / "staged" / "targets.json"
    metadata = Metadata[Targets].from_file(str(path))
    roles = delegated_roles(metadata.signed)
    roles["risk"].keyids = roles["team"].keyids
    path.write_bytes(metadata.to_bytes())
    for name in ("ann", "ben"):
        for role in ("root", "targets"):
            world.repository.sign(role, world.signer(name))
    files = world.files(LOGS, version="2")
    world.sign(files)
    world.approve(files, by=("eve",))
    world.publish(look=False)
    refused(world, "one key may sign the bundle `retail` and approve of it")


def test_g27_one_key_by_two_names_is_refused(world: World) -> None:
    world.establish(signers=())
    path = world.folder / "repository" / "staged" / "targets.json"
    content = json.loads(path.read_bytes())
    delegations = content["signed"]["delegations"]
    (eve,) = next(role for role in delegations["roles"] if role["name"] == "team")["keyids"]
    delegations["keys"]["f" * 64] = delegations["keys"][eve]
    next(role for role in delegations["roles"] if role["name"] == "risk")["keyids"] = ["f" * 64]
    path.write_text(json.dumps(content), encoding="utf-8")
    for name in ("ann", "ben"):
        for role in ("root", "targets"):
            world.repository.sign(role, world.signer(name))
    signer = world.signer("eve")
    signer.public_key.keyid = "f" * 64
    files = world.files(LOGS, version="2")
    world.sign(files)
    world.approve(files, by=())
    world.repository.sign("risk", signer)
    world.publish(look=False)
    refused(world, "one key may sign the bundle `retail` and approve of it")


def test_a_folder_that_was_damaged_is_fetched_anew(world: World) -> None:
    fetched = world.accepted()
    policy = fetched.folder / "chat" / "00-ours" / "policy.yaml"
    content = policy.read_bytes()
    policy.write_bytes(content.replace(b"stop", b"STOP"))
    assert world.accepted().folder == fetched.folder
    assert policy.read_bytes() == content
    policy.unlink()
    assert world.accepted().folder == fetched.folder
    assert policy.read_bytes() == content


def test_a_pipe_for_a_file_keeps_nobody(world: World) -> None:
    path = world.public / "metadata" / "timestamp.json"
    path.unlink()
    os.mkfifo(path)
    refused(world, "is no file", BundleUnreachable)


def test_g27_a_role_that_delegates_further_is_refused(world: World) -> None:
    path = world.folder / "repository" / "staged" / "risk.json"
    world.approve(world.files(STOPS, LOGS, version="2"))
    world.approve(world.files(MORE, version="2"))
    metadata = Metadata[Targets].from_file(str(path))
    metadata.signed.delegations = Delegations({}, {})
    path.write_bytes(metadata.to_bytes())
    world.repository.sign("risk", world.signer("ruth"))
    world.publish(look=False)
    refused(world, "`risk` delegates to others")


def test_g27_files_that_the_role_of_roles_signs_itself_are_refused(world: World) -> None:
    world.establish(signers=())
    path = world.folder / "repository" / "staged" / "targets.json"
    metadata = Metadata[Targets].from_file(str(path))
    target = TargetFile.from_data("approvals/retail.json", b"{}", ["sha256"])
    metadata.signed.targets = {target.path: target}
    path.write_bytes(metadata.to_bytes())
    place = world.folder / "repository" / "staged" / "targets" / hashed(target)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"{}")
    for name in ("ann", "ben"):
        world.repository.sign("targets", world.signer(name))
        world.repository.sign("root", world.signer(name))
    world.publish(look=False)
    refused(world, "`targets` signs files itself")


def test_keys_can_be_changed_and_a_node_that_trusts_the_first_root_follows(world: World) -> None:
    trust = world.written((world.folder / "trust.yaml").read_text("utf-8").replace("keys: [eve]", "keys: [eli]"))
    world.establish(trust, ("ann", "ben"))
    files = world.files(STOPS, version="2")
    world.sign(files, by=("eli",))
    world.publish()
    assert world.accepted().index.version == "2"
    assert json.loads((world.folder / "node" / "metadata" / "root.json").read_bytes())["signed"]["version"] == 2


def test_a_bundle_that_is_not_there_is_said(world: World) -> None:
    with pytest.raises(BundleRefused, match="the source has no bundle `wholesale`; ask who publishes it"):
        world.accepted("new", "wholesale")
    with pytest.raises(BundleUnreachable, match="can't be read"):
        world.accepted("new", source=str(world.folder / "nowhere"))
    with pytest.raises(BundleRefused, match="may not be trusted"):
        world.accepted("new", root=b"{}")


Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@pytest.fixture
def serve(world: World) -> Iterator[Callable[..., str]]:
    """Serve what is public over HTTP; some paths are answered otherwise."""
    servers = []

    def start(answers: Mapping[str, Answer] | None = None) -> str:
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, directory=str(world.public), **options)

            def do_GET(self) -> None:
                for end, answer in (answers or {}).items():
                    if self.path.endswith(end):
                        return answer(self)
                return super().do_GET()

            def log_message(self, *args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_any_web_server_will_do(world: World, serve: Callable[..., str]) -> None:
    assert world.accepted(source=serve()).index.version == "1"
    assert world.accepted("new", source=serve() + "/").index.version == "1"


def _forever(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" " * 65536)
    except OSError:
        return


def _slowly(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "10000")
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        return


def _fails(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_error(500)


def _elsewhere(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("location", handler.path)
    handler.end_headers()


@pytest.mark.parametrize("answer", [_forever, _slowly, _fails, _elsewhere])
@pytest.mark.parametrize("path", ["timestamp.json", "2.root.json", ".bundle.json"])
def test_g27_a_server_that_misbehaves_costs_no_more_than_its_time(
    world: World, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, answer: Answer, path: str
) -> None:
    monkeypatch.setattr(fetching, "LOOK_S", 0.3)
    began = time.monotonic()
    with pytest.raises((BundleUnreachable, BundleRefused)):
        world.accepted("new", source=serve({path: answer}))
    assert time.monotonic() - began < 30
    monkeypatch.undo()
    assert world.accepted("new", source=serve()).index.version == "1"


def test_a_proxy_that_ends_in_the_midst_of_a_fetch_goes_on_later(world: World) -> None:
    """Each file that is read may be the last one: half a bundle never stands among those that a node has."""
    world.release(STOPS, LOGS, version="2")

    class Ended(BaseException):
        pass

    class Dies(fetching.Fetcher):
        left = 0

        def _fetch(self, url: str) -> Iterator[bytes]:
            if Dies.left == 0:
                raise Ended
            Dies.left -= 1
            return super()._fetch(url)

    (first,) = (world.folder / "node" / "bundles").iterdir()
    for left in range(30):
        Dies.left = left
        try:
            world.accepted(fetcher=Dies())
        except Ended:
            assert [*(world.folder / "node" / "bundles").iterdir()] == [first]
        else:
            break
    else:
        pytest.fail("it never came to its end")
    assert left > 5
    assert world.accepted().index.version == "2"
