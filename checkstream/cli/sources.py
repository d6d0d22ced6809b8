"""What commands about policies start from: the files that are named, and the classifiers that come with the package."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from checkstream.app import labels_of
from checkstream.app.lists import lists_beside
from checkstream.config import advice_for, policy_file, read_file
from checkstream.core.policy.classifiers import Installed
from checkstream.errors import FileUnreadable
from checkstream.scoring.provenance import described_models


def read_sources(files: Sequence[str]) -> list[tuple[str, bytes | memoryview]]:
    """Return the names and contents of policy files, and of the files that they name.

    `builtin:NAME` is a pack that comes with the package.

    Raises:
        FileUnreadable: a file is not there or can't be read.
    """
    sources: list[tuple[str, bytes | memoryview]] = []
    for name in files:
        try:
            content = read_file(policy_file(name))
            lists = ((list_name, each) for list_name, _, each in lists_beside(name, policy_file(name), content))
            sources += [(name, content), *lists]
        except OSError as error:
            reason = error.strerror or "it can't be opened"
            advice = advice_for(name, "give a policy file or builtin:default")
            raise FileUnreadable(f"can't read `{name}`: {reason.lower()}; {advice}") from error
    return sources


def add_models(*parsers: argparse.ArgumentParser) -> None:
    """Let commands name a `models.yaml`."""
    for parser in parsers:
        parser.add_argument("--models", metavar="FILE", type=Path, help="a models.yaml with models of your own")


def installed_labels(own: Path | None = None) -> tuple[Installed, ...]:
    """Return every label and every entity of every model, those of a `models.yaml` among them.

    Raises:
        ConfigError: `models.yaml` holds faults.
        ModelError: the manifest is not valid, or a model of `models.yaml` is not pinned.
    """
    return labels_of(described_models(own).values())
