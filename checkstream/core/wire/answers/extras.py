"""Reads what an answer says outside of its text channels: every string, number and member name is text somewhere.

Callers may join strings over events, in any field but those of the protocol's words. Fields that servers are known to
send are told from the others by what their names and numbers say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from typing import Literal

from checkstream.core.steps import Steps, Walk, done
from checkstream.core.terms import Extra
from checkstream.core.wire.answers.numbers import Lists, is_drawn, number
from checkstream.core.wire.json_text.lists import ANYWHERE, LEAST_NAMES, is_wordy, spelled_by, telling, told_by
from checkstream.core.wire.json_text.spans import NAME, Path
from checkstream.core.wire.json_text.strings import clean, halves_of
from checkstream.core.wire.sealed import SEALED, is_sealed
from checkstream.core.wire.text_files import is_media
from checkstream.errors import WireError

CONSTANTS = frozenset({
    "assistant", "chat.completion", "chat.completion.chunk", "text_completion", "stop", "length", "tool_calls",
    "function_call", "content_filter", "function", "custom", "text", "thinking", "refusal", "default", "auto", "safe",
    "low", "medium", "high", "STOP", "tool_use", "end_turn", "eos", "error", "reasoning.text", "reasoning.summary",
    "user", "system", "developer", "tool", "scale", "flex", "priority", "standard",
    "message", "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop", "ping", "text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta",
    "max_tokens", "stop_sequence", "pause_turn", "model_context_window_exceeded", "redacted_thinking",
    "server_tool_use", "mcp_tool_use", "direct", "char_location", "page_location", "content_block_location",
    "web_search_result_location", "search_result_location", "web_search_result", "web_search_tool_result",
    "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result", "mcp_tool_result", "document", "batch", "overloaded_error", "api_error",
})  # fmt: skip
"""Words of the protocol, which say nothing by themselves, wherever they stand."""
_LONGEST_CONSTANT = max(map(len, CONSTANTS))

NAMES = frozenset({
    "id", "object", "created", "model", "choices", "index", "delta", "message", "usage", "error", "type", "code",
    "param",
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details",
    "cached_tokens", "audio_tokens", "reasoning_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens",
    "text_tokens", "image_tokens", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens", "queue_time", "prompt_time",
    "completion_time", "total_time", "cost", "cost_details", "is_byok", "upstream_inference_cost",
    "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_n", "predicted_ms",
    "predicted_per_token_ms", "predicted_per_second", "draft_n", "draft_n_accepted",
    "hate", "self_harm", "sexual", "violence", "jailbreak", "profanity", "protected_material_text",
    "protected_material_code", "filtered", "detected", "severity", "prompt_index", "content_filter_results",
    "content_filter_result", "check_offset", "start_offset", "end_offset", "data", "url", "text", "title", "name",
    "arguments", "input", "format", "signature", "transcript", "expires_at", "annotations", "citations", "content",
    "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation",
    "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "output_tokens_details", "service_tier", "speed",
    "server_tool_use", "web_search_requests", "web_fetch_requests", "inference_geo", "stop_details", "category",
    "explanation", "container", "context_management", "applied_edits", "citation", "cited_text", "document_index",
    "document_title", "file_id", "start_char_index", "end_char_index", "start_page_number", "end_page_number",
    "start_block_index", "end_block_index", "search_result_index", "source", "encrypted_index", "encrypted_content",
    "page_age", "tool_use_id", "caller", "partial_json", "thinking", "request_id",
})  # fmt: skip
"""Names of members that servers in common use send."""

PADDING, PAD = "obfuscation", "x"
"""The field of padding, and what ours is made of: what looks like chance could spell something."""
_PLAIN_NUMBER = 10**11
"""Numbers below it, in fields that are known to count or to measure, are what they seem: moments are in seconds."""
_BINARY_NAMES = frozenset({
    "data", "b64_json", "signature", "thought_signature", "encrypted_content", "url",
})  # fmt: skip
"""Where bytes stand ..."""
_SOUND = ("audio", "data")
"""... of any form; at the others those of a picture, a sound or a film, by how they begin. What else looks like bytes
is read as it stands."""
_IDS = ("id", "seed", "hash", "nonce", "fingerprint", "cursor", "timestamp", "_ns")
"""How names of numbers end that tell one thing from another."""
_MEDIA = ("image/", "audio/", "video/", "application/", "text/", "font/", "model/")
_MEDIA_BYTES = b"abcdefghijklmnopqrstuvwxyz0123456789/+.-;=_"
_MOST_MEDIA, _MOST_FIGURES = 80, 4
"""Characters of the type that a `data:` URL names, and figures among them: more would say something else."""
_LEAST_BINARY = 256
"""Less could be a word or a number in an alphabet that base64 has, too."""
_SCHEME, _MARK = "data:", ";base64,"
_FILE_CHARS_A_STEP = 262_144
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
MOST_LEVELS = 64
"""Of containers within containers: the places of what stands in more would be dearer than what stands there."""
_SPACES = [ord(" ")] * 4
"""Make a list that says something of any."""
_A_STEP = 256
"""Values that are looked at ..."""
_VALUES_A_CONTAINER, _LEVELS_A_VALUE, _CHARS_A_VALUE = 3, 8, 4096
"""... of which a container counts for more, and each within many others, and a long name or text."""


class Extras:
    """Collects what one event or one body says besides its texts."""

    def __init__(self, most: int, *, whole: bool = False, steps: bool = False) -> None:
        """Start with nothing.

        Args:
            most: Refuse more than so many.
            whole: It is all of an answer.
            steps: Put off what stands in containers (see `taking`).
        """
        self._most = most
        self._whole = whole
        self._steps = steps
        self._later: deque[Walk] = deque()
        self._looked = 0
        """At so many values since the last step."""
        self.found: list[Extra] = []
        self.binary: list[Path] = []
        """Where bytes stand that are spelled as text, which can't be read."""
        self.sealed: dict[str, None] = {}
        """Names of what servers have encrypted for themselves."""
        self.halves: dict[Path, tuple[str, str]] = {}
        """Path of a text that halves of characters stand in -> those at its ends."""

    def known(
        self,
        choice: int,
        value: object,
        path: Path,
        place: Path | None = None,
        again: Literal["read", "first", "never"] = "read",
        *,
        root: int = 0,
    ) -> None:
        """Take a value that stands in a field which servers are known to send; see `Extra` for the arguments.

        `root`: so many parts of the path lead to that field; 0: all do.
        """
        to = root or len(path)
        if isinstance(value, str):
            word = is_constant(value)
            if value and not (word and again == "first"):
                said = self._clean(value, path)
                self._put(Extra(choice, said, path, joins=True, place=place, again=again, word=word, known=to))
        elif isinstance(value, int | float):
            if not _is_plain(value):
                self._number(choice, value, path, known=to)
        elif value:
            self._take(choice, value, path, place, known=True)

    def unknown(self, choice: int, value: object, path: Path, place: Path | None = None) -> None:
        """Take a value that stands in a field which nobody knows; its name as well."""
        name = path[-1]
        if isinstance(name, str) and name not in NAMES:
            self._put(Extra(choice, clean(name), (*path, NAME), place=None if place is None else (*place, NAME)))
        if isinstance(value, list | dict) and value:
            self._take(choice, value, path, place, known=False)
        else:
            self._leaf(choice, value, path, place)

    def _put(self, extra: Extra) -> None:
        if extra.path[-1] in SEALED and is_sealed(extra.text):
            self.sealed[name_of(extra.path)] = None
            return
        self._look_whether_many(1)
        self.found.append(extra)

    def _look_whether_many(self, more: int) -> None:
        if len(self.found) + more > self._most:
            raise WireError(f"the event or body says something in more than {self._most} fields; check the upstream")

    def _take(self, choice: int, value: object, path: Path, place: Path | None, *, known: bool) -> None:
        """Take a container: at once, or with all that is put off."""
        walk = self._walking(choice, value, path, place, known=known)
        if self._steps:
            self._later.append(walk)
        else:
            done(walk)

    def taking(self) -> Steps:
        """Take what was put off, in steps."""
        while self._later:
            yield from self._later.popleft()

    def _walking(self, choice: int, value: object, path: Path, place: Path | None, *, known: bool) -> Walk:
        """Take what stands in a container, in document order; `known`: in a field that servers are known to send."""
        lists = None if known else Lists()
        words: list[str] = []
        named: list[str] = []
        open_: list[Iterator[tuple[object, Path, Path | None]]] = [iter([(value, path, place)])]
        settled = MOST_LEVELS + 2
        """So many are open where no list is a text that has others in it."""
        while open_:
            for inner, at, to in open_[-1]:
                said = len(inner) if isinstance(inner, str) else 0
                self._looked += 1 + len(at) // _LEVELS_A_VALUE + said // _CHARS_A_VALUE
                if self._looked >= _A_STEP:
                    self._looked = 0
                    yield
                if not isinstance(inner, list | dict):
                    self._leaf(choice, inner, at, to, root=len(path) if known else 0)
                    if isinstance(inner, str) and is_wordy(inner) and inner not in CONSTANTS:
                        (named if at[-1] == NAME else words).append(inner)
                    continue
                self._looked += _VALUES_A_CONTAINER
                flat = len(open_) >= settled
                if inner and not (yield from self._is_text(choice, inner, at, lists, flat=flat)):
                    open_.append(_members(inner, at, to))
                    if lists is not None and lists.settled and not flat:
                        settled = len(open_)
                    break
            else:
                open_.pop()
                settled = settled if len(open_) >= settled else MOST_LEVELS + 2
        if lists is not None:
            self._put_words(choice, path, words, named)

    def _put_words(self, choice: int, path: Path, words: list[str], named: list[str]) -> None:
        """Take the words of one value, and those that are names in it, as what they say together."""
        for several in (words, named if len(named) >= LEAST_NAMES else []):
            if told := told_by(several):
                self._put(Extra(choice, told, path, words=tuple(several)))

    def _is_text(
        self, choice: int, value: list[object] | dict[str, object], path: Path, lists: Lists | None, *, flat: bool
    ) -> Generator[None, None, bool]:
        """Take a container as the text that it spells; tell whether it is many numbers, and says nothing else."""
        yield from self._bytes(choice, value, path)
        if lists is None:
            return False
        if isinstance(value, list):
            figures = yield from lists.text(value, drawn=_draws(path), trees=self._whole, flat=flat)
            if figures is not None:
                if figures:
                    self._put(Extra(choice, figures, path))
                return True
        else:
            lists.settled = False
        if not self._whole:
            self._look_whether_many(len(value))
        return False

    def _leaf(self, choice: int, value: object, path: Path, place: Path | None, *, root: int = 0) -> None:
        """Take a value which is no container; `root`: as `known` has it, 0 where nobody knows the field."""
        if root and path[-1] != NAME:
            if not _is_plain(value):
                self.known(choice, value, path, place, root=root)
        elif isinstance(value, str):
            self._string(choice, value, path, place)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(choice, value, path)

    def _string(self, choice: int, text: str, path: Path, place: Path | None) -> None:
        if path[-1] == NAME:
            if text not in NAMES:
                self._put(Extra(choice, clean(text), path, place=place))
        elif path[-1] in _BINARY_NAMES and _may_be_binary(text) and (path[-2:] == _SOUND or is_media(text)):
            file = self._file(choice, text, path, place)
            if self._steps:
                self._later.append(file)
            else:
                done(file)
        elif text:
            self._text(choice, text, path, place)

    def _file(self, choice: int, text: str, path: Path, place: Path | None) -> Walk:
        """Take a string that begins as a file does: as bytes, or as the text that it is."""
        if (yield from looking_whether_binary(text)):
            self.binary.append(path)
        else:
            self._text(choice, text, path, place)

    def _text(self, choice: int, text: str, path: Path, place: Path | None) -> None:
        said = self._clean(text, path)
        self._put(Extra(choice, said, path, joins=True, place=place, word=is_constant(text)))

    def _clean(self, text: str, path: Path) -> str:
        said = clean(text)
        if said is not text:
            self.halves[path] = halves_of(text)
        return said

    def _bytes(self, choice: int, value: object, path: Path) -> Steps:
        """Take a list of numbers as the text that it spells; callers may put such lists together, however short."""
        spelled = yield from telling(value)
        if spelled is not None:
            self._put(Extra(choice, spelled, path, joins=True))
        elif isinstance(value, list) and len(value) < len(_SPACES):
            short = spelled_by([*value, *_SPACES])
            if short is not None and short.isprintable():
                self._put(Extra(choice, short[: -len(_SPACES)], path, joins=True))

    def _number(self, choice: int, value: float, path: Path, *, known: int = 0) -> None:
        if not (is_drawn(value) and _draws(path)):
            self._put(Extra(choice, number(value), path, known=known))


