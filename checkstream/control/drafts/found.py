"""What a check of a folder of policies found, as `checkstream bundle check --json` says it."""

from __future__ import annotations

import msgspec

from checkstream.control.bundles.difference import Difference
from checkstream.errors import Fault


class FailedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that is not as it says."""

    file: str
    line: int
    name: str
    lines: tuple[str, ...]
    """What was expected and what came, for people."""


class ProgramFound(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one program."""

    name: str
    """`bundle/program`."""
    policies: tuple[str, ...]
    """As one gives them to other commands, from within the folder: files, and `builtin:NAME`."""
    hash: str
    rules: int
    enforced: int
    cases: int = 0
    """That were run."""
    failed: tuple[FailedCase, ...] = ()
    untested: tuple[str, ...] = ()
    """Rules of policies that have cases, of which none speaks of them."""
    without_cases: tuple[str, ...] = ()
    """Policies of the folder that have no cases beside them."""


class TextDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in a file."""

    path: str
    change: str
    """`added`, `changed` or `removed`."""
    lines: tuple[str, ...]
    """A unified diff, without its head."""
    more: int = 0
    """Lines that are left out."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded exchange that would have gone another way."""

    file: str
    why: tuple[str, ...]
    lines: tuple[str, ...]
    """Of what caller and upstream would read, as far as the recording holds it."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What the new policies of a program would have made of recorded exchanges."""

    program: str
    held_against: str
    """`before`: the program as it stands; `recorded`: what was recorded, where there is no such program yet."""
    there: int
    """Recordings in the folder."""
    looked_at: int
    """Those that were run: the newest, as many as there was time for."""
    changed: int
    rules: dict[str, tuple[int, int]]
    """Rule -> in how many exchanges it fired before, and now; of those where that differs."""
    examples: tuple[Example, ...]
    unfinished: int = 0
    """Exchanges of which the rest was never recorded, since they were cut off."""
    unread: int = 0
    """Files that are no recordings."""
    unanswered: int = 0
    """Checks that nobody could answer; the fail mode has decided."""
    lost: int = 0
    """Recordings in which masking has hidden something from a detector."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    faults: tuple[Fault, ...] = ()
    """With the paths of files from within the folder. Of programs with faults nothing else is told."""
    programs: tuple[ProgramFound, ...] = ()
    differences: tuple[Difference, ...] = ()
    """Rules that differ from the folder that it was held against."""
    weighs: bool = True
    """What is enforced differs, or that can't be told."""
    before: str = ""
    """Why the other folder's programs can't be told, where they can't."""
    texts: tuple[TextDiff, ...] = ()
    what_if: tuple[WhatIf, ...] = ()

    @property
    def failed(self) -> int:
        """How many cases are not as they say."""
        return sum(len(program.failed) for program in self.programs)

    @property
    def sound(self) -> bool:
        """It compiles, and does what its cases say."""
        return not self.faults and not self.failed
