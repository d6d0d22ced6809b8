"""The form in which a program is kept and sent: canonical JSON with a version, named by its hash.

`stored` writes it, `load` reads it back as hostile input: nothing of a program runs before its numbers point at what
is there, its code has been verified to stay within its stack and to end, and its patterns have been compiled.

    {"format": "checkstream.program.4", "packs": [...], "signals": [...], "rules": [...], "constants": [[type, text]],
     "variables": [...], "functions": [...], "code": [[op, argument], ...], "entries": [...]}
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.core.cel.code import Code, Instruction
from checkstream.core.cel.functions import FUNCTIONS
from checkstream.core.cel.values import Value
from checkstream.core.cel.verify import verify
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.policy.constants import read_constant, written_constant
from checkstream.core.policy.link import (
    bare_of,
    loads_of,
    recalled_of,
    recalls_of,
    recent_of,
    remembered_of,
    scopes_of,
    steady_of,
    turns_of,
    worded_of,
)
from checkstream.core.policy.naming import placeholders_of, restores_of
from checkstream.core.policy.program import ALWAYS, Entry, Program, RecitedTexts, RuleMeta, Signal, Variable
from checkstream.core.policy.soundness import Soundness, check_signals
from checkstream.core.policy.variables import CONVERSATION_FIELDS, REQUEST_FIELDS, STREAM_FIELDS
from checkstream.errors import CheckstreamError, ProgramInvalid

MAX_BYTES = 64 * 1024 * 1024
"""Of a stored program; what the compiler makes of the largest policy file stays far below."""
_FIELDS: Mapping[str, Collection[str]] = {
    "request": REQUEST_FIELDS,
    "given": REQUEST_FIELDS,
    "stream": STREAM_FIELDS,
    "conversation": CONVERSATION_FIELDS,
}
"""Kind of a variable that has a name -> those there are."""
_FUNCTION_NAMES = tuple(function.key for function in FUNCTIONS)


class Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program as plain data."""

    format: Literal["checkstream.program.4"] = "checkstream.program.4"
    packs: tuple[str, ...]
    signals: tuple[Signal, ...]
    rules: tuple[RuleMeta, ...]
    constants: tuple[tuple[str, str], ...]
    """Type and text of each."""
    variables: tuple[Variable, ...]
    functions: tuple[str, ...]
    """Names of the functions that code calls by number."""
    code: tuple[tuple[Annotated[int, Meta(ge=0, le=255)], Annotated[int, Meta(ge=0, le=2**31)]], ...]
    entries: tuple[Entry, ...]


def assemble(
    *,
    signals: tuple[Signal, ...],
    rules: tuple[RuleMeta, ...],
    constants: tuple[Value, ...],
    variables: tuple[Variable, ...],
    code: tuple[Instruction, ...],
    entries: tuple[Entry, ...],
    packs: tuple[str, ...],
    texts: Mapping[str, Fingerprints] = MappingProxyType({}),
) -> Program:
    """Link the parts of a program; `texts` are those that its signals name, by digest.

    Raises:
        PatternError: the patterns of one scope are too much together.
    """
    placeholders = placeholders_of(signals, rules)
    recalls = recalls_of(code, variables, rules)
    bare, recalled = bare_of(rules, entries), recalled_of(code, variables, rules)
    scopes = scopes_of(
        signals,
        rules,
        entries,
        variables,
        placeholders=placeholders,
        recalled=frozenset().union(*recalled.values()),
        texts=texts,
    )
    program = Program(
        signals=signals,
        rules=rules,
        constants=constants,
        variables=variables,
        code=code,
        entries=entries,
        packs=packs,
        hash="",
        scopes=scopes,
        recalls=frozenset().union(*recalls.values()),
        recalling=frozenset(recalls),
        recent=recent_of(scopes, signals, variables),
        bare=bare,
        late=frozenset(entry.rule for entry in bare if entry.rule in recalled),
        loads=loads_of(variables),
        remembered=remembered_of(signals),
        placeholders=placeholders,
        restores=restores_of(signals, rules),
        worded=worded_of(signals),
        turns=turns_of(rules),
        steady=steady_of(code, variables, _starts(rules, entries)),
    )
    return msgspec.structs.replace(program, hash=hashlib.sha256(stored(program)).hexdigest())


def stored(program: Program) -> bytes:
    """Return the canonical form; its SHA-256 is `program.hash`."""
    parts = Stored(
        packs=program.packs,
        signals=program.signals,
        rules=program.rules,
        constants=tuple(written_constant(constant) for constant in program.constants),
        variables=program.variables,
        functions=_FUNCTION_NAMES,
        code=program.code,
        entries=program.entries,
    )
    return msgspec.json.encode(parts, order="deterministic")