def is_known(extra: Extra) -> bool:
    """Tell whether servers are known to send what stands where this does: a known field, and known names within it."""
    return extra.known > 0 and all(isinstance(part, int) or part in NAMES for part in extra.path[extra.known :])


def is_constant(text: str) -> bool:
    """Tell whether a text is a word of the protocol; a long one is not hashed for that, which is one step."""
    return len(text) <= _LONGEST_CONSTANT and text in CONSTANTS


def _draws(path: Path) -> bool:
    """Tell whether a member is called like what machines draw, such as ids."""
    name = next((str(name).casefold() for name in reversed(path) if isinstance(name, str)), "")
    return name.endswith(_IDS)


def name_of(path: Path) -> str:
    """Return where a member stands, as people write it."""
    return ".".join(name for name in path if isinstance(name, str) and name != "choices")


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _PLAIN_NUMBER


def _may_be_binary(text: str) -> bool:
    return len(text) >= _LEAST_BINARY and text.isascii()


def looking_whether_binary(text: str) -> Generator[None, None, bool]:
    """Tell, in steps, whether a string is bytes in base64, by itself or in a `data:` URL."""
    start = 0
    if text.startswith(_SCHEME):
        at = text.find(_MARK, len(_SCHEME), len(_SCHEME) + _MOST_MEDIA + len(_MARK))
        if at < 0 or not _is_media_type(text[len(_SCHEME) : at]):
            return False
        start = at + len(_MARK)
    if len(text) - start < _LEAST_BINARY:
        return False
    for at in range(start, len(text), _FILE_CHARS_A_STEP):
        if not text.isascii() or text[at : at + _FILE_CHARS_A_STEP].encode().translate(None, _BASE64):
            return False
        if len(text) > at + _FILE_CHARS_A_STEP:
            yield
    return True


def _is_media_type(text: str) -> bool:
    if len(text) > _MOST_MEDIA or text != text.lower() or not text.startswith(_MEDIA):
        return not text
    figures = sum(map(str.isdecimal, text))
    return figures <= _MOST_FIGURES and not text.encode().translate(None, _MEDIA_BYTES)


def _members(value: object, path: Path, place: Path | None) -> Iterator[tuple[object, Path, Path | None]]:
    """Yield the entries of a container with their paths and places, a member's name before its value.

    Raises:
        WireError: it is within too many others.
    """
    if len(path) > MOST_LEVELS:
        raise WireError(f"the event or body is nested in more than {MOST_LEVELS} levels; check the upstream")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, (*path, name, NAME), None if place is None else (*place, name, NAME)
            yield inner, (*path, name), None if place is None else (*place, name)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            index = inner.get("index") if isinstance(inner, dict) else None
            at = index if type(index) is int else ANYWHERE
            yield inner, (*path, i), (*(path if place is None else place), at)
