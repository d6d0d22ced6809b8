import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from checkstream.app import labels_of
from checkstream.config import bundled
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.errors import ModelError
from checkstream.scoring import open_session, read_whole
from checkstream.scoring.catalog import load_models, read_manifest
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.pairs import PairSession
from checkstream.scoring.sentence_encoder import SentenceEncoder

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


def graph(**changes: object) -> dict[str, object]:
    return entry(kind="sequence", activation="sigmoid", files=pair()) | changes


def gated(**changes: object) -> dict[str, object]:
    return graph(files=[*pair(), file(role="gate")], gate_threshold=0.1) | changes


def pair() -> list[dict[str, object]]:
    return [file(role="graph"), file(role="tokenizer")]


def vectors(**changes: object) -> dict[str, object]:
    return entry(kind="embedding", labels=[], dimensions=384, files=pair()) | changes


def rate(fpr: float, threshold: float) -> dict[str, object]:
    return {"label": "toxicity", "fpr": fpr, "threshold": threshold}


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
        if model.entry.kind is ModelKind.EMBEDDING:
            assert SentenceEncoder(model).dimensions == 384
            continue
        if model.entry.kind is ModelKind.PAIR:
            (read,) = PairSession(model).read("The mill burnt down in 1882.", "The mill burnt.")
            assert set(read.scores) == set(model.labels)
            continue
        session = open_session(model)
        assert read_whole(session, "hello").scores.shape == (len(model.labels),)


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
        (entry(files=[]), "role `lexicon`"),
        (entry(files=[file(), file()]), "roles are unique"),
        (entry(kind="pickle"), "pickle"),
        (without(entry(), "kind"), "kind"),
        (entry(name="../x"), "regex"),
        (entry(labels=[]), "has no `labels`"),
        (entry(labels=["a", "a"]), "twice"),
        (entry(thresholds=[{"label": "spam", "score": 0.5}]), "`spam`"),
        (entry(thresholds=[{"label": "toxicity", "score": 1.5}]), "score"),
        (entry(limits={"window_tokens": 10, "overlap_tokens": 9}), "overlap_tokens"),
        (entry(limits={"window_tokens": 0}), "window_tokens"),
        (entry(surprise=1), "surprise"),
        (entry(activation="sigmoid"), "activation"),
        (entry(columns=["a"]), "has no graph"),
        (entry(entities=[{"entity": "PERSON"}]), "doesn't tag tokens"),
        (entry(gate_threshold=0.5), "gate"),
        (entry(rates=[rate(0.01, 0.9), rate(0.01, 0.8)]), "twice"),
        (entry(rates=[rate(0.01, 0.8), rate(0.05, 0.9)]), "a lower rate needs a higher one"),
        (entry(rates=[rate(0.01, 0.8) | {"label": "spam"}]), "`spam`"),
        (entry(rates=[rate(0.0, 0.8)]), "fpr"),
        (entry(rates=[rate(0.01, 1.1)]), "threshold"),
        (graph(activation=None), "activation"),
        (graph(activation="exp"), "activation"),
        (graph(files=[file(role="graph")]), "role `tokenizer`"),
        (graph(files=[*pair(), file(role="lexicon")]), "role `lexicon` is not of the kind `sequence`"),
        (graph(files=[*pair(), file(role="gate")]), "`gate_threshold`"),
        (graph(gate_threshold=0.1), "`gate_threshold`"),
        (gated(limits={"window_tokens": 32}), "`gate_tokens`"),
        (gated(gate_threshold=1.0), "gate_threshold"),
        (graph(columns=["safe", "injection"]), "`toxicity`"),
        (graph(columns=["x" * 65]), "columns"),
        (graph(kind="tokens"), "no `labels`"),
        (graph(kind="tokens", labels=[]), "`entities`"),
        (graph(kind="tokens", labels=[], entities=[{"entity": "PERSON"}], columns=["O", "B-PER"]), "`B-PERSON`"),
        (graph(kind="tokens", labels=[], entities=[{"entity": "person"}]), "entity"),
        (graph(kind="tokens", labels=[], entities=[{"entity": "PERSON", "threshold": 0}]), "threshold"),
        (graph(kind="tokens", labels=[], entities=[{"entity": "PERSON"}] * 2), "names an entity twice"),
        (vectors(dimensions=0), "must give `dimensions`"),
        (vectors(dimensions=-1), "dimensions"),
        (vectors(dimensions=1 << 40), "dimensions"),
        (graph(dimensions=8), "must give `dimensions`"),
        (vectors(labels=["toxicity"]), "remove its `labels`"),
        (vectors(entities=[{"entity": "PERSON"}]), "remove its `labels` and `entities`"),
        (vectors(activation="softmax"), "activation"),
        (vectors(columns=["a"]), "no graph that scores"),
        (vectors(files=[file(role="graph")]), "role `tokenizer`"),
        (graph(kind="pair"), "entailment"),
        (graph(kind="pair", labels=["neutral", "contradiction"]), "entailment"),
        (graph(kind="pair", labels=["entailment", "toxicity"]), "entailment"),
        (graph(kind="pair", labels=["entailment"], columns=["neutral"]), "`entailment`"),
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


def test_every_kind_of_model_has_a_form_in_the_manifest(folder: Path) -> None:
    tagger = graph(name="ner", kind="tokens", labels=[], activation="softmax", columns=["O", "B-PERSON", "I-PERSON"])
    remote = entry(name="far", kind="remote", files=[])
    write(folder, gated(name="injection"), tagger | {"entities": [{"entity": "PERSON"}]}, remote, vectors(name="near"))
    injection, ner, far, near = read_manifest(folder).models
    assert injection.gate_threshold == 0.1
    assert ner.entities[0].threshold == 0.5
    assert not far.files
    assert (near.dimensions, near.labels) == (384, ())


def test_rates_of_the_manifest_are_what_a_policy_reckons_with(folder: Path) -> None:
    write(folder, entry(rates=[rate(0.05, 0.5), rate(0.01, 0.75)]))
    labels = {label.name: label for label in labels_of(load_models(folder)) if isinstance(label, ClassifierLabel)}
    assert labels["lexicon.toxicity"].threshold_at(0.02) == 0.75
    assert labels["lexicon.toxicity"].threshold_at(0.1) == 0.5
    assert labels["lexicon.toxicity"].threshold_at(0.001) is None
    assert labels["lexicon.injection"].threshold_at(0.1) is None
