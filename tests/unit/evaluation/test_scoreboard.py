"""What is kept of the models' worth is of the models that ship: a release can't get worse unseen."""

from __future__ import annotations

from checkstream.config import bundled
from checkstream.evaluation.board.asking import versions
from checkstream.evaluation.board.described import read_described
from checkstream.evaluation.board.page import markdown
from checkstream.evaluation.board.results import decode, not_held

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
