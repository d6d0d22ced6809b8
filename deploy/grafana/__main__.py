"""Writes the dashboards that Grafana imports, beside this file: `python -m deploy.grafana`.

Each metric that the proxy or the control server exports is on one of them, or in `LEFT_OUT`; a test says so.
"""

from __future__ import annotations

import json
from pathlib import Path

from deploy.grafana import fleet, proxy
from deploy.grafana.model import Board, written

FOLDER = Path(__file__).parent
BOARDS = (proxy.BOARD, fleet.BOARD)
LEFT_OUT: dict[str, str] = {}
"""Metric that no dashboard shows -> why."""


def file_of(board: Board) -> Path:
    """Return where a dashboard is kept."""
    return FOLDER / f"{board.uid}.json"


def text_of(board: Board) -> str:
    """Return what stands there."""
    return json.dumps(written(board), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them."""
    for board in BOARDS:
        file_of(board).write_text(text_of(board), "utf-8")


if __name__ == "__main__":
    main()
