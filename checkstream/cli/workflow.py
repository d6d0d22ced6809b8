"""Output that a workflow of GitHub reads, too: lines of it may be commands (`::...`, `##[...]`)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def annotate(stream: TextIO, kind: str, title: str, text: str) -> None:
    """Write one annotation, as one line; elsewhere than in a workflow nothing."""
    if _is_read():
        stream.write(f"::{kind} title={title}::{_escaped(text)}\n")


@contextmanager
def as_text(stream: TextIO) -> Iterator[None]:
    """Have no commands read in what is written meanwhile: models, documents and callers wrote some of it."""
    if not _is_read():
        yield
        return
    token = secrets.token_hex(16)
    stream.write(f"::stop-commands::{token}\n")
    try:
        yield
    finally:
        stream.write(f"::{token}::\n")
        stream.flush()  # both outputs are one log: nothing of the other comes in between


def _is_read() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
