import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from checkstream.config import bundled
from checkstream.errors import ModelError
from checkstream.scoring import open_session
from checkstream.scoring.catalog import load_models, read_manifest

DATA = b'{"fillers": [], "classes": {}, "damping": [], "groups": []}'


def entry(**changes: object) -> dict[str, object]:
    return {
        "name": "lexicon",
        "kind": "lexicon",
        "version": "1.0.0",
        "licence": "Apache-2.0",
        "card": "lexicon/CARD.md",
        "labels": ["injection", "toxicity"],
        "limits": {"window_tokens": 250, "overlap_tokens": 30},
        "files": [file()],
    } | changes


def file(**changes: object) -> dict[str, object]:
    return {
        "role": "lexicon",
        "path": "lexicon/lexicon.json",
        "sha256": hashlib.sha256(DATA).hexdigest(),
        "bytes": len(DATA),
    } | changes


def without(struct: dict[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in struct.items() if name != key}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    (root / "lexicon").mkdir(parents=True)
    (root / "lexicon" / "lexicon.json").write_bytes(DATA)
    (tmp_path / "outside.json").write_bytes(DATA)
    write(root, entry())
    return root


def write(root: Path, *models: object, **more: object) -> None:
    (root / "manifest.json").write_bytes(msgspec.json.encode({"version": 1, "models": models} | more))


def test_every_model_that_comes_with_the_package_loads_and_has_a_card() -> None:
    root = bundled("models")
    for model in load_models(root):
        assert (root / model.entry.card).is_file()
        session = open_session(model)
        texts = [window.text for window in session.cut("hello")]
        assert session.run(texts).shape == (1, len(model.labels))


def test_a_verified_model_carries_the_bytes_that_were_hashed(folder: Path) -> None:
    (model,) = load_models(folder)
    assert model.contents == {"lexicon": DATA}
    assert model.name == "lexicon"
    assert model.labels == ("injection", "toxicity")
    assert model.limits.window_tokens == 250
    assert not model.entry.calibrated


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (entry(files=[file(sha256="0" * 64)]), "sha256 differs"),
        (entry(files=[file(sha256="")]), "sha256"),
        (entry(files=[without(file(), "sha256")]), "sha256"),
        (entry(files=[file(bytes=len(DATA) + 1)]), "bytes"),
        (entry(files=[file(bytes=len(DATA) - 1)]), "bytes"),
        (entry(files=[file(bytes=1 << 40)]), "bytes"),
        (entry(files=[file(bytes=0)]), "bytes"),
        (entry(files=[file(path="../outside.json")]), "inside the models folder"),
        (entry(files=[file(path="lexicon/../../outside.json")]), "inside the models folder"),
        (entry(files=[file(path="/etc/hostname")]), "inside the models folder"),
        (entry(files=[file(path="..\\outside.json")]), "inside the models folder"),
        (entry(files=[file(path="lexicon\x00.json")]), "inside the models folder"),
        (entry(files=[file(path="lexicon")]), "not a regular file"),
        (entry(files=[file(path="lexicon/none.json")]), "can't be read"),
        (entry(files=[file(path="x" * 255)]), "can't be"),
        (entry(files=[]), "length"),
        (entry(files=[file(), file()]), "roles are unique"),
        (entry(kind="pickle"), "pickle"),
        (without(entry(), "kind"), "kind"),
        (entry(name="../x"), "regex"),
        (entry(labels=[]), "length"),
        (entry(labels=["a", "a"]), "twice"),
        (entry(thresholds=[{"label": "spam", "score": 0.5}]), "`spam`"),
        (entry(thresholds=[{"label": "toxicity", "score": 1.5}]), "score"),
        (entry(limits={"window_tokens": 10, "overlap_tokens": 9}), "overlap_tokens"),
        (entry(limits={"window_tokens": 0}), "window_tokens"),
        (entry(surprise=1), "surprise"),
    ],
)
def test_a_hostile_or_broken_entry_is_refused(folder: Path, model: dict[str, object], reason: str) -> None:
    write(folder, model)
    with pytest.raises(ModelError, match=reason):
        load_models(folder)


@pytest.mark.parametrize(
    "data", [b"", b"null", b"\xff\xfe", b"\x80\x04\x95cos\nsystem\n", b"[" * 100_000, b'{"version": 2, "models": []}']
)
def test_what_is_no_manifest_is_refused(folder: Path, data: bytes) -> None:
    (folder / "manifest.json").write_bytes(data)
    with pytest.raises(ModelError, match="not valid"):
        read_manifest(folder)


def test_two_models_of_one_name_are_refused(folder: Path) -> None:
    write(folder, entry(), entry())
    with pytest.raises(ModelError, match="names are unique"):
        read_manifest(folder)


def test_a_missing_or_giant_manifest_is_refused(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b" " * (1 << 21))
    with pytest.raises(ModelError, match="more than"):
        read_manifest(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ModelError, match="can't be read"):
        read_manifest(folder)


def test_a_link_that_leads_outside_is_refused(folder: Path) -> None:
    (folder / "lexicon" / "lexicon.json").unlink()
    (folder / "lexicon" / "lexicon.json").symlink_to(folder.parent / "outside.json")
    with pytest.raises(ModelError, match="outside the models folder"):
        load_models(folder)


def test_a_link_in_circles_is_refused(folder: Path) -> None:
    (folder / "lexicon" / "lexicon.json").unlink()
    (folder / "lexicon" / "lexicon.json").symlink_to("lexicon.json")
    with pytest.raises(ModelError):
        load_models(folder)


def test_a_pipe_is_refused_without_waiting_on_it(folder: Path) -> None:
    (folder / "lexicon" / "lexicon.json").unlink()
    os.mkfifo(folder / "lexicon" / "lexicon.json")
    with pytest.raises(ModelError, match="not a regular file"):
        load_models(folder)


def test_an_unknown_name_is_answered_with_the_known_ones(folder: Path) -> None:
    with pytest.raises(ModelError, match="no model `toxic`; the manifest has `lexicon`"):
        load_models(folder, ("toxic",))


def test_a_lexicon_without_its_file_is_refused(folder: Path) -> None:
    write(folder, entry(files=[file(role="weights")]))
    (model,) = load_models(folder)
    with pytest.raises(ModelError, match="role `lexicon`"):
        open_session(model)
