"""Which tools a request of OpenAI's shape offers the model, wherever it may name them, and which are allowed."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

from checkstream.core.wire.json_text.spans import Path

_TOOLS_A_STEP = 100
_FORMS = ("function", "custom")
_MODES = ("auto", "none", "required", "any")
"""Values of `tool_choice` and `function_call` that name no tool."""
_PLACES: tuple[Path, ...] = (("tools",), ("functions",), ("chat_template_kwargs", "tools"))


def tool_lists(body: Mapping[str, object]) -> Iterator[tuple[Path, object]]:
    """Yield every member of the body that offers tools, with its path.

    Templates get `chat_template_kwargs` in place of the fields of the same name, and some read a message's own tools.
    """
    for path in _PLACES:
        found: object = body
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if found is not None:
            yield path, found
    messages = body.get("messages")
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict) and message.get("tools") is not None:
            yield ("messages", position, "tools"), message["tools"]


def tool_names(tool: object) -> tuple[str, ...]:
    """Return each name that a reader could take for the tool's; built-in tools are called by their type."""
    if not isinstance(tool, dict):
        return ()
    inner = [tool[form] for form in _FORMS if isinstance(tool.get(form), dict)]
    given = [found.get("name") for found in (tool, *inner)]
    names = dict.fromkeys(name for name in given if isinstance(name, str))
    form = tool.get("type")
    if isinstance(form, str) and form not in _FORMS:
        names[form] = None
    return tuple(names)


def offered(body: Mapping[str, object]) -> Generator[None, None, tuple[str, ...]]:
    """Return, in steps, the names of all tools that the body offers, each once."""
    names: dict[str, None] = {}
    for _, tools in tool_lists(body):
        for count, tool in enumerate(tools if isinstance(tools, list) else (), 1):
            names.update(dict.fromkeys(tool_names(tool)))
            if count % _TOOLS_A_STEP == 0:
                yield
    return tuple(names)


def allowed(name: str, allow: Sequence[str]) -> bool:
    """Tell whether a tool of this name is on an allow-list of names and beginnings of names followed by `*`."""
    return any(name.startswith(own[:-1]) if own.endswith("*") else name == own for own in allow)


def tool_allowed(tool: object, allow: Sequence[str]) -> bool:
    """Tell whether an offered tool may stay: it has a name, and whatever it is called by is on the list."""
    names = tool_names(tool)
    return bool(names) and all(allowed(name, allow) for name in names)


def choice_allowed(choice: object, allow: Sequence[str]) -> bool:
    """Tell whether a `tool_choice` or `function_call` names only tools on the list; a mode word names none."""
    if isinstance(choice, str):
        return choice in _MODES or allowed(choice, allow)
    if not isinstance(choice, dict):
        return choice is None
    inner = choice.get("allowed_tools")
    group = inner if isinstance(inner, dict) else choice
    tools = group.get("tools")
    if isinstance(tools, list):
        return all(tool_allowed(tool, allow) for tool in tools)
    return tool_allowed(choice, allow)
