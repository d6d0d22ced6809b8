"""Checks a folder of policies: what it compiles to, what its cases come to, and how it differs from another folder.

INVARIANT: no file outside of the folders is read, whatever a `bundle.yaml` names; what it names is others' input.
"""

from __future__ import annotations

import difflib
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from checkstream.app.lists import lists_beside
from checkstream.cli.policy_test import explained_mismatch, tried
from checkstream.cli.sources import installed_labels
from checkstream.config import policy_file, read_file
from checkstream.config.files import BUILTIN
from checkstream.control.bundles.difference import differences
from checkstream.control.bundles.weight import approval_of
from checkstream.control.bundles.written import WrittenProgram, read_bundle_file
from checkstream.control.drafts.files import MOST_BYTES, Manifest, changed_files
from checkstream.control.drafts.found import Example, FailedCase, Found, ProgramFound, TextDiff, WhatIf
from checkstream.control.drafts.sources import walked
from checkstream.core.policy.classifiers import Installed
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import Program
from checkstream.core.transcript import MAX_BYTES, decode
from checkstream.errors import Fault, FaultyFile, FingerprintsInvalid, WireError
from checkstream.trial.cases import read_cases
from checkstream.trial.installed import InstalledModels
from checkstream.trial.replay import Change, Comparing

BUNDLE_FILE = "bundle.yaml"
_CASES = "tests.yaml"
_MOST_BUNDLES, _MOST_FAULTS, _MOST_FAILED = 16, 200, 200
_MOST_EXAMPLES, _MOST_LINES, _MOST_COLUMNS = 20, 400, 400
_MOST_COMPARED = 20_000
"""Lines of a file: comparing takes longer than their number grows."""
_SPLITS = 2


class _Made(NamedTuple):
    """A program, and what it was made of."""

    written: WrittenProgram
    policies: tuple[str, ...]
    """From within the folder."""
    program: Program


def checked(
    folder: Path,
    against: Path | None = None,
    *,
    models: Path | None = None,
    recordings: Path | None = None,
    program: str | None = None,
    seconds: float = 3600.0,
) -> Found:
    """Return what is found in a folder.

    Args:
        folder: Of the sources of bundles.
        against: Another one, which it is held against.
        models: A `models.yaml`; the bundles' own are not read.
        recordings: A folder of transcripts to run.
        program: `bundle/program` to run them through; None: each.
        seconds: How long that may take.

    Raises:
        CheckstreamError: a folder can't be read, or the models can't be used.
    """
    labels = installed_labels(models)
    own = models is not None
    sources = _Folder(folder, labels)
    after = sources.programs(own=own)
    whole = not sources.faults
    programs = tuple(sources.tried(name, made) for name, made in after.items())
    before: dict[str, _Made] = {}
    missing: list[Fault] = []
    texts: tuple[TextDiff, ...] = ()
    if against is not None:
        other = _Folder(against, labels)
        before, missing = other.programs(own=own), other.faults
        texts = tuple(_texts(against, folder))
    faults = sources.faults
    what_if: tuple[WhatIf, ...] = ()
    if recordings is not None and not faults:
        asked = {name: made for name, made in after.items() if program in {None, name}}
        end = time.monotonic() + seconds
        what_if = tuple(
            _what_if(recordings, name, _comparing(made, before.get(name), models), _share(end, len(asked) - place))
            for place, (name, made) in enumerate(asked.items())
        )
    told = ({name: made.program for name, made in side.items()} for side in (before, after))
    old, new = told
    return Found(
        faults=tuple(dict.fromkeys(faults))[:_MOST_FAULTS],
        programs=programs,
        differences=() if against is None or not whole else tuple(differences(old, new)),
        weighs=bool(faults or missing) or _weight(old) != _weight(new),
        before=missing[0].render() if missing else "",
        texts=texts,
        what_if=what_if,
    )


def _weight(programs: Mapping[str, Program]) -> dict[str, str]:
    """Return what needs approval, bundle by bundle: what a conversation has come to is each one's own."""
    bundles: dict[str, dict[str, Program]] = {}
    for name, program in programs.items():
        bundle, _, own = name.partition("/")
        bundles.setdefault(bundle, {})[own] = program
    return {bundle: approval_of(bundle, own).weight for bundle, own in bundles.items()}


