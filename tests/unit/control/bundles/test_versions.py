"""Earlier versions that stay good: which, until when, and that nothing else comes back by them (G27)."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tuf.api.metadata import TargetFile

from checkstream.app.bundles import Files
from checkstream.control.attestation import Offered
from checkstream.control.bundles.earlier import earlier_of, marked
from checkstream.control.bundles.trust import approval_target, file_target
from checkstream.control.bundles.versions import before
from checkstream.errors import BundleError, BundleRefused
from tests.bundled import LOGS, STOPS, World, index_of

MORE = "{name: m, id: R-3, stage: [midstream], phrases: [no risk], actions: [{type: redact}]}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.establish()
    return made


def digest(files: Files) -> str:
    return hashlib.sha256(bytes(files["bundle.json"])).hexdigest()


def test_g27_the_version_before_stays_good_with_its_own_approval(world: World) -> None:
    one = world.release(STOPS, version="1")
    two = world.release(STOPS, MORE, version="2")
    newest = world.accepted()
    assert newest.offered == (Offered(digest=digest(two), version="2"), Offered(digest=digest(one), version="1"))
    back = world.accepted(wanted=digest(one))
    assert (back.index.version, back.digest, back.offered) == ("1", digest(one), newest.offered)
    assert back.weight != newest.weight
    files = {path.relative_to(back.folder).as_posix() for path in back.folder.rglob("*") if path.is_file()}
    assert files == {"bundle.json", *back.index.files}
    assert world.accepted(wanted=digest(two)).digest == digest(two)
    assert world.accepted().digest == digest(two)  # unasked it is the newest


def test_it_stays_good_as_long_as_its_signers_keep_it(world: World) -> None:
    """A version whose approval is that of the newest needs none of its own."""
    made = [world.release(STOPS, version="1", keep=2)]
    made.append(world.release(STOPS, MORE, version="2", keep=2))
    described = MORE.replace("{name: m,", "{name: m, tags: [told],")
    made.append(world.files(STOPS, described, version="3"))
    world.sign(made[-1], keep=2)  # what is enforced is the same, so nobody approves anew
    world.publish()
    assert [each.version for each in world.accepted().offered] == ["3", "2", "1"]
    for files in made:
        assert world.accepted(wanted=digest(files)).digest == digest(files)
    made.append(world.release(STOPS, MORE, LOGS, version="4", keep=2))
    assert [each.version for each in world.accepted().offered] == ["4", "3", "2"]
    with pytest.raises(BundleRefused, match=f"the version {digest(made[0])[:12]} of the bundle `retail` is not signed"):
        world.accepted(wanted=digest(made[0]))


def test_g27_what_was_withdrawn_does_not_come_back(world: World) -> None:
    one = world.release(STOPS, version="1")
    world.release(STOPS, MORE, version="2")
    assert world.accepted(wanted=digest(one)).index.version == "1"
    old = Path(shutil.copytree(world.public, world.folder / "old"))
    world.withdraw()
    assert [each.version for each in world.accepted().offered] == ["2"]
    with pytest.raises(BundleRefused, match="was withdrawn; what is signed now: 2"):
        world.accepted(wanted=digest(one))
    shutil.rmtree(world.public)
    shutil.copytree(old, world.public)  # whoever has the repository alone can't bring it back either
    with pytest.raises(BundleRefused, match="version"):
        world.accepted(wanted=digest(one))


def test_none_stays_where_none_is_kept(world: World) -> None:
    one = world.release(STOPS, version="1")
    world.release(STOPS, MORE, version="2", keep=0)
    assert [each.version for each in world.accepted().offered] == ["2"]
    with pytest.raises(BundleRefused, match="was withdrawn"):
        world.accepted(wanted=digest(one))
    with pytest.raises(BundleError, match="has no such earlier version, but none"):
        world.withdraw()


def test_one_of_several_can_be_withdrawn(world: World) -> None:
    made = [world.release(*rules, version=str(n), keep=3) for n, rules in enumerate(([STOPS], [STOPS, LOGS], [MORE]))]
    with pytest.raises(BundleError, match=f"but 1 \\({digest(made[1])[:12]}\\), 0"):
        world.withdraw("9")
    world.withdraw("1")
    assert [each.version for each in world.accepted().offered] == ["2", "0"]
    assert world.accepted(wanted=digest(made[0])).index.version == "0"


def test_g27_an_author_alone_brings_nothing_back(world: World) -> None:
    """He marks what he likes; what may be enforced of it is for the approver."""
    one = world.release(STOPS, version="1")
    two = world.files(STOPS, MORE, version="2")
    world.sign(two)
    world.approve(two, keep=0)
    world.publish(look=False)
    with pytest.raises(BundleRefused, match="is not what was approved"):
        world.accepted(wanted=digest(one))


def test_g27_an_approver_alone_brings_nothing_back(world: World) -> None:
    one = world.release(STOPS, version="1")
    two = world.files(STOPS, MORE, version="2")
    world.sign(two, keep=0)
    world.approve(two)
    world.publish()
    with pytest.raises(BundleRefused, match="is not signed, or was withdrawn"):
        world.accepted(wanted=digest(one))


def test_a_file_that_is_signed_is_no_version(world: World) -> None:
    files = world.release(STOPS, version="1")
    index = index_of(files)
    some = next(iter(index.files.values())).sha256
    for wanted in (some, "0" * 64):
        with pytest.raises(BundleRefused, match="is not signed"):
            world.accepted(wanted=wanted)


def test_the_same_bundle_signed_again_is_no_version_before_itself(world: World) -> None:
    one = world.release(STOPS, version="1")
    two = world.release(STOPS, MORE, version="2")
    world.sign(two)
    world.publish()
    assert [each.version for each in world.accepted().offered] == ["2", "1"]
    assert before(world.repository, "team", index_of(two), 5) == [digest(one)]
    back = world.release(STOPS, version="1")  # and one that comes again is the newest
    assert [each.version for each in world.accepted().offered] == ["1", "2"]
    assert back["bundle.json"] == one["bundle.json"]


@given(
    st.one_of(
        st.none(),
        st.dictionaries(st.sampled_from(["earlier", "other"]), st.one_of(st.none(), st.integers(), st.text())),
        st.fixed_dictionaries({"earlier": st.fixed_dictionaries({"place": st.integers(), "version": st.text()})}),
    )
)
def test_marks_of_any_form_are_read(custom: object) -> None:
    path = file_target("retail", "a" * 64)
    target = TargetFile.from_data(path, b"x", ["sha256"])
    target.unrecognized_fields["custom"] = custom
    found = earlier_of({path: target}, "retail")
    assert len(found) <= 1
    assert all(len(each.version) >= 1 for each in found)


def test_versions_are_told_in_their_order() -> None:
    named = {
        file_target("retail", str(n)): marked(file_target("retail", str(n)), b"%d" % n, n, f"v{n}") for n in (2, 1)
    }
    named[approval_target("retail")] = marked(approval_target("retail"), b"3", 3, "other")
    assert [each.version for each in earlier_of(named, "retail")] == ["v1", "v2"]
    assert earlier_of(named, "other") == []
