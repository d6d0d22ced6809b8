"""`bundle.json`, as it may come from anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.app.bundles import compiled, opened
from checkstream.control.bundles.index import MAX_INDEX_BYTES, read_index
from checkstream.errors import BundleRefused
from tests.bundled import STOPS, World


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return bytes(World(tmp_path_factory.mktemp("world")).files(STOPS)["bundle.json"])


def changed(index: bytes, **fields: Any) -> bytes:
    """Return the index with other fields, as canonical as it was."""
    return json.dumps(json.loads(index) | fields, separators=(",", ":"), ensure_ascii=False).encode()


def test_it_comes_back_as_it_was(index: bytes) -> None:
    assert read_index(index).encode() == index


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    assert World(tmp_path / "a").files(STOPS) == World(tmp_path / "b").files(STOPS)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../up",
        "chat/../../up",
        "chat/./x",
        ".",
        "",
        "a//b",
        "a\\b",
        "C:x",
        "a\nb",
        "bundle.json",
        "chat",
        "CHAT/00-ours/policy.yaml",
        "x" * 201,
        "\u00fc",
    ],
)
def test_no_file_can_stand_elsewhere(index: bytes, path: str) -> None:
    files = json.loads(index)["files"]
    files[path] = {"sha256": "0" * 64, "bytes": 1}
    with pytest.raises(BundleRefused) as refused:
        read_index(changed(index, files=dict(sorted(files.items()))))
    assert "canonical" not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"format": "checkstream.bundle.2"}, "can't be read"),
        ({"name": "../x"}, "can't be read"),
        ({"programs": {}}, "can't be read"),
        ({"signature": "none"}, "can't be read"),
        ({"files": {}}, "needs `chat/00-ours/policy.yaml`, which is not among its files"),
    ],
)
def test_what_contradicts_itself_is_refused(index: bytes, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BundleRefused, match=says):
        read_index(changed(index, **fields))


def test_another_form_of_the_same_is_refused(index: bytes) -> None:
    with pytest.raises(BundleRefused, match="is not in canonical form"):
        read_index(json.dumps(json.loads(index)).encode())
    with pytest.raises(BundleRefused, match="the limit is"):
        read_index(b" " * (MAX_INDEX_BYTES + 1))


@given(data=st.binary(max_size=300))
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(BundleRefused):
        read_index(data)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_changed_byte_is_never_more_than_refused(index: bytes, at: int, byte: int) -> None:
    data = bytearray(index)
    data[at % len(data)] = byte
    try:
        read = read_index(bytes(data))
    except BundleRefused:
        return
    assert read.encode() == bytes(data)


def _folder(world: World, **changes: bytes | None) -> Path:
    folder = world.folder / "built"
    for path, content in (
        world.files(STOPS) | {path.replace("__", "/"): each for path, each in changes.items()}
    ).items():
        if content is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    return folder


def test_a_folder_is_held_to_its_index(tmp_path: Path) -> None:
    folder = _folder(World(tmp_path))
    index, files = opened(folder)
    assert compiled(index, files)["chat"].hash == index.programs["chat"].hash
    policy = folder / "chat" / "00-ours" / "policy.yaml"
    policy.write_bytes(policy.read_bytes().replace(b"zero", b"much"))
    with pytest.raises(BundleRefused, match="is not what the bundle says"):
        opened(folder)
    policy.unlink()
    with pytest.raises(BundleRefused, match="can't be read: no such file"):
        opened(folder)
    with pytest.raises(BundleRefused, match=r"is no bundle: it has no `bundle.json`"):
        opened(tmp_path)


def test_g27_a_program_that_compiles_to_something_else_is_refused(tmp_path: Path) -> None:
    """What was compiled elsewhere is never believed, and a bundle for other models isn't run on these."""
    world = World(tmp_path)
    index, files = opened(_folder(world))
    other = opened(_folder(World(tmp_path / "other")))[1]
    policy = "chat/00-ours/policy.yaml"
    with pytest.raises(BundleRefused, match=r"the program `chat` compiles to [0-9a-f]{12} here, to [0-9a-f]{12} where"):
        compiled(index, {**files, policy: bytes(other[policy]).replace(b"zero", b"much")})
    with pytest.raises(BundleRefused, match="was built for other models"):
        compiled(index, {**files, "models.json": b'{"models":[],"version":1} '})
    with pytest.raises(BundleRefused, match="a policy of the bundle can't be used"):
        compiled(index, {**files, policy: b"pack: ["})
