"""The corpus's one option."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="write the golden files of tests/transcripts anew; read each of them before committing",
    )
