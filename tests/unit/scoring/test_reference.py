"""What a model says of calm texts: a file like any other of its files, so nothing of it is taken that is not whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import bundled
from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model, load_models, read_manifest
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.reference import ROLE, reference_of
from checkstream.telemetry.drift import BINS, BOUNDS, LEAST

GOOD = {"version": 1, "bounds": BOUNDS, "histograms": [{"label": "hate", "stage": "midstream", "counts": [1] * BINS}]}


def model(content: bytes) -> Model:
    entry = next(entry for entry in read_manifest(bundled("models")).models if entry.name == "safety")
    return Model(entry=entry, contents={ROLE: content})


def test_what_is_shipped_has_a_reference_for_each_label_that_is_asked() -> None:
    for entry in read_manifest(bundled("models")).models:
        if entry.kind is not ModelKind.SEQUENCE:
            continue
        (loaded,) = load_models(bundled("models"), (entry.name,))
        found = reference_of(loaded)
        stage = "midstream" if entry.name == "safety" else "ingress"
        assert {name for name, told in found if told == stage} == {f"{entry.name}.{label}" for label in entry.labels}
        for (_, told), counts in found.items():
            assert sum(counts) >= 2 * LEAST[told]


def test_a_reference_is_read_by_name_and_stage() -> None:
    assert reference_of(model(msgspec.json.encode(GOOD))) == {("safety.hate", "midstream"): (1,) * BINS}


def test_a_model_without_one_has_none() -> None:
    assert reference_of(Model(entry=model(b"").entry, contents={})) == {}


def one(**changes: Any) -> dict[str, Any]:
    return GOOD | {"histograms": [GOOD["histograms"][0] | changes]}  # type: ignore[index]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        {"version": 2} | {key: GOOD[key] for key in ("bounds", "histograms")},
        GOOD | {"more": 1},
        GOOD | {"bounds": BOUNDS[1:]},
        GOOD | {"bounds": []},
        one(counts=[1] * (BINS - 1)),
        one(counts=[1] * (BINS + 1)),
        one(counts=[0] * BINS),
        one(counts=[-1] * BINS),
        one(counts=[0.5] * BINS),
        one(counts=[1 << 50] * BINS),
        one(stage="egress"),
        one(label="love"),
        one(label="safety.hate"),
        GOOD | {"histograms": [*GOOD["histograms"], *GOOD["histograms"]]},  # type: ignore[misc]
    ],
)
def test_a_file_of_another_form_is_refused_by_the_models_name(content: object) -> None:
    data = content if isinstance(content, bytes) else msgspec.json.encode(content)
    with pytest.raises(ModelError, match="reference of model `safety`"):
        reference_of(model(data))


@given(st.binary(max_size=200))
def test_whatever_the_file_holds_it_is_read_or_refused(content: bytes) -> None:
    with pytest.raises(ModelError):
        reference_of(model(content))


def tampered(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"[", b"[1", 1)[:-1])


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b" ")


@pytest.mark.parametrize(
    ("change", "said"), [(tampered, "sha256 differs"), (longer, "bytes"), (Path.unlink, "can't be read")]
)
def test_a_file_that_is_not_what_is_pinned_is_no_file_of_the_model(
    tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    shutil.copytree(bundled("models") / "domain", tmp_path / "domain")
    shutil.copy(bundled("models") / "manifest.json", tmp_path)
    change(tmp_path / "domain" / "scores.json")
    with pytest.raises(ModelError, match=said):
        load_models(tmp_path, ("domain",))