class _Folder:
    """A folder, and what is wrong with it."""

    def __init__(self, folder: Path, labels: Sequence[Installed]) -> None:
        self._folder = folder
        self._root = folder.resolve()
        self._labels = tuple(labels)
        self._names = [label.name for label in labels]
        self.faults: list[Fault] = []

    # --- what there is

    def programs(self, *, own: bool) -> dict[str, _Made]:
        """Return the programs by `bundle/program`, those without faults. `own`: models are given."""
        bundles = [path for path in walked(self._folder) if path.rpartition("/")[2] == BUNDLE_FILE]
        if not bundles or len(bundles) > _MOST_BUNDLES:
            reason = f"there are {len(bundles)} files of this name" if bundles else "there is no such file"
            advice = f"say in it what is in a bundle; a folder has at most {_MOST_BUNDLES} of them"
            self._wrong(BUNDLE_FILE, reason, advice)
            return {}
        found: dict[str, _Made] = {}
        for file in bundles:
            try:
                written = read_bundle_file(self._root / file)
            except FaultyFile as error:
                self._take(error)
                continue
            if written.models is not None and not own:
                advice = "name them with `--models`, or at a control server with `policies.models`"
                self._wrong(file, "the `models` of a bundle are not read here", advice)
            for name, program in written.programs.items():
                key = f"{written.bundle}/{name}"
                if key in found:
                    self._wrong(file, f"there is another program `{key}`", "rename this one, or its bundle")
                    continue
                made = self._made(file, program)
                if made is not None:
                    found[key] = made
        return dict(sorted(found.items()))

    def _made(self, file: str, written: WrittenProgram) -> _Made | None:
        names = tuple(name for each in written.policies if (name := self._within(file, each)) is not None)
        lost = len(names) < len(written.policies)
        if lost or (written.tests is not None and self._within(file, written.tests) is None):
            return None
        try:
            return _Made(written, names, self._compiled(names))
        except FaultyFile as error:
            self._take(error)
        except FingerprintsInvalid as error:
            self._wrong(file, str(error))
        except OSError as error:
            self._wrong(file, f"a policy can't be read: {(error.strerror or 'it is closed').lower()}", "mend its path")
        return None

    def _within(self, file: str, reference: str) -> str | None:
        """Return what a `bundle.yaml` names as a path from within the folder; None: it leads elsewhere."""
        if reference.startswith(BUILTIN):
            name = reference.removeprefix(BUILTIN)
            if name.replace("-", "").replace("_", "").isalnum():
                return reference
            self._wrong(file, f"there is no policy `{reference[:100]}`", "shipped ones are called `builtin:NAME`")
            return None
        try:
            place = policy_file(reference).resolve()
            if place.is_relative_to(self._root) and place.is_file():
                return place.relative_to(self._root).as_posix()
            inside = place.is_relative_to(self._root)
        except (OSError, ValueError):
            inside = True
        shown = reference.removeprefix(f"{self._root}/")[:200]
        reason = f"there is no file `{shown}`" if inside else f"`{shown}` lies outside of the folder"
        self._wrong(file, reason, "name a file of this folder, from where this one stands")
        return None

    def _compiled(self, policies: Sequence[str]) -> Program:
        sources: list[Given] = []
        for name in policies:
            path = policy_file(name) if name.startswith(BUILTIN) else self._root / name
            content = read_file(path)
            sources += [(name, content), *((called, each) for called, _, each in lists_beside(name, path, content))]
        return compile_sources(sources, self._labels)

    # --- what its cases come to

    def tried(self, name: str, made: _Made) -> ProgramFound:
        """Run the cases of a program: those beside each policy of the folder, and its own of all together."""
        ours = [policy for policy in made.policies if not policy.startswith(BUILTIN)]
        beside = {policy: f"{policy.rpartition('/')[0]}/{_CASES}".lstrip("/") for policy in ours}
        groups: list[tuple[tuple[str, ...], str]] = [
            ((policy,), file) for policy, file in beside.items() if (self._root / file).is_file()
        ]
        without = tuple(policy for policy, file in beside.items() if not (self._root / file).is_file())
        if made.written.tests is not None:
            groups.append((made.policies, Path(made.written.tests).resolve().relative_to(self._root).as_posix()))
            without = ()
        count = 0
        failed: list[FailedCase] = []
        untested: set[str] = set()
        spoken: set[str] = set()
        for policies, file in groups:
            try:
                program = self._compiled(policies)
                rules = {rule.id for rule in program.rules}
                cases = read_cases(file, read_file(self._root / file), rules, self._names)
            except FaultyFile as error:
                self._take(error)
                continue
            except OSError as error:
                self._wrong(file, f"it can't be read: {(error.strerror or 'it is closed').lower()}")
                continue
            tested = tried(program, Path(file), cases, self._names, _SPLITS)
            count += len(tested.results)
            untested |= set(tested.untested) if policies != made.policies or len(policies) == 1 else set()
            spoken |= rules - set(tested.untested)
            failed += [
                FailedCase(
                    file=file,
                    line=result.line or 0,
                    name=result.name,
                    lines=_cut([line for each in result.mismatches for line in explained_mismatch(each)])[0],
                )
                for result in tested.results
                if not result.passed
            ]
        return ProgramFound(
            name=name,
            policies=made.policies,
            hash=made.program.hash,
            rules=len(made.program.rules),
            enforced=sum(rule.mode == "enforce" for rule in made.program.rules),
            cases=count,
            failed=tuple(failed[:_MOST_FAILED]),
            untested=tuple(sorted(untested - spoken)),
            without_cases=without,
        )

    # --- what is wrong

    def _take(self, error: FaultyFile) -> None:
        root = f"{self._root}/"
        self.faults += [
            Fault(
                file=fault.file.removeprefix(root),
                line=fault.line,
                column=fault.column,
                reason=fault.reason.replace(root, ""),
                advice=fault.advice,
                source=fault.source,
            )
            for fault in error.faults
        ]

    def _wrong(self, file: str, reason: str, advice: str = "") -> None:
        self.faults.append(Fault(file=file, reason=reason, advice=advice))


