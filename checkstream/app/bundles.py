"""Bundles and the files that they are made of: built from policy files, read back from a folder, compiled anew.

INVARIANT: a program of a bundle is what this installation compiles from the bundle's own policies, and has the hash
that the bundle says, or it is refused; what was compiled elsewhere is never run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec

import checkstream
from checkstream.app.lists import given, lists_beside
from checkstream.app.models import asked, labels_of
from checkstream.config import advice_for, policy_file, read_file
from checkstream.control.bundles.index import (
    INDEX,
    MODELS,
    BundledCases,
    BundledProgram,
    Index,
    file_of,
    program_path,
    read_index,
)
from checkstream.control.bundles.weight import approval_of
from checkstream.control.bundles.written import WrittenBundle, WrittenProgram
from checkstream.core.policy.classifiers import Installed
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import Program
from checkstream.core.policy.spares_syntax import list_name, wanted_files
from checkstream.core.policy.stored import stored
from checkstream.errors import BundleError, BundleRefused, FileUnreadable, FingerprintsInvalid, PolicyError
from checkstream.scoring.manifest import Manifest
from checkstream.scoring.provenance import Described, described_models

Files = dict[str, bytes | memoryview]
"""Path within a bundle -> content."""
_CASES = "tests.yaml"


def built(written: WrittenBundle) -> Files:
    """Return the files of a bundle, `bundle.json` among them; the same files and installation make the same bytes.

    Raises:
        FileUnreadable: a file is not there or can't be read.
        PolicyError: a policy can't be used.
        ConfigError: `models.yaml` holds faults.
        ModelError: a model can't be used.
        BundleError: a policy is no pack of a name that a path can have.
    """
    described = described_models(written.models)
    labels = labels_of(described.values())
    files: Files = {}
    programs: dict[str, BundledProgram] = {}
    compiled: list[Program] = []
    for name, program in sorted(written.programs.items()):
        policies, tests = _copied(name, program, files)
        made = compile_sources(list(_sources(policies, files)), labels)
        files[program_path(made.hash)] = stored(made)
        programs[name] = BundledProgram(policies=policies, tests=tests, hash=made.hash)
        compiled.append(made)
    files[MODELS] = _models(asked(compiled, described))
    index = Index(
        name=written.bundle,
        version=written.version,
        package=checkstream.__version__,
        programs=programs,
        files={path: file_of(content) for path, content in sorted(files.items())},
    )
    try:
        files[INDEX] = read_index(index.encode()).encode()
    except BundleRefused as error:
        raise BundleError(f"no bundle can hold these files: {error}") from error
    return files


def _copied(name: str, program: WrittenProgram, files: Files) -> tuple[tuple[str, ...], tuple[BundledCases, ...]]:
    """Put the files of a program among the others; return the paths of its policies, and its tests."""
    policies: list[str] = []
    tests: list[BundledCases] = []
    for number, reference in enumerate(program.policies):
        file = policy_file(reference)
        stem = file.parent.name if file.name == "policy.yaml" else file.stem
        folder = f"{name}/{number:02}-{stem}"
        path = f"{folder}/policy.yaml"
        content = _read(file, reference)
        files[path] = content
        policies.append(path)
        files |= {
            f"{folder}/{beside.relative_to(file.parent).as_posix()}": each
            for _, beside, each in lists_beside(path, file, content)
        }
        cases = file.parent / _CASES
        if cases.is_file():
            files[f"{folder}/{_CASES}"] = _read(cases, str(cases))
            tests.append(BundledCases(policies=(path,), cases=f"{folder}/{_CASES}"))
    if program.tests is not None:
        files[f"{name}/{_CASES}"] = _read(Path(program.tests), program.tests)
        tests.append(BundledCases(policies=tuple(policies), cases=f"{name}/{_CASES}"))
    return tuple(policies), tuple(tests)


def _read(file: Path, reference: str) -> bytes:
    try:
        return read_file(file)
    except OSError as error:
        reason = (error.strerror or "it can't be opened").lower()
        advice = advice_for(reference, "give a policy file or builtin:default")
        raise FileUnreadable(f"can't read `{reference}`: {reason}; {advice}") from error


def _sources(policies: tuple[str, ...], files: Mapping[str, bytes | memoryview]) -> Iterator[Given]:
    """Yield policies and the files that they name, by their paths within the bundle."""
    for path in policies:
        folder = f"{path.rpartition('/')[0]}/"
        content = bytes(files[path])
        yield path, content
        for named in wanted_files(path, content):
            beside = f"{folder}{PurePosixPath(named)}"
            if beside in files:
                yield list_name(path, named), files[beside]


def _models(models: tuple[Described, ...]) -> bytes:
    manifest = Manifest(version=1, models=tuple(model.entry for model in models))
    return msgspec.json.encode(manifest, order="deterministic")


def opened(folder: Path, digest: str | None = None) -> tuple[Index, Files]:
    """Return the index and the files of a bundle in a folder, each as the index says it.

    Args:
        folder: Of the bundle.
        digest: SHA-256 that its `bundle.json` must have, hex; None: any.

    Raises:
        BundleRefused: the folder is no bundle, or a file is missing or is another.
    """
    try:
        content = (folder / INDEX).read_bytes()
    except OSError as error:
        raise BundleRefused(
            f"`{folder}` is no bundle: it has no `{INDEX}`; `checkstream bundle build` makes one"
        ) from error
    index = read_index(content)
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise BundleRefused(f"`{folder / INDEX}` is not what was fetched; fetch the bundle again")
    files: Files = {}
    for path, file in index.files.items():
        try:
            found = given(folder / path) if (folder / path).stat().st_size == file.bytes else b""
        except OSError as error:
            reason = (error.strerror or "it can't be opened").lower()
            raise BundleRefused(f"`{folder / path}` can't be read: {reason}; fetch the bundle again") from error
        if hashlib.sha256(found).hexdigest() != file.sha256:
            raise BundleRefused(f"`{folder / path}` is not what the bundle says; fetch the bundle again")
        files[path] = found
    return index, files


def compiled(index: Index, files: Mapping[str, bytes | memoryview], own: str | None = None) -> dict[str, Program]:
    """Return the programs of a bundle, compiled here.

    Args:
        index: What the bundle says of itself.
        files: Its files.
        own: The `models.yaml` of this installation, if there is one.

    Raises:
        BundleRefused: they are not what the bundle says, or can't be used here.
        ConfigError: `models.yaml` holds faults.
        ModelError: a model can't be used.
    """
    described = described_models(own)
    labels = labels_of(described.values())
    programs: dict[str, Program] = {}
    for name, program in index.programs.items():
        made = program_of(program.policies, files, labels)
        if made.hash != program.hash:
            raise BundleRefused(
                f"the program `{name}` compiles to {made.hash[:12]} here, to {program.hash[:12]} where it was built; "
                f"that was checkstream {index.package}, this is {checkstream.__version__}, with its models"
            )
        programs[name] = made
    if bytes(files[MODELS]) != _models(asked(programs.values(), described)):
        raise BundleRefused(
            "the bundle was built for other models than this installation has; `models list` shows them"
        )
    return programs


def program_of(
    policies: tuple[str, ...], files: Mapping[str, bytes | memoryview], labels: tuple[Installed, ...]
) -> Program:
    """Return what policies of a bundle compile to.

    Raises:
        BundleRefused: they can't be used.
    """
    try:
        return compile_sources(list(_sources(policies, files)), labels)
    except (PolicyError, FingerprintsInvalid) as error:
        first = str(error).partition("\n")[0]
        raise BundleRefused(f"a policy of the bundle can't be used: {first}") from error


def approved(index: Index, programs: Mapping[str, Program], weight: str) -> None:
    """Hold programs to what was approved, a digest as `Approval.weight` is one.

    Raises:
        BundleRefused: what they enforce is something else.
    """
    needed = approval_of(index.name, programs)
    if needed.weight != weight:
        raise BundleRefused(
            f"what the bundle `{index.name}` {index.version} enforces ({len(needed.rules)} rules) is not what was "
            "approved; `checkstream bundle diff` shows what differs from another"
        )
