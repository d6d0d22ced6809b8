"""Carries a `Shaping` into the JSON of a request of the Responses API by splicing: all else stays byte for byte.

INVARIANT: no field that the caller sends can undo what is put here; what could is taken out with it, and with it every
field that nobody knows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

import msgspec

from checkstream.core.wire.json_text.spans import Path, Splice
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.requests.edits import editing_request, request_places
from checkstream.core.wire.requests.fields import OWN_FIELDS
from checkstream.core.wire.requests.shaping import ITEM_FRAME, Shaped
from checkstream.core.wire.requests.tools import choice_allowed, tool_allowed
from checkstream.core.wire.requests.undoing import UNDOES, wishes_of
from checkstream.core.wire.responses import fields
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import Unremovable, WireError

_TEXT = "{note}"
_SAID: Mapping[str, tuple[str, str]] = {
    "function_call_output": ("output", _TEXT),
    "custom_tool_call_output": ("output", _TEXT),
    "local_shell_call_output": ("output", _TEXT),
    "apply_patch_call_output": ("output", _TEXT),
    "mcp_approval_response": ("reason", _TEXT),
    "mcp_call": ("output", _TEXT),
    "shell_call_output": (
        "output",
        '[{{"stdout":{note},"stderr":"","outcome":{{"type":"exit","exit_code":1}}}}]',
    ),
    "code_interpreter_call": ("outputs", '[{{"type":"logs","logs":{note}}}]'),
    "file_search_call": ("results", "null"),
}
"""Type of an item -> the member in which it holds what a tool has said, and what stands there in its place."""


class ShapedResponses(Shaped):
    """Collects what is put in, replaced and taken out of one body of the Responses API."""

    def take_out(self, path: Path, note: str) -> None:
        """Put a note in the place of what a tool has said, or of a document; leave out what is none of these.

        Raises:
            Unremovable: what a tool has said is of a form that has no place for a note.
        """
        match path:
            case ("input", int()):
                self._replace_result(path, note)
            case ("input", int(), _, int()):
                span = self.document.span(path)
                if span is not None:
                    self.splices.append(Splice(*span, f'{{"type":"input_text","text":{quote(note)}}}'))
            case _:
                self.remove(path[:-1], path[-1:])

    def _replace_result(self, path: Path, note: str) -> None:
        there, text = self.document.entries(path), self.document.text
        form = there.get("type")
        says, instead = _SAID.get("" if form is None else text[form.start + 1 : form.end - 1], ("", ""))
        if not says:
            raise Unremovable("a note has no place in such a result", path)
        self.remove(path, [name for name in there if name not in (*ITEM_FRAME, says)])
        self.set_member(path, says, instead.format(note=quote(note)))


def writing_request(
    request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
) -> Generator[None, None, bytes]:
    """Return, in steps, the body with texts replaced, shaped as policies want, without what is ours.

    Raises:
        WireError: the request was not read by this surface, or can't be shaped so.
    """
    if shaping is None:
        return (yield from editing_request(request, texts, OWN_FIELDS))
    document = yield from request_places(request)
    shaped = ShapedResponses(request, document, texts)
    _shape(shaped, shaping)
    return (yield from shaped.writing())


def undone(request: Request, shaping: Shaping) -> tuple[Path, ...]:
    """Return what goes out of a request when it is shaped so, since it could undo that."""
    return tuple(_undoing(request, shaping))


def _undoing(request: Request, shaping: Shaping) -> Iterator[Path]:
    wishes = wishes_of(shaping)
    if not wishes:
        return
    doomed = request.strange.union(*(UNDOES[wish] for wish in wishes))
    if "form" in wishes:
        doomed |= fields.FORMS
        if request.members.get("tool_choice") not in (None, "auto", "none"):
            doomed |= {"tool_choice"}
    yield from ((name,) for name in request.members if name in doomed)


def _shape(shaped: ShapedResponses, shaping: Shaping) -> None:
    for path, note in shaping.removed:
        shaped.take_out(path, note)
    for path in _undoing(shaped.request, shaping):
        shaped.remove(path[:-1], path[-1:])
    most, given = shaping.max_temperature, shaped.request.temperature
    if most is not None and (given is None or given > most):
        shaped.put("temperature", msgspec.json.encode(most).decode())
    if shaping.tools is not None:
        _constrain_tools(shaped, shaping.tools)
    if shaping.instructions:
        _instruct(shaped, shaping.instructions)
    if shaping.json_schema is not None:
        _fix_form(shaped, shaping.json_schema)
    if shaping.bad_words or shaping.logit_bias or shaping.grammar is not None:
        raise WireError("the Responses API has no banned words, no bias of tokens and no grammars")
    if shaping.continue_from:
        _go_on(shaped, shaping.continue_from)


def _go_on(shaped: ShapedResponses, text: str) -> None:
    """Make the model go on from `text`: as a message that is not complete, or behind the one that the caller began.

    Raises:
        WireError: no request can ask for the rest of such an answer.
    """
    if shaped.request.structured:
        raise WireError("an answer of a fixed form can't be continued; the upstream would begin the form anew")
    for name, why in _NOT_TWICE.items():
        if shaped.body.get(name):
            raise WireError(f"the answer can't be continued: {why}")
    part = f'{{"type":"output_text","annotations":[],"text":{quote(text)}}}'
    item = f'{{"type":"message","id":"{_OWN}","status":"incomplete","role":"assistant","content":[{part}]}}'
    given = shaped.body.get("input")
    if isinstance(given, list):
        if not shaped.extend_text(_begun(given), text):
            shaped.append(("input",), [item])
    elif not isinstance(given, str):
        shaped.put("input", f"[{item}]")
    else:
        shaped.put("input", f'[{{"role":"user","content":{quote(shaped.said(("input",)))}}},{item}]')


_OWN = "msg_checkstream"
_NOT_TWICE: Mapping[str, str] = {
    "conversation": "the provider keeps the conversation, and would take the request for another turn of it",
    "background": "nobody waits for an answer that runs in the background",
}


def _begun(items: Sequence[object]) -> Path:
    """Return where the text stands that ends a message which the caller has begun for the model."""
    last = items[-1] if items else None
    if not isinstance(last, dict) or last.get("role") != "assistant" or last.get("status") not in _OPEN:
        return ()
    said, path = last.get("content"), ("input", len(items) - 1, "content")
    return (*path, len(said) - 1, "text") if isinstance(said, list) and said else path


_OPEN = frozenset({"in_progress", "incomplete"})


def _constrain_tools(shaped: ShapedResponses, allow: Sequence[str]) -> None:
    """Take out the tools that are not on an allow-list, wherever they are offered, and choices that name one."""
    given, templated = shaped.body.get("input"), shaped.body.get("prompt") is not None
    inner = [("input", i, "tools") for i, item in enumerate(given if isinstance(given, list) else ()) if _offers(item)]
    for path in (("tools",), *inner):
        tools: object = shaped.body
        for name in path:
            tools = tools[name] if isinstance(tools, list) and isinstance(name, int) else _member(tools, name)
        if not isinstance(tools, list):
            continue
        doomed = [i for i, tool in enumerate(tools) if not tool_allowed(tool, allow)]
        if doomed and len(doomed) == len(tools) and path == ("tools",):
            shaped.remove((), ("tool_choice", "parallel_tool_calls", *(() if templated else ("tools",))))
        if doomed:
            shaped.remove(path, doomed)  # an empty list stands in place of those that a template offers
    if templated and shaped.body.get("tools") is None:
        shaped.put("tools", "[]")
        shaped.remove((), ("tool_choice", "parallel_tool_calls"))
    if not choice_allowed(shaped.body.get("tool_choice"), allow):
        shaped.remove((), ("tool_choice",))


def _offers(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("tools"), list)


def _member(value: object, name: object) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _instruct(shaped: ShapedResponses, instructions: Sequence[str]) -> None:
    """Put instructions behind the request's own."""
    said = _joined(instructions)
    if not shaped.extend_text(_INSTRUCTIONS, f"{_BETWEEN}{said}"):
        shaped.put("instructions", quote(said))


