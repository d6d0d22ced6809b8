"""A file that a person wrote, as a tree of YAML nodes with their places, and the list of what is wrong with it.

The tree is built from PyYAML's event stream by a loop of our own, so nothing is constructed, no tag is
obeyed, and depth and size are bounded. What YAML 1.1 would read in surprising ways (aliases, merge
keys, `no` as false, `0777`, `1:30`, dates) is a fault that says what to write instead.
A broken part becomes a `Broken` node, which every reader accepts in silence: one fault, one report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec
import yaml

from checkstream.core.match.fingerprints import Fingerprints
from checkstream.errors import Fault

MAX_FILE_CHARS = 524_288
MAX_FILE_BYTES = 4 * MAX_FILE_CHARS + 3
"""Of a longer file nobody need read more to see that it has more characters; 3 are the mark of its encoding."""
MAX_DEPTH = 32
MAX_NODES = 100_000
MAX_FAULTS = 100
"""More faults than this in one file are not listed one by one."""
MAX_SHOWN_CHARS = 60
MAX_SOURCE_CHARS = 200

T = TypeVar("T")
Given = tuple[str, str | bytes | memoryview]
"""The name of a policy file, or of one that it names, and its content; what is mapped is not copied."""


class Place(msgspec.Struct, frozen=True, order=True):
    """Line and column in a file, both from 1."""

    line: int
    column: int


class Placed(msgspec.Struct, Generic[T], frozen=True):
    """A value and where it stands."""

    value: T
    at: Place


class ScalarNode(msgspec.Struct, frozen=True):
    """A scalar as it was written."""

    value: str
    plain: bool
    """Without quotes: YAML may read it as something else than text."""
    at: Place


class MappingNode(msgspec.Struct, frozen=True):
    """Keys and values in the order of the file; duplicate keys have been reported and left out."""

    entries: tuple[tuple[ScalarNode, Node], ...]
    at: Place


class SequenceNode(msgspec.Struct, frozen=True):
    """Items in the order of the file."""

    items: tuple[Node, ...]
    at: Place


class Broken(msgspec.Struct, frozen=True):
    """Something that has been reported already."""

    at: Place


Node = ScalarNode | MappingNode | SequenceNode | Broken
START = Place(1, 1)


class Source:
    """One file: its name, its lines, and the faults found so far."""

    def __init__(self, name: str, text: str) -> None:
        """Read `text` as the content of the file `name`."""
        self.name = name
        self.text = text
        self.faults: list[Fault] = []
        self.lists: Mapping[str, bytes | memoryview] = {}
        """Content of the files that the policy names, by their paths."""
        self.fingerprints: dict[str, Fingerprints] = {}
        """What those of them say that have been read as fingerprints."""
        self._lines = text.splitlines()
        self._dropped = False

    @property
    def length(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def line(self, number: int) -> str:
        """Return a line (from 1) as it stands in the file, without its end; nothing when there is no such line."""
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def fault(self, at: Place | None, reason: str, advice: str = "") -> None:
        """Note what is wrong at a place (None: with the file as a whole)."""
        if len(self.faults) >= MAX_FAULTS:
            if not self._dropped:
                self._dropped = True
                advice = "mend those listed first"
                self.faults.append(Fault(file=self.name, reason=f"more than {MAX_FAULTS} faults", advice=advice))
            return
        if at is None:
            self.faults.append(Fault(file=self.name, reason=reason, advice=advice))
            return
        source = "".join(char if char.isprintable() else " " for char in self.line(at.line)[:MAX_SOURCE_CHARS])
        if at.column > len(source) + 1:
            source = ""  # the caret would point past what is shown
        self.faults.append(
            Fault(file=self.name, line=at.line, column=at.column, reason=reason, advice=advice, source=source)
        )


def shown(text: str) -> str:
    """Return a user's text as messages show it: in backticks, one line, cut when long."""
    clean = "".join(char if char.isprintable() else "?" for char in text)
    if len(clean) > MAX_SHOWN_CHARS:
        clean = clean[: MAX_SHOWN_CHARS - 3] + "..."
    return f"`{clean}`"


def open_source(name: str, content: str | bytes) -> Source:
    """Return the file as a source; text that is not UTF-8 or too large is noted as its only fault."""
    if isinstance(content, bytes):
        if len(content) > MAX_FILE_BYTES:
            return _too_long(Source(name, ""))
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            source = Source(name, content.decode("utf-8", errors="replace"))
            line = content.count(b"\n", 0, error.start) + 1
            before = content[content.rfind(b"\n", 0, error.start) + 1 : error.start]
            column = len(before.decode("utf-8", errors="replace")) + 1
            byte = f"`0x{content[error.start]:02x}`"
            source.fault(Place(line, column), f"byte {byte} is not valid UTF-8", "save the file as UTF-8")
            return source
    else:
        text = content.removeprefix("\ufeff")
    source = Source(name, text)
    return _too_long(source) if len(text) > MAX_FILE_CHARS else source


def _too_long(source: Source) -> Source:
    source.fault(None, f"the file is longer than {MAX_FILE_CHARS} characters", "split it into several files")
    return source


def read_nodes(source: Source) -> Node | None:
    """Return the file's one document as a tree, or None when it can't be read; faults go to `source`."""
    if source.faults:
        return None
    place = _forbidden_character(source.text)
    if place is not None:
        at, char = place
        source.fault(at, f"the character `U+{ord(char):04X}` may not stand in a YAML file", "remove it")
        return None
    try:
        events = list(_bounded(yaml.parse(source.text, Loader=_fast_loader()), source))
    except yaml.YAMLError as error:
        _yaml_fault(source, error)
        return None
    if source.faults:
        return None
    return _Builder(source).build(events)


