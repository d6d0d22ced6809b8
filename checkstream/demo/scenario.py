"""Reads scenario files and chooses the one that answers a request. The form stands in `checkstream.demo.script`."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from checkstream.config.reader import build, read_tree
from checkstream.core.policy import nodes
from checkstream.demo.script import Choice, Match, Script
from checkstream.errors import Fault, FaultyFile


class Scenario(msgspec.Struct, frozen=True):
    """A script under its name."""

    name: str
    script: Script


ECHO = Scenario("echo", Script(choices=[Choice(content="You said: ${last_user}")]))
"""Answers when nothing else does."""


def choose(
    scenarios: Mapping[str, Scenario], *, header: str | None, model: str, last_user: str, continues: bool = False
) -> Scenario | None:
    """Return the scenario that answers a request, by the rules of the docstring of `script`.

    None: the scenario that is asked for isn't there.
    """
    chosen = _chosen(scenarios, header, model, last_user)
    if chosen is None or not continues or chosen.script.continued_by is None:
        return chosen
    return scenarios.get(chosen.script.continued_by)


def _chosen(scenarios: Mapping[str, Scenario], header: str | None, model: str, last_user: str) -> Scenario | None:
    if header is not None:
        return scenarios.get(header)
    if model in scenarios:
        return scenarios[model]
    for name in sorted(scenarios):
        if _holds(scenarios[name].script.match, model, last_user):
            return scenarios[name]
    return scenarios.get("fallback", ECHO)


def _holds(match: Match | None, model: str, last_user: str) -> bool:
    if match is None or (match.model is None and match.contains is None):
        return False
    if match.model is not None and not fnmatch.fnmatchcase(model, match.model):
        return False
    return match.contains is None or match.contains.casefold() in last_user.casefold()


def read_scenario(name: str, content: str | bytes, *, file: str | None = None) -> Scenario:
    """Read one scenario from YAML (of which JSON is a part, except surrogate pairs in escapes).

    Raises:
        FaultyFile: not YAML, aliases, duplicate keys, unknown fields, wrong types, values out of bounds; all of them.
    """
    source = nodes.open_source(file or name, content)
    tree = None if source.faults else read_tree(source)
    script = None if tree is None else build(tree, Script, source)
    if script is None or source.faults:
        raise FaultyFile(tuple(source.faults))
    return Scenario(name, script)


def read_folder(folder: Path) -> Mapping[str, Scenario]:
    """Read every `.yaml`, `.yml` and `.json` file of a folder.

    Raises:
        FaultyFile: with the faults of all files; also when the folder can't be read or two files give one name.
    """
    found: dict[str, Scenario] = {}
    faults: list[Fault] = []
    for path in _files(folder):
        name = path.stem
        if name in found:
            reason = f"a second file gives the scenario `{name}`"
            faults.append(Fault(file=str(path), reason=reason, advice="rename one of them"))
            continue
        try:
            found[name] = read_scenario(name, _content(path), file=str(path))
        except FaultyFile as error:
            faults.extend(error.faults)
    if faults:
        raise FaultyFile(tuple(faults))
    return found


def _files(folder: Path) -> Iterable[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml", ".json"})
    except OSError as error:
        reason = f"can't list the scenario folder: {error.strerror or error}"
        raise FaultyFile((Fault(file=str(folder), reason=reason, advice="give a folder of files"),)) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FaultyFile((Fault(file=str(path), reason=f"can't be read: {error.strerror or error}"),)) from error


def built_in() -> Path:
    """Return the folder of the scenarios that the package carries."""
    return Path(__file__).parent / "scenarios"
