"""Who may sign what, who has, and what is public in the end."""

from __future__ import annotations

import json
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from checkstream.control.bundles.metadata import write_whole
from checkstream.control.bundles.repository import Repository
from checkstream.control.bundles.signers import open_signer, write_key_pair
from checkstream.errors import BundleError, BundleRefused, ConfigError
from tests.bundled import LOGS, STOPS, TRUST, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def waits(world: World) -> dict[str, tuple[tuple[str, ...], int]]:
    return {each.role: (each.signed, each.missing) for each in world.repository.waiting()}


def test_it_waits_for_as_many_signatures_as_are_needed(world: World) -> None:
    world.establish(signers=("ann",))
    assert waits(world) == {"root": (("ann",), 1), "targets": (("ann",), 1), "risk": ((), 1), "team": ((), 1)}
    with pytest.raises(BundleError, match="`root` waits for signatures: 1 more of ben"):
        world.publish()
    assert not world.public.exists()
    for name in ("ann", "ben", "eve", "ruth"):  # ann once more counts once
        for role in world.repository.signable(world.signer(name)):
            world.repository.sign(role, world.signer(name))
    assert waits(world)["root"] == (("ann", "ben"), 0)
    world.publish()
    assert waits(world) == {}


def test_two_authors_where_two_are_needed(world: World) -> None:
    trust = TRUST.replace("keys: [eve], bundles: [retail]", "keys: [eve, eli], threshold: 2, bundles: [retail]")
    world.establish(world.written(trust), ("ann", "ben", "eve", "eli", "ruth"))
    world.publish()
    files = world.files(STOPS)
    world.sign(files)
    world.approve(files)
    with pytest.raises(BundleError, match="`team` waits for signatures: 1 more of eli"):
        world.publish()
    world.sign(files, by=("eli",))  # the same files: Eve's signature stays
    world.publish()
    assert world.accepted().index.version == "1"
    world.sign(files, by=("eve",))
    world.sign(world.files(STOPS, LOGS), by=("eli",))  # other files: Eve has not signed these
    assert waits(world)["team"] == (("eli",), 1)


def test_a_key_signs_for_its_roles_alone(world: World) -> None:
    world.establish()
    with pytest.raises(BundleError, match="this key may not sign as `root`; that may ann, ben"):
        world.repository.sign("root", world.signer("eve"))
    with pytest.raises(BundleError, match="`risk` may not approve of `bundles/retail/"):
        world.sign(world.files(STOPS), role="risk", by=("ruth",))
    with pytest.raises(BundleError, match="`team` may not sign `bundles/wholesale/"):
        world.sign(world.files(STOPS, name="wholesale"))
    with pytest.raises(BundleError, match="there is no role `nobody`; known: team, risk"):
        world.sign(world.files(STOPS), role="nobody")
    with pytest.raises(BundleError, match="nothing waits to be signed as `snapshot`"):
        world.repository.sign("snapshot", world.signer("publisher"))


def test_publishing_needs_the_publishers_key(world: World) -> None:
    world.establish()
    with pytest.raises(BundleError, match="`snapshot` needs 1 more of the keys publisher"):
        world.repository.publish([world.signer("eve")], datetime.now(UTC), lambda: None)
    assert not (world.public / "metadata" / "timestamp.json").exists()
    world.publish()


def test_a_new_root_is_signed_by_the_old_one_too(world: World) -> None:
    world.establish()
    world.publish()
    world.establish(
        world.written(TRUST.replace("root: {keys: [ann, ben]", "root: {keys: [rob, eli]")), ("rob", "eli", "ann")
    )
    assert waits(world)["root"] == (("ann", "eli", "rob"), 1)
    for role in ("root", "targets"):
        world.repository.sign(role, world.signer("ben"))
    world.publish()
    world.release(STOPS, version="1")
    assert world.accepted().index.version == "1"


def test_saying_anew_that_it_is_the_newest_changes_nothing_else(world: World) -> None:
    world.establish()
    world.release(STOPS, version="1")
    before = sorted(path.name for path in (world.public / "metadata").iterdir())
    world.publish()
    assert sorted(path.name for path in (world.public / "metadata").iterdir()) == before
    world.publish(now=datetime.now(UTC) + timedelta(days=4))  # more than half the days of `snapshot`
    assert len([*(world.public / "metadata").iterdir()]) == len(before) + 1