def _fast_loader() -> type:
    """Return libyaml's loader where PyYAML was built with it (16 times quicker), else PyYAML's own."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _bounded(events: object, source: Source) -> list[yaml.Event]:
    """Return the events up to the caps on nodes and depth; passing one is a fault."""
    kept: list[yaml.Event] = []
    depth = 0
    for event in events:  # type: ignore[attr-defined]
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                source.fault(_at(event), f"nested deeper than {MAX_DEPTH} levels", "no key needs as much")
                break
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        kept.append(event)
        if len(kept) > MAX_NODES:
            source.fault(None, f"the file has more than {MAX_NODES} values", "split it into several files")
            break
    return kept


def _at(event: yaml.Event) -> Place:
    mark = event.start_mark
    if mark is None:  # libyaml and PyYAML mark every event; their types leave it open
        return START
    return Place(mark.line + 1, mark.column + 1)


def _forbidden_character(text: str) -> tuple[Place, str] | None:
    """Return the first character that may not stand in a file (NUL, controls, surrogates), with its place.

    Source: YAML 1.1, 5.1 (the C1 control U+0085 is refused too).
    """
    forbidden = {char for char in set(text) if _is_forbidden(ord(char))}
    if not forbidden:
        return None
    index = next(at for at, char in enumerate(text) if char in forbidden)
    line_start = text.rfind("\n", 0, index) + 1
    return Place(text.count("\n", 0, index) + 1, index - line_start + 1), text[index]


def _is_forbidden(code: int) -> bool:
    return (
        (code < 0x20 and code not in {0x09, 0x0A, 0x0D})
        or 0x7F <= code <= 0x9F
        or 0xD800 <= code <= 0xDFFF
        or 0xFFFE <= code <= 0xFFFF
    )


def _yaml_fault(source: Source, error: yaml.YAMLError) -> None:
    """Report a syntax error in PyYAML's own words, which don't depend on how PyYAML was built."""
    try:
        for _ in yaml.parse(source.text, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as own:
        error = own
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or error).partition("\n")[0]
    if "end of stream" in problem:  # what was never closed is where it opens
        mark = getattr(error, "context_mark", None) or mark
    at = Place(mark.line + 1, mark.column + 1) if mark is not None else None
    if "'\\t'" in problem:
        source.fault(at, "a tab can't be used for indentation", "use spaces")
        return
    context = getattr(error, "context", None)
    words = f"not valid YAML: {problem.lower().replace(chr(39), chr(96))}" + (f" {context}" if context else "")
    source.fault(at, words, _syntax_advice(problem))


def _syntax_advice(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "put a text that has `: ` in it in quotes"
    if "cannot start any token" in problem:
        return "put a text that begins with it in quotes"
    if "expected <block end>" in problem:
        return "check the indentation"
    return "check quotes, brackets and indentation near here"


class _Builder:
    """Builds the tree from events, with an explicit stack in place of recursion."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def build(self, events: Sequence[yaml.Event]) -> Node | None:
        """Return the root of the first document; a second one is a fault."""
        stack: list[tuple[yaml.Event, list[Node]]] = []
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                advice = "keep one document in each file"
                self._source.fault(_at(event), "a second YAML document begins here", advice)
                return root
            if isinstance(event, yaml.CollectionStartEvent):
                self._check_marks(event)
                stack.append((event, []))
                continue
            node = self._collection(*stack.pop()) if isinstance(event, yaml.CollectionEndEvent) else self._leaf(event)
            if node is not None and stack:
                stack[-1][1].append(node)
            elif node is not None:
                root = node
        if root is None or (isinstance(root, ScalarNode) and root.plain and root.value == ""):
            self._source.fault(None, "the file is empty", "write its keys as a mapping")
            return None
        return root

    def _leaf(self, event: yaml.Event) -> Node | None:
        """Return the node of a scalar or an alias; None for what only frames the document."""
        if isinstance(event, yaml.AliasEvent):
            name = shown(f"*{event.anchor}")
            self._source.fault(_at(event), f"alias {name} is not allowed", "write the value out")
            return Broken(_at(event))
        if not isinstance(event, yaml.ScalarEvent):
            return None
        if not self._check_marks(event):
            return Broken(_at(event))
        plain = not event.style  # libyaml says an empty style, PyYAML none
        return ScalarNode(str(event.value), plain, _at(event))

    def _check_marks(self, event: yaml.NodeEvent) -> bool:
        """Report an anchor or a tag; return whether there was none."""
        if event.anchor is not None:
            name = shown("&" + str(event.anchor))
            self._source.fault(_at(event), f"anchor {name} is not allowed", "write the value out where it is used")
            return False
        tag = getattr(event, "tag", None)
        if tag is not None:
            written = str(tag).replace("tag:yaml.org,2002:", "!!")
            self._source.fault(_at(event), f"tag {shown(written)} is not allowed", "write the plain value")
            return False
        return True

    def _collection(self, start: yaml.Event, children: list[Node]) -> Node:
        if isinstance(start, yaml.SequenceStartEvent):
            return SequenceNode(tuple(children), _at(start))
        entries: dict[str, tuple[ScalarNode, Node]] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, ScalarNode):
                if not isinstance(key, Broken):
                    self._source.fault(key.at, "a key must be a word", "write `name: value`")
                continue
            if key.plain and key.value == "<<":
                self._source.fault(key.at, "merge key `<<` is not allowed", "write the keys out")
            elif key.value in entries:
                first = entries[key.value][0].at.line
                self._source.fault(
                    key.at, f"key {shown(key.value)} stands twice", f"keep one; the first is in line {first}"
                )
            else:
                entries[key.value] = (key, value)
        return MappingNode(tuple(entries.values()), _at(start))
