"""Drafts: whatever is done in whatever order, an approval is of what stands there, and by somebody else."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.drafts import draft as moves
from checkstream.control.drafts.draft import Approval, Draft, begun, enough
from checkstream.control.drafts.files import (
    MOST_BYTES,
    MOST_FILES,
    Manifest,
    changed_files,
    check_path,
    check_paths,
    content_of,
    digest_of,
    rebased,
    with_changes,
)
from checkstream.control.drafts.sources import Sources
from checkstream.errors import ActConflicts, ActForbidden, ControlUnusable, RequestInvalid

PEOPLE = {"eve": "engineer", "rob": "risk_officer", "rita": "risk_officer", "ada": "org_admin"}
DIGESTS = ("a" * 64, "b" * 64)
ACTS = st.tuples(
    st.sampled_from(["change", "rebase", "propose", "approve", "refuse", "withdraw", "export"]),
    st.sampled_from(sorted(PEOPLE)),
    st.sampled_from(DIGESTS),
    st.sampled_from([1, 2]),
    st.sampled_from(["old", "old", "new"]),
)
"""What is done, by whom, of which content, how many must approve, and which sources there are then."""
Act = tuple[str, str, str, int, str]


def acted(draft: Draft, act: Act) -> Draft:
    name, who, digest, needs, sources = act
    if name in {"change", "rebase"}:
        return moves.changed(draft, who, digest, sources if name == "rebase" else None)
    if name == "propose":
        return moves.proposed(draft, digest, needs, "", sources=sources)
    if name == "approve":
        approval = Approval(who=who, role=PEOPLE[who], digest=digest, at_ms=1)  # type: ignore[arg-type]
        return moves.approved(draft, approval, sources=sources)
    if name == "refuse":
        return moves.refused(draft, who, digest, "no")
    if name == "withdraw":
        return moves.withdrawn(draft, "")
    return moves.exported(draft, digest, sources=sources)


@given(st.lists(ACTS, max_size=30))
def test_no_order_of_acts_leads_to_approval_without_enough_others_who_saw_this_content(
    acts: list[Act],
) -> None:
    draft = begun("t", "eve", "old", DIGESTS[0])
    wrote, was, base = {"eve"}, DIGESTS[0], "old"
    saw: dict[str, str] = {}
    """Who has approved of what stands there since it was last proposed, as an oracle that knows of no state."""
    asked = 0
    for act in acts:
        name, who, digest, needs, sources = act
        try:
            draft = acted(draft, act)
        except (ActConflicts, ActForbidden):
            continue
        if name in {"change", "rebase"}:
            wrote.add(who)
            was, saw, asked, base = digest, {}, 0, sources if name == "rebase" else base
        elif name == "propose":
            saw, asked = {}, needs
        elif name == "refuse":
            saw, asked = {}, 0
        elif name == "approve":
            saw[who] = digest
        if name in {"propose", "approve", "export"}:
            assert sources == base
        if draft.stage in {"approved", "exported"}:
            others = {who for who, digest in saw.items() if digest == was and who not in wrote}
            assert len(others) >= asked >= 1
            assert asked == 1 or any(PEOPLE[who] == "risk_officer" for who in others)
        assert draft.digest == was
        assert all(each.digest == draft.digest and each.who not in draft.authors for each in draft.approvals)


@given(st.lists(ACTS, max_size=12), ACTS)
def test_what_is_over_stays_over(acts: list[Act], last: Act) -> None:
    draft = begun("t", "eve", "old", DIGESTS[0])
    for act in acts:
        try:
            draft = acted(draft, act)
        except (ActConflicts, ActForbidden):
            continue
    for over in (moves.withdrawn(draft, ""),) if not draft.over else (draft,):
        with pytest.raises((ActConflicts, ActForbidden)):
            acted(over, last)


def test_two_of_whom_one_is_a_risk_officer_approve_of_what_is_enforced() -> None:
    def by(*names: str) -> tuple[Approval, ...]:
        return tuple(Approval(who=name, role=PEOPLE[name], digest="", at_ms=1) for name in names)  # type: ignore[arg-type]

    assert [enough(needs, by(*names)) for needs, names in (
        (1, ("ada",)), (1, ("rob",)), (2, ("rob",)), (2, ("rob", "ada")), (2, ("rob", "rita")),
    )] == [True, True, False, True, True]  # fmt: skip
    two = tuple(Approval(who=name, role="org_admin", digest="", at_ms=1) for name in ("ada", "ann"))
    assert not enough(2, two)
    assert enough(2, (*two, *by("rob")))


def test_a_refusal_says_why() -> None:
    draft = moves.proposed(begun("t", "eve", "b", "c"), "c", 1, "", sources="b")
    with pytest.raises(ActConflicts, match="say why"):
        moves.refused(draft, "rob", "c", "  ")


NAMES = st.sampled_from(["a", "b", "c/d", "c/e", "x.yaml"])
MANIFESTS = st.dictionaries(NAMES, st.sampled_from(["1", "2", "3"]))


@given(MANIFESTS, MANIFESTS)
def test_changes_lead_from_one_to_the_other(before: Manifest, after: Manifest) -> None:
    found = {each.path: each.change for each in changed_files(before, after)}
    assert found == {
        path: "added" if path not in before else "removed" if path not in after else "changed"
        for path in {*before, *after}
        if before.get(path) != after.get(path)
    }
    assert (content_of(before) == content_of(after)) == (not found)


@given(MANIFESTS, MANIFESTS, MANIFESTS)
def test_newer_sources_are_taken_over_where_the_draft_says_nothing(
    base: Manifest, ours: Manifest, theirs: Manifest
) -> None:
    merged, both = rebased(base, ours, theirs)
    for path in {*base, *ours, *theirs}:
        was, own, new = base.get(path), ours.get(path), theirs.get(path)
        assert merged.get(path) == (new if own == was else own)
        assert (path in both) == (len({was, own, new}) == 3)
    assert rebased(base, ours, base) == (ours, ())
    assert rebased(base, base, theirs) == (theirs, ())


@given(MANIFESTS, st.dictionaries(NAMES, st.none() | st.text(max_size=5)))
def test_a_manifest_with_changes_holds_them(manifest: Manifest, changes: dict[str, str | None]) -> None:
    try:
        found = with_changes(manifest, changes)
    except RequestInvalid:
        texts = [text for text in changes.values() if text is not None]
        assert not changes or set(changes) - set(manifest) or any("\0" in text for text in texts)
        return
    for path in {*manifest, *changes}:
        text = changes.get(path)
        kept = manifest.get(path) if path not in changes else None if text is None else digest_of(text.encode())
        assert found.get(path) == kept


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "../x", "a/../b", "a/./b", "a//b", "a/", ".git/config", "a/.env", "a\\b", "c:/x",
        "a\0b", "a\nb", "a\x1bb", "\u202ea", "a ", " a", "a.", "con*", "a" * 81, "/".join("a" * 13),
        "/".join(["x" * 70] * 3), "e\u0301", "\ud800",
    ],
)  # fmt: skip
def test_hostile_names_are_refused(path: str) -> None:
    with pytest.raises(RequestInvalid, match="`"):
        check_path(path)


def test_names_that_people_give_are_taken() -> None:
    for path in ("bundle.yaml", "ours/policy.yaml", "a b/größe-1.yaml", "x_y/z.v2.txt"):
        check_path(path)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["A/x", "a/X"], "differ in case alone"),
        (["a", "a/b"], "can't be a file and the folder"),
        (["A", "a/b/c"], "can't be a file and the folder"),
        ([f"f{n}" for n in range(MOST_FILES + 1)], "at most 500"),
    ],
)
def test_names_that_meet_are_refused(paths: list[str], said: str) -> None:
    with pytest.raises(RequestInvalid, match=said):
        check_paths(paths)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "nothing is changed"),
        ({"a": "x" * (MOST_BYTES + 1)}, "has 262,145 bytes"),
        ({"a": "é" * (MOST_BYTES // 2 + 1)}, "has 262,146 bytes"),
        ({"a": "x\0"}, "NUL at character 2"),
        ({"a": "\ud800"}, "half a character at 0"),
        ({"none": None}, "no file `none`"),
    ],
)
def test_hostile_texts_are_refused(changes: Mapping[str, str | None], said: str) -> None:
    with pytest.raises(RequestInvalid, match=said):
        with_changes({}, changes)


def test_sources_are_read_without_what_is_hidden_or_leads_out_of_them(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no")
    folder = tmp_path / "src"
    for name, content in (
        ("bundle.yaml", b"x"), ("ours/list.fp", b"\0\xff"), ("ours/big.txt", b"y" * (MOST_BYTES + 1)),
        (".git/config", b"z"), ("ours/.env", b"z"), ("latin.txt", b"\xe9"),
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    sources = Sources(folder)
    first = sources.snapshot()
    assert sorted(first.manifest) == ["bundle.yaml", "latin.txt", "ours/big.txt", "ours/list.fp"]
    assert list(first.texts.values()) == ["x"]
    assert sources.snapshot() is first
    (folder / "bundle.yaml").write_text("xx")
    assert sources.snapshot().texts.keys() == {digest_of(b"xx")}


def test_sources_that_can_not_be_drafted_on_say_why(tmp_path: Path) -> None:
    with pytest.raises(ControlUnusable, match="can't read the folder"):
        Sources(tmp_path / "none").snapshot()
    for twin in ("A", "a"):
        (tmp_path / twin).write_text("")
    with pytest.raises(ControlUnusable, match="differ in case alone"):
        Sources(tmp_path).snapshot()


def test_every_stage_is_reached() -> None:
    reached = set()
    for acts in itertools.product(["change", "propose", "approve", "refuse", "withdraw", "export"], repeat=3):
        draft = begun("t", "eve", "old", "x")
        for act in acts:
            try:
                draft = acted(draft, (act, "eve" if act == "change" else "rob", "x", 1, "old"))
            except (ActConflicts, ActForbidden):
                break
            reached.add(draft.stage)
    assert reached == {"open", "proposed", "approved", "refused", "withdrawn", "exported"}