def test_a_damaged_repository_is_said(world: World) -> None:
    with pytest.raises(BundleError, match="this is no repository of bundles"):
        Repository(world.folder / "none").bundles()
    with pytest.raises(BundleError, match="there is nothing to publish"):
        world.publish()
    world.establish()
    world.publish()
    path = world.public / "metadata" / "timestamp.json"
    content = path.read_bytes()
    for damaged in (b"", b"{}", content[:100], json.dumps({**json.loads(content), "signed": {}}).encode()):
        path.write_bytes(damaged)
        with pytest.raises(BundleError, match=r"timestamp\.json` can't be read"):
            world.publish()
    path.write_bytes((world.public / "metadata" / "1.root.json").read_bytes())
    with pytest.raises(BundleError, match="is of the kind `root`"):
        world.publish()


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (TRUST.replace("keys: [ruth]", "keys: [eve]"), "`eve` would be of `team`, which signs bundles, and of `risk`"),
        (TRUST.replace("threshold: 2", "threshold: 3"), "3 signatures are needed, and there are 2 keys"),
        (TRUST.replace("threshold: 2", "threshold: 1", 1), "`root` needs a `threshold` of 2"),
        (TRUST.replace("team:", "other: {keys: [eli], bundles: [retail]}, team:"), "may sign the same bundle"),
        (TRUST.replace("[ann, ben], threshold: 2", "[ann, ann], threshold: 2"), "a key is named twice"),
        (TRUST.replace("keys: [eve]", "keys: [mallory]"), "there is no key `mallory` in `keys`"),
        (TRUST.replace("risk:", "team:"), "a role is named twice"),
        (TRUST.replace("team:", "timestamp:"), "a role is named twice, or as one of"),
        (TRUST.replace("days: 7", "days: 0"), "days"),
        (TRUST.replace("[retail]", "['../x']"), "bundles"),
        (TRUST + "more: 1\n", "more"),
        ("roles: {}", "keys"),
        ("\0", ""),
    ],
)
def test_a_trust_file_with_faults_is_refused(world: World, written: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        world.written(written)
    assert says in str(refused.value)


def test_one_key_under_two_names_counts_once(world: World) -> None:
    (world.folder / "keys" / "ben.pub").write_bytes((world.folder / "keys" / "ann.pub").read_bytes())
    with pytest.raises(BundleError, match="`ben` and `ann` are one key"):
        world.establish()
    (world.folder / "keys" / "ben.pub").write_bytes(b"rubbish")
    with pytest.raises(BundleError, match="is no public key in PEM"):
        world.establish()


def test_a_private_key_is_its_owners_and_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private, public = tmp_path / "a.pem", tmp_path / "a.pub"
    write_key_pair(private, public)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    with pytest.raises(BundleError, match="is there already"):
        write_key_pair(private, public)
    monkeypatch.setenv("SIGNING_KEY", private.read_text())
    assert open_signer("env:SIGNING_KEY", ()).public_key == open_signer(str(private), ()).public_key
    monkeypatch.setenv("CHECKSTREAM_KEY_PASSPHRASE", "a long one")
    with pytest.raises(BundleError, match="is not encrypted; unset"):
        open_signer(str(private), ())
    write_key_pair(tmp_path / "b.pem", tmp_path / "b.pub")
    open_signer(str(tmp_path / "b.pem"), ())
    monkeypatch.setenv("CHECKSTREAM_KEY_PASSPHRASE", "another")
    with pytest.raises(BundleError, match="check the passphrase"):
        open_signer(str(tmp_path / "b.pem"), ())
    monkeypatch.delenv("CHECKSTREAM_KEY_PASSPHRASE")
    with pytest.raises(BundleError, match="is encrypted; set"):
        open_signer(str(tmp_path / "b.pem"), ())
    with pytest.raises(BundleError, match="is no private key in PEM"):
        open_signer(str(public), ())
    with pytest.raises(BundleError, match="can't read the key `nowhere`"):
        open_signer("nowhere", ())
    with pytest.raises(BundleError, match="`NOTHING` is not set"):
        open_signer("env:NOTHING", ())


def test_a_key_that_stays_where_it_is_signs_by_its_name(world: World) -> None:
    """As in a token or a cloud's service: named by an address, known by its public half."""
    world.establish(signers=())
    known = world.repository.known_keys()
    signer = open_signer(f"ann=file2:{world.folder}/keys/ann.pem", known)
    for role in world.repository.signable(signer):
        world.repository.sign(role, signer)
    assert waits(world)["root"] == (("ann",), 1)
    with pytest.raises(BundleError, match="there is no key called `mallory`; known: ann, ben, eve, publisher, ruth"):
        open_signer(f"mallory=file2:{world.folder}/keys/ann.pem", known)
    with pytest.raises(BundleError, match="the key `ann` can't be used at `hsm:2`"):
        open_signer("ann=hsm:2", known)
    with pytest.raises(BundleError, match="the key `ben` can't be used"):
        open_signer(f"ben=file2:{world.folder}/keys/ann.pem", known)


def test_g27_what_somebody_else_has_staged_is_not_signed_unseen(world: World) -> None:
    """An author who can write to the repository stages an approval, and the approver signs another bundle."""
    world.establish()
    world.release(STOPS, version="1")
    world.approve(world.files(LOGS, version="2"), by=())
    assert "risk" not in world.repository.signable(world.signer("ruth"))
    with pytest.raises(BundleError, match="`risk` has files of a bundle; give that bundle"):
        [*world.repository.said("risk")]
    with pytest.raises(BundleError, match="something else waits for signatures as `risk`"):
        world.approve(world.files(LOGS, name="pay"), by=("ruth",))


def test_whoever_signs_roles_is_told_what_they_say(world: World) -> None:
    world.establish(signers=())
    root = [*world.repository.said("root")]
    assert root[1].startswith("root are 2 of ann (")
    targets = [*world.repository.said("targets")]
    assert "bundles/retail/bundle.json" in targets[1]
    assert targets[2].startswith("risk are 1 of ruth (")
    assert targets[2].endswith("for approvals/*.json")


def test_a_refresh_leaves_what_waits_as_it_is(world: World) -> None:
    world.establish()
    world.release(STOPS, version="1")
    world.sign(world.files(LOGS, version="2"))  # nobody has approved of it
    before = waits(world)
    world.repository.publish([world.signer("publisher")], datetime.now(UTC), lambda: None, refresh=True)
    assert waits(world) == before
    assert world.accepted().index.version == "1"
    with pytest.raises(BundleRefused):
        world.publish()


def test_g27_what_is_refused_does_not_become_public(world: World) -> None:
    world.establish()
    world.release(STOPS, version="1")
    before = {path: path.read_bytes() for path in world.public.rglob("*") if path.is_file()}
    world.sign(world.files(LOGS, version="2"))
    with pytest.raises(BundleRefused):
        world.publish()
    with pytest.raises(BundleError, match="needs 1 more of the keys publisher"):
        world.repository.publish([world.signer("eve")], datetime.now(UTC), lambda: None)
    assert {path: path.read_bytes() for path in world.public.rglob("*") if path.is_file()} == before


def test_g27_only_what_is_signed_becomes_public(world: World) -> None:
    world.establish()
    staged = world.folder / "repository" / "staged" / "targets"
    staged.mkdir()
    (staged / "leak").symlink_to(world.folder / "keys" / "publisher.pem")
    files = world.files(STOPS)
    world.sign(files)
    world.approve(files)
    place = next(path for path in staged.rglob("*.bundle.json"))
    content = place.read_bytes()
    place.unlink()
    place.symlink_to(world.folder / "keys" / "publisher.pem")
    with pytest.raises(BundleError, match="is not what `team` has signed"):
        world.publish()
    place.unlink()
    place.write_bytes(content)
    world.publish()
    assert not [path for path in world.public.rglob("*") if path.is_file() and b"PRIVATE" in path.read_bytes()]


def test_a_publishing_that_was_broken_off_is_done_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each write: nodes take what was or what is to be, and the next try goes through."""
    world.establish()
    world.release(STOPS, version="1")
    left = [0]

    class Ended(BaseException):
        pass

    def ends(path: Path, content: bytes) -> None:
        if left[0] == 0:
            raise Ended
        left[0] -= 1
        write_whole(path, content)

    version, before = "", "1"
    for writes in range(40):
        version = f"2.{writes}"
        world.sign(world.files(STOPS, LOGS.replace("trial", f"trial {writes}"), version=version))
        left[0] = writes
        with monkeypatch.context() as patched:
            patched.setattr("checkstream.control.bundles.publishing.write_whole", ends)
            try:
                world.publish()
            except Ended:
                assert world.accepted(f"node {writes}").index.version in {before, version}
            else:
                break
        world.publish()
        assert world.accepted(f"node {writes}").index.version == version
        before = version
    assert writes > 5


def test_what_is_staged_of_an_older_copy_is_refused(world: World) -> None:
    world.establish()
    world.release(STOPS, version="1")
    world.sign(world.files(STOPS, LOGS, version="2"))
    staged = Path(shutil.copytree(world.folder / "repository" / "staged", world.folder / "copy"))
    world.sign(world.files(STOPS, LOGS, version="3"))
    world.publish()
    shutil.copytree(staged, world.folder / "repository" / "staged")
    with pytest.raises(BundleError, match="what is staged for `team` is older than what is public"):
        world.publish()
