"""What is kept of the models' worth is of the models that ship: a release can't get worse unseen."""

from __future__ import annotations

import msgspec
import pytest

from checkstream.config import bundled
from checkstream.evaluation.board.asking import _version, versions
from checkstream.evaluation.board.described import read_described
from checkstream.evaluation.board.page import markdown
from checkstream.evaluation.board.results import decode, not_held
from checkstream.scoring.provenance import described_models

REMAKE = (
    "make the scoreboard anew, look at what got worse, and commit both files: "
    "`checkstream models eval --all DATA_FOLDER --keep`"
)


def test_the_scoreboard_is_of_the_models_that_ship() -> None:
    folder = bundled("models")
    board = decode((folder / "scoreboard.json").read_bytes(), "scoreboard.json")
    faults = not_held(board, read_described(folder / "scoreboard.yaml").digest, versions(None))
    assert not faults, f"models/scoreboard.json: {'; '.join(faults)}. {REMAKE}"
    assert (folder / "SCOREBOARD.md").read_text(encoding="utf-8") == markdown(board), REMAKE


@pytest.mark.parametrize("name", ["injection", "safety", "ner", "domain"])
def test_other_bytes_and_other_thresholds_are_another_model(name: str) -> None:
    entry = described_models()[name].entry
    first, *others = entry.files
    file = msgspec.structs.replace(first, sha256="0" * 64)
    limits = msgspec.structs.replace(entry.limits, window_tokens=entry.limits.window_tokens + 8)
    assert _version(entry) == versions(None)[name]
    for changed in (
        msgspec.structs.replace(entry, files=(file, *others)),
        msgspec.structs.replace(entry, limits=limits),
        msgspec.structs.replace(entry, version="9.9.9"),
    ):
        assert _version(changed) != _version(entry)
    assert _version(msgspec.structs.replace(entry, thresholds=())) != _version(entry) or not entry.thresholds
