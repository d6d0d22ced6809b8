"""Carries a `Shaping` into the JSON of a request of the Messages API by splicing: all else stays byte for byte.

INVARIANT: no field that the caller sends can undo what is put here; what could is taken out with it, and with it every
field that nobody knows.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import msgspec

from checkstream.core.wire.anthropic.fields import THOUGHTS
from checkstream.core.wire.anthropic.tools import choice_allowed, servers_allowed, tool_allowed
from checkstream.core.wire.json_text.spans import Path, Splice
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.requests.edits import editing_request, request_places
from checkstream.core.wire.requests.fields import OWN_FIELDS
from checkstream.core.wire.requests.shaping import Shaped
from checkstream.core.wire.requests.undoing import wishes_of
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import WireError

_FRAME = ("type", "tool_use_id", "is_error", "cache_control", "content")
"""What a tool's result keeps when what it says is taken out: the call before it wants its answer."""
_BLOCK = len(("messages", 0, "content", 0))


class ShapedMessages(Shaped):
    """Collects what is put in, replaced and taken out of one body of the Messages API."""

    def take_out(self, path: Path, note: str) -> None:
        """Put a note in the place of what a tool has said, or of a document; leave out what is none of these."""
        match path:
            case ("messages", int()):
                for name in self.document.entries((*path, "content")):
                    self.take_out((*path, "content", name), note)
            case ("messages", int(), "content", int()):
                self._replace_block(path, note)
            case _:
                self.remove(path[:-1], path[-1:])

    def _replace_block(self, path: Path, note: str) -> None:
        there, span = self.document.entries(path), self.document.span(path)
        if span is None:
            return
        content = self._content_in_place(path, note)
        if "tool_use_id" not in there or content is None:
            self.splices.append(Splice(*span, f'{{"type":"text","text":{quote(note)}}}'))
        else:
            self.remove(path, [name for name in there if name not in _FRAME])
            self.set_member(path, "content", content)

    def _content_in_place(self, path: Path, note: str) -> str | None:
        """Return the JSON of what a result says in place of its own; None: the block is no result.

        The API refuses a history in which a call of the provider's own tools has no result, and such a result has
        no place for a note: it says that the tool was not available.
        """
        span = self.document.span((*path, "type"))
        form = "" if span is None else self.document.text[span[0] + 1 : span[1] - 1]
        if form in ("tool_result", "mcp_tool_result"):
            return quote(note)
        return f'{{"type":"{form}_error","error_code":"unavailable"}}' if form.endswith("_tool_result") else None


def writing_request(
    request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
) -> Generator[None, None, bytes]:
    """Return, in steps, the body with texts replaced, shaped as policies want, without what is ours.

    Raises:
        WireError: the request was not read by this surface, or can't be shaped so.
    """
    edited = _edited_thinking(request, texts)
    begins_anew = _lacks_thought(request.members, edited)
    if shaping is None and not edited and not begins_anew:
        return (yield from editing_request(request, texts, OWN_FIELDS))
    document = yield from request_places(request)
    shaped = ShapedMessages(request, document, texts)
    _leave_out(shaped, edited)
    if begins_anew:
        shaped.remove((), ("thinking",))
    if shaping is not None:
        _shape(shaped, shaping)
    return (yield from shaped.writing())


def _edited_thinking(request: Request, texts: Mapping[int, str]) -> list[Path]:
    """Return the blocks of a request's history in whose thinking anything is edited: the API takes none of these."""
    deltas = request.unit.deltas
    edited = (i for i in sorted(texts) if i in request.signed and texts[i] != deltas[i].text)
    return list(dict.fromkeys(deltas[i].path[:_BLOCK] for i in edited))


def _lacks_thought(body: Mapping[str, object], doomed: Sequence[Path]) -> bool:
    """Tell whether the API would refuse the request, since no thought is left of the turn in which it calls tools.

    A model that is to think (`enabled`) wants the thought back with which its turn has begun, as long as it gets
    results; a rule may have taken it out, of the answer or of this request. Without thinking the agent goes on. Where
    any thought of the turn is left, the API wants it to be `enabled`. `adaptive` thinking wants none.

    Source: Anthropic, "Building with extended thinking" (preserving thinking blocks); BerriAI/litellm#18926.
    """
    thinking, messages = body.get("thinking"), body.get("messages")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled" or not isinstance(messages, list):
        return False
    gone, calls = frozenset(doomed), False
    for at in range(len(messages) - 1, -1, -1):
        role, blocks = _said(messages[at])
        if role == "assistant" and at < len(messages) - 1:
            calls = calls or "tool_use" in blocks
            if any(form in THOUGHTS and ("messages", at, "content", i) not in gone for i, form in enumerate(blocks)):
                return False
        elif role != "user" or "tool_result" not in blocks:
            break  # the turn begins behind it
    return calls


