"""Figures by language count names, and what a person read is found in the text it was read in."""

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.train_packages import TRAIN

pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)
pytest.importorskip("safetensors", reason=TRAIN)
pytest.importorskip("faker", reason=TRAIN)

from models.training.ner import languages
from models.training.ner.languages import as_read, row
from models.training.ner.marked import Marked, Span


class Names:
    """Finds one name wherever it stands."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find(self, text: str) -> Sequence[Span]:
        places = [(text.find(name), len(name)) for name in self._names]
        return [Span(at, at + size, "PERSON") for at, size in places if at >= 0]


TEXTS = (
    Marked("Ann met Bob Ray.", (Span(0, 3, "PERSON"), Span(8, 15, "PERSON"))),
    Marked("In Rome.", (Span(3, 7, "LOCATION"),)),
)


def test_a_row_counts_exact_bounds_and_shared_characters() -> None:
    found = row("en", "these", TEXTS, Names("Ann", "Bob"))
    assert (found.texts, found.marked) == (2, 3)
    assert found.strict == pytest.approx(2 * 1 / (2 + 3))
    assert found.overlap == pytest.approx(2 * 1 * (2 / 3) / (1 + 2 / 3))
    assert found.each == {"PERSON": pytest.approx(0.5), "LOCATION": 0.0}
    low, high = found.strict_interval
    assert 0 <= low <= found.strict <= high <= 1


def test_what_a_person_read_is_marked_wherever_it_stands_as_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Paris est loin. Parisien, il vit à Paris avec Anne."
    digits = hashlib.sha256(text.encode()).hexdigest()[:10]
    with gzip.open(tmp_path / "documents_varied.jsonl.gz", "wb") as lines:
        lines.write(msgspec.json.encode({"text": text}) + b"\n" + msgspec.json.encode({"text": "other"}) + b"\n")
    monkeypatch.setattr(languages, "READ", f"# a remark\nfr {digits} LOCATION Paris; PERSON Anne\npt 0000000000\n")
    [(language, source, marked)] = as_read(tmp_path)
    assert (language, source) == ("fr", "people")
    assert [(text[span.start : span.end], span.entity) for span in marked[0].spans] == [
        ("Paris", "LOCATION"),
        ("Paris", "LOCATION"),
        ("Anne", "PERSON"),
    ]
