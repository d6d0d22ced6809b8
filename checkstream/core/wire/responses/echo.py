"""What an answer repeats of its request: the caller's own words, which are no words of the model.

When an answer that the provider keeps is asked for again, its request is known by keyed digests alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping

from checkstream.core.terms import Extra
from checkstream.core.wire.answers.numbers import number
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.surface import Request

_FIELDS = frozenset({
    "instructions", "tools", "tool_choice", "text", "reasoning", "metadata", "prompt", "user", "safety_identifier",
    "prompt_cache_key", "previous_response_id", "conversation", "include", "context_management", "moderation", "stop",
})  # fmt: skip
_LISTED = "data"
"""Where the provider lists what an answer was asked with."""
_WORDS = frozenset({
    "function", "auto", "none", "required", "text", "medium", "low", "high", "minimal", "disabled", "default", "",
    "detailed", "concise", "json_schema", "json_object", "object", "string", "user", "custom",
})  # fmt: skip


class Echo:
    """The fields of one request that its answer may repeat."""

    def __init__(self, members: Mapping[str, object]) -> None:
        """Begin with the members of the request; nothing is looked at before it is asked for."""
        self._members = members
        self._said: dict[str, set[object]] = {}

    @property
    def memory(self) -> dict[str, set[object]]:
        """What was looked at of the request: there may be thousands of words."""
        return self._said

    def looking(self, name: str, value: object, *, long: bool) -> Generator[None, None, bool]:
        """Tell, in steps, whether a member of an answer says only what stands in the request's field of this name.

        Servers fill in what was left out, so that the values are compared, not the whole.

        Args:
            name: Of the member.
            value: Of the member.
            long: There may be more in it than is compared in one step.
        """
        if name not in _FIELDS:
            return False
        given = self._members.get(name)
        if not value or (not long and value == given):
            return True
        if name not in self._said:
            said = self._said[name] = set[object](_WORDS)
            for count, leaf in enumerate(_leaves(given), 1):
                said.add(leaf)
                if count % _LEAVES_A_STEP == 0:
                    yield
        for count, leaf in enumerate(_leaves(value), 1):
            if leaf not in self._said[name]:
                return False
            if count % _LEAVES_A_STEP == 0:
                yield
        return True


_DIGEST_BYTES = 8
_LEAST_CHARS, _MOST_CHARS = 3, 524_288
"""Of a text that is known again: in a shorter one nothing is found, and a longer one takes long to read."""
_LEAVES_A_STEP, _CHARS_A_STEP = 256, 65_536
_LAST = ("input", "tools")
"""Fields that may say very much: what others say is known before it."""


def sent(request: Request, named: frozenset[int], key: bytes, most: int) -> Generator[None, None, list[bytes]]:
    """Return, in steps, digests of the texts of a request that its provider may say again, as they were forwarded.

    Args:
        request: As it was forwarded.
        named: Places of texts with placeholders: their values come back where they are read again.
        key: Of the digests.
        most: Of so many texts; of the input those that stand last.
    """
    found: dict[bytes, None] = {}
    chars = 0
    for count, text in enumerate(_texts(request, named), 1):
        if text is not None and _LEAST_CHARS <= len(text) <= _MOST_CHARS:
            found[digest(text, key)] = None
            chars += len(text)
            if len(found) >= most:
                break
        if count % _LEAVES_A_STEP == 0 or chars > _CHARS_A_STEP:
            chars = 0
            yield
    return list(found)


def _texts(request: Request, named: frozenset[int]) -> Iterator[str | None]:
    """Yield the texts of a request, and None for whatever else there is."""
    yield from (text for place, text in request.forwarded.items() if place not in named)
    fields = (*sorted(_FIELDS - set(_LAST)), *_LAST)
    open_: list[Iterator[object]] = [iter([request.members[name] for name in fields if name in request.members])]
    while open_:
        for found in open_[-1]:
            if isinstance(found, dict):
                yield from found
                yield None
                open_.append(iter(found.values()))
                break
            if isinstance(found, list):
                yield None
                open_.append(reversed(found))
                break
            if isinstance(found, str):
                yield clean(found)
            else:
                yield number(found) if isinstance(found, int | float) and not _is_setting(found) else None
        else:
            open_.pop()


def digest(text: str, key: bytes) -> bytes:
    """Return the keyed digest by which a text is known again."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, key=key).digest()


class Sent:
    """What was sent with the request of an answer that is asked for again."""

    def __init__(self, key: bytes, known: frozenset[bytes]) -> None:
        """Take the digests, and their key."""
        self._key = key
        self._known = known

    def leaving_out(self, extras: list[Extra], *, listed: bool) -> Generator[None, None, None]:
        """Take out of what an answer says, in steps, what its caller has sent, where the provider says that again.

        Args:
            extras: What it says.
            listed: It is a list of what was sent.
        """
        if not self._known:
            return
        left: list[Extra] = []
        chars = 0
        for count, extra in enumerate(extras, 1):
            name = extra.path[1] if len(extra.path) > 1 and extra.path[0] == "response" else extra.path[0]
            repeats = name == _LISTED if listed else name in _FIELDS
            if not repeats or len(extra.text) > _MOST_CHARS or digest(extra.text, self._key) not in self._known:
                left.append(extra)
            chars += len(extra.text)
            if count % _LEAVES_A_STEP == 0 or chars > _CHARS_A_STEP:
                chars = 0
                yield
        extras[:] = left


_FIGURE = 100_000
"""Numbers below it that stand alone are settings. Several in a list may spell something."""


def _leaves(value: object) -> Iterator[object]:
    """Yield every string, number and member name in a value; of what is no word of anybody's, "".

    That are containers, and names and settings which servers fill in.
    """
    open_ = [iter([value])]
    while open_:
        for found in open_[-1]:
            if isinstance(found, dict | list):
                yield ""
                open_.append(_entries(found))
                break
            yield found
        else:
            open_.pop()


def _entries(value: dict[str, object] | list[object]) -> Iterator[object]:
    if isinstance(value, list):
        yield from value
        return
    for name, inner in value.items():
        yield "" if name in _NAMES else name
        yield "" if _is_setting(inner) else inner


def _is_setting(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, bool) or (isinstance(leaf, int | float) and abs(leaf) < _FIGURE)


_NAMES = frozenset({
    "type", "name", "description", "parameters", "strict", "format", "verbosity", "effort", "summary", "schema", "id",
    "version", "variables", "properties", "required", "additionalProperties", "generate_summary", "content", "role",
    "text", "defer_loading", "title", "items", "anyOf", "enum", "default",
})  # fmt: skip