def _said(message: object) -> tuple[object, list[object]]:
    """Return who speaks in a message, and the types of its blocks."""
    if not isinstance(message, dict):
        return None, []
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return message.get("role"), [block.get("type") if isinstance(block, dict) else None for block in blocks]


def _leave_out(shaped: ShapedMessages, blocks: Sequence[Path]) -> None:
    """Take thinking out that is edited; a message of nothing else keeps a word of it."""
    by_message: dict[Path, list[str | int]] = {}
    for path in blocks:
        by_message.setdefault(path[:-1], []).append(path[-1])
    for content, numbers in by_message.items():
        if len(numbers) < len(shaped.document.entries(content)):
            shaped.remove(content, numbers)
        else:
            span = shaped.document.span(content)
            if span is not None:
                shaped.splices.append(Splice(*span, '"[thinking withheld]"'))


def undone(request: Request, shaping: Shaping) -> tuple[Path, ...]:
    """Return what goes out of a request when it is shaped so.

    What nobody knows could undo it; and the API takes no temperature but 1 with thinking, and none beside `top_p`.
    """
    edited = _edited_thinking(request, request.forwarded)
    lacking = {"thinking"} if _lacks_thought(request.members, edited) else set[str]()
    if not wishes_of(shaping):
        return tuple((name,) for name in lacking)
    doomed = lacking | set(request.strange)
    if _is_hot(request, shaping):
        doomed |= {"thinking", "top_p"}
    if shaping.tools is not None and not servers_allowed(shaping.tools):
        doomed.add("mcp_servers")
    return tuple((name,) for name in request.members if name in doomed)


def _is_hot(request: Request, shaping: Shaping) -> bool:
    """Tell whether the temperature, which is 1 where none is given, is above what policies allow."""
    given = 1.0 if request.temperature is None else request.temperature
    return shaping.max_temperature is not None and given > shaping.max_temperature


def _shape(shaped: ShapedMessages, shaping: Shaping) -> None:
    for path, note in shaping.removed:
        shaped.take_out(path, note)
    for path in undone(shaped.request, shaping):
        shaped.remove(path[:-1], path[-1:])
    if shaping.max_temperature is not None and _is_hot(shaped.request, shaping):
        shaped.put("temperature", msgspec.json.encode(shaping.max_temperature).decode())
    if shaping.tools is not None:
        _constrain_tools(shaped, shaping.tools)
    if shaping.instructions:
        _instruct(shaped, shaping.instructions)
    if shaping.bad_words or shaping.logit_bias or shaping.json_schema is not None or shaping.grammar is not None:
        raise WireError("the Messages API has no banned words, no bias of tokens and no grammars")
    if shaping.continue_from:
        _continue(shaped, shaping.continue_from)


def _constrain_tools(shaped: ShapedMessages, allow: Sequence[str]) -> None:
    tools = shaped.body.get("tools")
    given = tools if isinstance(tools, list) else []
    doomed = [i for i, tool in enumerate(given) if not tool_allowed(tool, allow)]
    if len(doomed) == len(given):
        shaped.remove((), ("tools", "tool_choice"))
    elif doomed:
        shaped.remove(("tools",), doomed)
    if not choice_allowed(shaped.body.get("tool_choice"), allow):
        shaped.remove((), ("tool_choice",))


def _instruct(shaped: ShapedMessages, instructions: Sequence[str]) -> None:
    """Put instructions behind the system prompt."""
    said = list(dict.fromkeys(instructions))
    given = shaped.body.get("system")
    if isinstance(given, list):
        shaped.append(("system",), [f'{{"type":"text","text":{quote(text)}}}' for text in said])
    elif not isinstance(given, str) or not shaped.extend_text(("system",), "\n\n" + "\n\n".join(said)):
        shaped.put("system", quote("\n\n".join(said)))


def _continue(shaped: ShapedMessages, text: str) -> None:
    """Make the model go on from `text`, as the beginning of the last message (assistant prefill).

    Raises:
        WireError: the caller's own beginning does not end with text, or the model thinks first.
    """
    if shaped.request.structured:
        raise WireError("an answer of a fixed form can't be continued; the upstream would begin the form anew")
    thinking = shaped.body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") != "disabled":
        raise WireError("the answer can't be continued: the model thinks before it answers")
    messages = shaped.body.get("messages")
    last = messages[-1] if isinstance(messages, list) else {}
    if last.get("role") != "assistant":
        shaped.append(("messages",), [f'{{"role":"assistant","content":{quote(text)}}}'])
        return
    path: Path = ("messages", len(shaped.document.entries(("messages",))) - 1, "content")
    blocks = last.get("content")
    if isinstance(blocks, list) and blocks:
        path = (*path, len(blocks) - 1, "text")
    if not shaped.extend_text(path, text):
        raise WireError("the answer can't be continued: the message that begins it does not end with text")