def load(data: bytes, expected: str | None = None, texts: Mapping[str, Fingerprints] = MappingProxyType({})) -> Program:
    """Read a stored program, trusting nothing of it.

    Args:
        data: The canonical form.
        expected: The hash that it must have, hex; None: any.
        texts: Fingerprints that it may name, by digest.

    Raises:
        ProgramInvalid: it is not a program that `stored` has written, or not the expected one, or names other texts.
    """
    if len(data) > MAX_BYTES:
        raise ProgramInvalid(f"the program has {len(data)} bytes, the limit is {MAX_BYTES}")
    found = hashlib.sha256(data).hexdigest()
    if expected is not None and found != expected:
        raise ProgramInvalid(f"the program has the hash `{found}`, not `{expected}`; fetch it again")
    try:
        parts = msgspec.json.decode(data, type=Stored)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProgramInvalid(f"not a stored program of this version: {error}; compile the policy again") from error
    if msgspec.json.encode(parts, order="deterministic") != data:
        raise ProgramInvalid("the program is not in canonical form; compile the policy again")
    if parts.functions != _FUNCTION_NAMES:
        raise ProgramInvalid("the program calls functions of another version; compile the policy again")
    _check_numbers(parts)
    constants = tuple(read_constant(kind, text) for kind, text in parts.constants)
    try:
        titles = tuple(variable.title for variable in parts.variables)
        verify(Code(parts.code, constants, titles), _starts(parts.rules, parts.entries))
        _check_rules(parts)
        _check_texts(parts.signals, texts)
        return assemble(
            signals=parts.signals,
            rules=parts.rules,
            constants=constants,
            variables=parts.variables,
            code=parts.code,
            entries=parts.entries,
            packs=parts.packs,
            texts=texts,
        )
    except CheckstreamError as error:
        raise ProgramInvalid(f"the program can't be run: {str(error).partition(chr(10))[0]}") from error


def _check_texts(signals: Sequence[Signal], texts: Mapping[str, Fingerprints]) -> None:
    """Refuse recitals of texts that are not there.

    Raises:
        ProgramInvalid: one is.
    """
    for signal in signals:
        if not isinstance(signal.texts, RecitedTexts):
            continue
        known = texts.get(signal.texts.digest)
        if known is None:
            said = f"`{signal.name[:60]}` with the digest `{signal.texts.digest}`"
            raise ProgramInvalid(f"the program looks for recitals of {said}; give that file, too")
        if signal.texts.words < known.least:
            raise ProgramInvalid(f"`{signal.name[:60]}` finds no recitals of {signal.texts.words} words")


def _starts(rules: Sequence[RuleMeta], entries: Sequence[Entry]) -> list[int]:
    starts = {entry.start for entry in entries if entry.start != ALWAYS}
    for rule in rules:
        starts.update(rule.condition_starts)
        if rule.enabled_start is not None:
            starts.add(rule.enabled_start)
    return sorted(starts)


def _check_numbers(parts: Stored) -> None:
    """Refuse numbers and names that point at nothing.

    Raises:
        ProgramInvalid: one does.
    """
    signals, ids = len(parts.signals), {rule.id for rule in parts.rules}
    for variable in parts.variables:
        bare = variable.kind in {"context", "request", "given", "stream", "conversation", "fired"}
        known = _FIELDS.get(variable.kind, ids if variable.kind == "fired" else ("",))
        if variable.name not in known or (variable.signal != -1 if bare else not 0 <= variable.signal < signals):
            raise ProgramInvalid(f"the variable `{variable.title[:60]}` reads nothing that there is")
    for entry in parts.entries:
        if not 0 <= entry.rule < len(parts.rules) or not -1 <= entry.signal < signals or entry.start < ALWAYS:
            raise ProgramInvalid("an entry points at no rule, signal or code")
    if len(ids) < len(parts.rules):
        raise ProgramInvalid("two rules have one id")
    for rule in parts.rules:
        if f"{rule.pack}@{rule.version}" not in parts.packs:
            raise ProgramInvalid(f"rule `{rule.id}` is of a pack that the program does not name")


def _check_rules(parts: Stored) -> None:
    """Refuse rules that can't be carried out, once the code is known to be safe.

    Raises:
        ProgramInvalid: one can't.
    """
    check_signals(parts.signals)
    rules = Soundness(parts.signals, parts.entries, parts.code, parts.variables)
    for number, rule in enumerate(parts.rules):
        rules.check(number, rule)
