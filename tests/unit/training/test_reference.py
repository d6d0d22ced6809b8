"""The recipe of references: which texts it takes, that it repeats, and that what it writes is taken."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from random import Random

import numpy as np

from checkstream.config import bundled
from checkstream.scoring.catalog import load_models
from checkstream.scoring.reference import reference_of
from checkstream.telemetry.drift import BINS, Key
from models.training import corpus, reference

PROMPTS = [f"Please write a list of {number} things to see in the town of Bern." for number in range(200)]
ANSWER = (
    "The old town is worth a walk. The cathedral and the clock tower stand close to each other, and trams go by. " * 2
)


def written(folder: Path, rows: list[dict[str, object]]) -> None:
    with gzip.open(folder / "some.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_calm_texts_in_english_are_taken_that_nobody_learnt_from(tmp_path: Path) -> None:
    other = {"label": 1}, {"label": "rejected"}, {"language": "de"}
    rows = [{"text": text, "label": 0} for text in PROMPTS]
    rows += [{"text": f"{text} But bad.", **more} for text in PROMPTS for more in other]
    written(tmp_path, [*rows, {"text": "  "}, {"label": 0}])
    found = reference.calm(tmp_path, ["some"], Random(1))
    assert sorted(found) == sorted(text for text in PROMPTS if corpus.part_of(text) == "dev")
    assert found == reference.calm(tmp_path, ["some"], Random(1))


async def test_it_repeats_and_counts_prompts_and_windows_of_answers() -> None:
    once, twice = [await reference.scored(PROMPTS[:3], [ANSWER]) for _ in range(2)]
    assert [{key: counts.tolist() for key, counts in one.items()} for one in once] == [
        {key: counts.tolist() for key, counts in one.items()} for one in twice
    ]
    total = {key: sum(int(one[key].sum()) for one in once if key in one) for one in once for key in one}
    assert total["injection.injection", "ingress"] == 3
    assert total["safety.hate", "midstream"] == total["safety.violence", "midstream"] > 5


def test_what_it_writes_is_pinned_and_read(tmp_path: Path) -> None:
    shutil.copytree(bundled("models") / "domain", tmp_path / "domain")
    shutil.copy(bundled("models") / "manifest.json", tmp_path)
    before = json.loads((tmp_path / "manifest.json").read_text())
    whole: dict[Key, reference.Histogram] = {
        ("domain.legal", "ingress"): np.arange(BINS),
        ("safety.hate", "midstream"): np.arange(BINS),
    }
    reference.put("domain", whole, tmp_path)
    (model,) = load_models(tmp_path, ("domain",))
    assert reference_of(model) == {("domain.legal", "ingress"): tuple(range(BINS))}
    after = json.loads((tmp_path / "manifest.json").read_text())
    without = [
        [{key: value for key, value in entry.items() if key != "files"} for entry in told["models"]]
        for told in (before, after)
    ]
    assert without[0] == without[1]