# how two folders differ


def _manifest(folder: Path) -> Manifest:
    found: Manifest = {}
    for path in walked(folder):
        with (folder / path).open("rb") as file:
            found[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _texts(before: Path, after: Path) -> Iterator[TextDiff]:
    for each in changed_files(_manifest(before), _manifest(after)):
        old = [] if each.change == "added" else _lines(before / each.path)
        new = [] if each.change == "removed" else _lines(after / each.path)
        if old is None or new is None:
            lines = ["it is too long to be compared line by line, or no text"]
        else:
            lines = list(difflib.unified_diff(old, new, n=3, lineterm=""))[2:]
        shown, more = _cut(lines)
        yield TextDiff(path=each.path, change=each.change, lines=shown, more=more)


def _lines(path: Path) -> list[str] | None:
    try:
        content = read_file(path)
        lines = content.decode().split("\n") if len(content) <= MOST_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None
    return lines if lines is None or len(lines) <= _MOST_COMPARED else None


def _cut(lines: Sequence[str]) -> tuple[tuple[str, ...], int]:
    shown = tuple(line if len(line) <= _MOST_COLUMNS else f"{line[:_MOST_COLUMNS]}…" for line in lines[:_MOST_LINES])
    return shown, max(len(lines) - _MOST_LINES, 0)


# what it would have done


def _share(end: float, programs: int) -> float:
    """Return until when a program may run recordings, so that those behind it have their part of the time."""
    now = time.monotonic()
    return now + max(end - now, 0.0) / programs


def _comparing(after: _Made, before: _Made | None, models: Path | None) -> Comparing:
    return Comparing(after.program, None if before is None else before.program, InstalledModels(models))


def _what_if(folder: Path, name: str, comparing: Comparing, deadline: float) -> WhatIf:
    """Run recorded exchanges, the newest first, as long as there is time."""
    files = sorted((path for path in walked(folder) if path.endswith(".jsonl")), reverse=True)
    unread = looked_at = 0
    for file in files:
        if time.monotonic() > deadline:
            break
        looked_at += 1
        try:
            comparing.take(file, decode(_recording(folder / file)))
        except (WireError, OSError):
            unread += 1
    came = comparing.outcome
    return WhatIf(
        program=name,
        held_against="before" if comparing.against else "recorded",
        there=len(files),
        looked_at=looked_at - unread,
        changed=len(came.changed),
        rules={rule: (each.before, each.after) for rule, each in came.rules.items() if each.before != each.after},
        examples=tuple(map(_example, came.changed[:_MOST_EXAMPLES])),
        unfinished=len(came.unfinished),
        unread=unread,
        unanswered=came.unanswered,
        lost=came.lost,
    )


def _recording(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise WireError(f"`{path}` has more than {MAX_BYTES} bytes; it is no transcript")
    return content


def _example(change: Change) -> Example:
    return Example(file=change.file, why=change.why, lines=_cut(change.diff[2:])[0])
