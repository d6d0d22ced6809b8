"""What an answer repeats of its request: the caller's own words, which are no words of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_FIELDS = frozenset({
    "instructions", "tools", "tool_choice", "text", "reasoning", "metadata", "prompt", "user", "safety_identifier",
    "prompt_cache_key", "previous_response_id", "conversation", "include", "context_management", "moderation", "stop",
})  # fmt: skip
_WORDS = frozenset({
    "function", "auto", "none", "required", "text", "medium", "low", "high", "minimal", "disabled", "default", "",
    "detailed", "concise", "json_schema", "json_object", "object", "string", "user", "custom",
})  # fmt: skip


class Echo:
    """The fields of one request that its answer may repeat."""

    def __init__(self, members: Mapping[str, object]) -> None:
        """Begin with the members of the request; nothing is looked at before it is asked for."""
        self._members = members
        self._said: dict[str, frozenset[object]] = {}

    def has(self, name: str, value: object) -> bool:
        """Tell whether a member of an answer says only what stands in the request's field of this name.

        Servers fill in what was left out, so that the values are compared, not the whole.
        """
        if name not in _FIELDS:
            return False
        given = self._members.get(name)
        if not value or value == given:
            return True
        if name not in self._said:
            self._said[name] = frozenset(_leaves(given)) | _WORDS
        said = self._said[name]
        return all(leaf in said for leaf in _leaves(value))


_FIGURE = 100_000
"""Numbers below it that stand alone are settings. Several in a list may spell something."""


def _leaves(value: object) -> Iterator[object]:
    """Yield every string, number and member name in a value; a name that servers fill in is no word of anybody's."""
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            pending += (inner for inner in found.values() if not _is_setting(inner))
            yield from (name for name in found if name not in _NAMES)
        elif isinstance(found, list):
            pending += found
        else:
            yield found


def _is_setting(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, bool) or (isinstance(leaf, int | float) and abs(leaf) < _FIGURE)


_NAMES = frozenset({
    "type", "name", "description", "parameters", "strict", "format", "verbosity", "effort", "summary", "schema", "id",
    "version", "variables", "properties", "required", "additionalProperties", "generate_summary", "content", "role",
    "text", "defer_loading", "title", "items", "anyOf", "enum", "default",
})  # fmt: skip
