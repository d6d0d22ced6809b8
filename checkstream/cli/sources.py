"""What commands about policies start from: the files that are named, and the classifiers that come with the package."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.app import labels_of
from checkstream.config import advice_for, policy_file, read_file
from checkstream.core.policy.classifiers import Installed
from checkstream.errors import FileUnreadable
from checkstream.scoring.provenance import described_models


def read_sources(files: Sequence[str]) -> list[tuple[str, bytes]]:
    """Return the names and contents of policy files; `builtin:NAME` is a pack that comes with the package.

    Raises:
        FileUnreadable: a file is not there or can't be read.
    """
    sources = []
    for name in files:
        try:
            sources.append((name, read_file(policy_file(name))))
        except OSError as error:
            reason = error.strerror or "it can't be opened"
            advice = advice_for(name, "give a policy file or builtin:default")
            raise FileUnreadable(f"can't read `{name}`: {reason.lower()}; {advice}") from error
    return sources


def installed_labels() -> tuple[Installed, ...]:
    """Return every label and every entity of every model that comes with the package.

    Raises:
        ModelError: a model's manifest or files can't be trusted or read.
    """
    return labels_of(described_models().values())
