"""The events and items of the Responses API: which text stands where, and what is said of it again.

A text of an answer is named by its part: the number of its item in the output, and where in the item it stands.
Source: OpenAI API reference, "Responses" and "Streaming events"; the types of its Python SDK; what vLLM adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from checkstream.core.wire.json_text.spans import Path


class Form(msgspec.Struct, frozen=True):
    """One kind of text that is streamed in pieces."""

    channel: str
    place: Path
    """Where the text stands in its item; of a list the entry is the event's member that is named so."""
    free: bool = False
    """What a tool is given is no JSON."""
    steps: tuple[str, ...] = ("delta", "done")
    """What the types of its events end with."""
    ahead: bool = False
    """It is a part of what a tool is given, all of which its item tells at the end."""

    @property
    def member(self) -> str:
        """The member that has all of the text, in the event that ends it, and in the item."""
        return str(self.place[-1])


_ARGUMENTS = Form("tool_arguments", ("arguments",))
FORMS: Mapping[str, Form] = MappingProxyType({
    "response.output_text": Form("content", ("content", "content_index", "text")),
    "response.refusal": Form("refusal", ("content", "content_index", "refusal")),
    "response.reasoning_text": Form("reasoning", ("content", "content_index", "text")),
    "response.reasoning_summary_text": Form("reasoning", ("summary", "summary_index", "text")),
    "response.function_call_arguments": _ARGUMENTS,
    "response.mcp_call_arguments": _ARGUMENTS,
    "response.custom_tool_call_input": Form("tool_arguments", ("input",), free=True),
    "response.code_interpreter_call_code": Form("tool_arguments", ("code",), free=True),
    "response.shell_call_command": Form(
        "tool_arguments", ("commands", "command_index", "command"), free=True, steps=("added", "delta", "done"),
        ahead=True,
    ),
    "response.apply_patch_call_operation_diff": Form("tool_arguments", ("operation", "diff"), free=True, ahead=True),
})  # fmt: skip
"""Beginning of the types of the events that say a text -> what it is."""
PARTS: Mapping[str, str] = MappingProxyType({
    "response.content_part": "content", "response.reasoning_part": "content",
    "response.reasoning_summary_part": "summary",
})  # fmt: skip
"""The same of the events that say when a part of an item begins and is over -> the list that it is in."""
INDEX: Mapping[str, str] = MappingProxyType({"content": "content_index", "summary": "summary_index"})
"""List of parts -> the member of an event that numbers them."""
LISTS: Mapping[str, str] = MappingProxyType({**INDEX, "commands": "command_index"})
"""The same of all lists in which texts stand."""
LIFE = frozenset({"response.created", "response.queued", "response.in_progress"})
LAST: Mapping[str, str | None] = MappingProxyType({
    "response.completed": None, "response.incomplete": "other", "response.failed": "other",
    "response.cancelled": "other",
})  # fmt: skip
"""Last words of an answer -> why something is missing of it; of one that is incomplete it is said there."""
ITEM = "response.output_item"
ANNOTATION = "response.output_text.annotation.added"
SNAPSHOTS = frozenset({
    *(f"{name}.{step}" for name, form in FORMS.items() for step in form.steps if step != "delta"),
    *(f"{name}.{end}" for name in (*PARTS, ITEM) for end in ("added", "done")), *LIFE, *LAST, ANNOTATION,
})  # fmt: skip
"""Events that say all of something at once."""
_STEPS = {
    "file_search_call": ("in_progress", "searching", "completed"),
    "web_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "compaction": ("compacting",),
    "audio": ("delta", "done"), "audio.transcript": ("delta", "done"),
    "shell_call_output_content": ("delta", "done"),
}  # fmt: skip
EVENTS = frozenset({
    *(f"{name}.{step}" for name, form in FORMS.items() for step in form.steps),
    *(f"{name}.{end}" for name in (*PARTS, ITEM) for end in ("added", "done")),
    *LIFE, *LAST, ANNOTATION, *(f"response.{name}.{end}" for name, ends in _STEPS.items() for end in ends),
    "error", "keepalive",
})  # fmt: skip

_NAMED = (("name", "tool_name", False), ("arguments", "tool_arguments", False))
_ACTION = (("action", "tool_arguments", False), ("actions", "tool_arguments", False))
CALLS: Mapping[str, tuple[tuple[str, str, bool], ...]] = MappingProxyType({
    "function_call": _NAMED,
    "mcp_call": _NAMED,
    "mcp_approval_request": _NAMED,
    "custom_tool_call": (("name", "tool_name", False), ("input", "tool_arguments", True)),
    "tool_search_call": (("arguments", "tool_arguments", False),),
    "code_interpreter_call": (("code", "tool_arguments", True),),
    "program": (("code", "tool_arguments", True),),
    "computer_call": _ACTION,
    "local_shell_call": _ACTION,
    "shell_call": _ACTION,
    "apply_patch_call": (("operation", "tool_arguments", False),),
})  # fmt: skip
"""Types of items that call a tool -> their members that say how: name, channel, whether it is no JSON."""
SERVED = frozenset({"mcp_call", "code_interpreter_call"})
"""Those that the provider makes itself: it goes on with what came of them."""
TOOLS: Mapping[str, str] = MappingProxyType({
    "tool_search_call": "tool_search", "code_interpreter_call": "code_interpreter", "program": "program",
    "computer_call": "computer", "local_shell_call": "local_shell", "shell_call": "shell",
    "apply_patch_call": "apply_patch",
})  # fmt: skip
"""Of those that have no name, what is called."""
CAME_OF_IT = ("output", "result", "logs")
"""In the type of an event: it tells what came of a call."""
ITEMS = frozenset(CALLS) | {
    "message", "reasoning", "file_search_call", "web_search_call", "image_generation_call", "mcp_list_tools",
    "mcp_approval_response", "compaction", "function_call_output", "custom_tool_call_output", "computer_call_output",
    "local_shell_call_output", "shell_call_output", "apply_patch_call_output", "tool_search_output", "program_output",
    "additional_tools", "item_reference", "configuration_update", "compaction_trigger",
}  # fmt: skip
"""Types of items, of an answer or of a request."""
PART_CHANNELS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "output_text": ("content", "text"), "refusal": ("refusal", "refusal"), "reasoning_text": ("reasoning", "text"),
    "summary_text": ("reasoning", "text"), "text": ("content", "text"),
})  # fmt: skip
"""Type of a part of an item -> channel of its text, and the member that has it."""
STATUSES = frozenset({
    "in_progress", "completed", "incomplete", "failed", "cancelled", "queued", "searching", "generating", "calling",
    "interpreting",
})  # fmt: skip
