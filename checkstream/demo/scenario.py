"""Reads scenario files and chooses the one that answers a request. The form stands in `checkstream.demo.script`."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import yaml

from checkstream.demo.script import Choice, Match, Script
from checkstream.errors import Fault, FaultyFile

MAX_FILE_BYTES = 4 * 1024 * 1024


class Scenario(msgspec.Struct, frozen=True):
    """A script under its name."""

    name: str
    script: Script


ECHO = Scenario("echo", Script(choices=[Choice(content="You said: ${last_user}")]))
"""Answers when nothing else does."""


def choose(scenarios: Mapping[str, Scenario], *, header: str | None, model: str, last_user: str) -> Scenario | None:
    """Return the scenario that answers a request, by the rules of the docstring of `script`.

    None: `header` names a scenario that isn't there.
    """
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


def read_scenario(name: str, text: str, *, file: str | None = None) -> Scenario:
    """Read one scenario from YAML (of which JSON is a part).

    Raises:
        FaultyFile: not YAML, aliases, duplicate keys, unknown fields, wrong types, values out of bounds.
    """
    where = file or name
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        faults = _node_faults(where, root, text)
        tree = None if faults else yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        reason = f"not valid YAML: {error.problem or error.context}"
        raise FaultyFile((Fault(file=where, line=line, column=column, reason=reason),)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise FaultyFile((Fault(file=where, reason=f"not valid YAML: {error}"),)) from error
    except RecursionError as error:
        raise FaultyFile((Fault(file=where, reason="nested too deeply", advice="make it flatter"),)) from error
    if faults:
        raise FaultyFile(tuple(faults))
    try:
        json.dumps(tree, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # dates, bytes, NaN, lone surrogates
        advice = "quote the value"
        raise FaultyFile((Fault(file=where, reason=f"a value that JSON has not: {error}", advice=advice),)) from error
    try:
        script = msgspec.convert(tree, Script)
    except (msgspec.ValidationError, RecursionError) as error:
        advice = "see the form of a scenario file in checkstream/demo/script.py"
        raise FaultyFile((Fault(file=where, reason=_lower(str(error)), advice=advice),)) from error
    return Scenario(name, script)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _node_faults(file: str, root: yaml.Node | None, text: str) -> list[Fault]:
    """Return what YAML allows and a scenario does not: an empty file, aliases, duplicate keys."""
    if root is None:
        return [Fault(file=file, reason="the file is empty", advice="write at least `choices` or `error`")]
    faults: list[Fault] = []
    lines = text.splitlines()

    def fault(node: yaml.Node, reason: str, advice: str) -> None:
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        source = lines[line - 1] if line <= len(lines) else ""
        faults.append(Fault(file=file, line=line, column=column, reason=reason, advice=advice, source=source))

    seen: set[int] = set()
    waiting: list[yaml.Node] = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # composing gives an alias the very node of its anchor
            fault(node, "an anchor is used again by an alias", "write the value out")
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in keys:
                    fault(key, f"the key `{key.value}` stands here twice", "remove one of them")
                keys.add(str(key.value))
                waiting += (key, value)
    return faults


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
            found[name] = read_scenario(name, _text(path), file=str(path))
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


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > MAX_FILE_BYTES:
            reason = f"larger than {MAX_FILE_BYTES} bytes"
            raise FaultyFile((Fault(file=str(path), reason=reason, advice="split it"),))
        return data.decode()
    except OSError as error:
        raise FaultyFile((Fault(file=str(path), reason=f"can't be read: {error.strerror or error}"),)) from error
    except UnicodeDecodeError as error:
        raise FaultyFile((Fault(file=str(path), reason="not UTF-8", advice="save it as UTF-8"),)) from error


def built_in() -> Path:
    """Return the folder of the scenarios that the package carries."""
    return Path(__file__).parent / "scenarios"