def _joined(instructions: Sequence[str]) -> str:
    return _BETWEEN.join(dict.fromkeys(instructions))


_INSTRUCTIONS: Path = ("instructions",)
_BETWEEN = "\n\n"


def instructed(request: Request) -> str | None:
    """Return the instructions that were sent in place of a request's own, which answers repeat; None: its own were."""
    deltas = request.unit.deltas
    place = next((at for at in range(len(deltas) - 1, -1, -1) if deltas[at].path == _INSTRUCTIONS), -1)
    own = request.forwarded.get(place)
    if own is None and not request.instructed:
        return None
    if own is None and place >= 0:
        own = deltas[place].text
    said = _joined(request.instructed)
    return said if own is None else f"{own}{_BETWEEN}{said}" if said else own


def _fix_form(shaped: ShapedResponses, schema: str) -> None:
    """Ask for an answer of a form, in place of the caller's."""
    form = f'{{"type":"json_schema","name":"policy","schema":{schema},"strict":true}}'
    span = shaped.document.span(("text",))
    if span is None or shaped.document.text[span[0]] != "{":
        shaped.put("text", f'{{"format":{form}}}')
        return
    there = shaped.document.span(("text", "format"))
    if there is not None:
        shaped.splices.append(Splice(*there, form))
    else:
        comma = "," if shaped.document.entries(("text",)) else ""
        shaped.splices.append(Splice(span[0] + 1, span[0] + 1, f'"format":{form}{comma}'))
