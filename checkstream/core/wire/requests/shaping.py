"""Carries a `Shaping` into the JSON of a request of OpenAI's shape by splicing: all else stays byte for byte.

Source: OpenAI API reference (create chat completion); vLLM's request classes (`bad_words`, `structured_outputs` since
0.11, where `guided_grammar` was before and is gone since 0.12; `continue_final_message`); SGLang's.

INVARIANT: no field that the caller sends can undo what is put here; what could is taken out with it (`undoing`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

import msgspec

from checkstream.core.wire.json_text.spans import JsonText, Path, Splice
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.requests.edits import editing_request, request_places, request_splices
from checkstream.core.wire.requests.fields import OWN_FIELDS
from checkstream.core.wire.requests.reading import is_structured
from checkstream.core.wire.requests.tools import choice_allowed, tool_allowed, tool_lists
from checkstream.core.wire.requests.undoing import form_field, undoing
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import WireError

MESSAGE_FRAME = ("role", "tool_call_id", "name", "tool_name", "content")
"""What a tool's message keeps when what it says is taken out: the call before it wants its answer."""
ITEM_FRAME = (
    "type", "id", "call_id", "status", "namespace", "name", "caller", "server_label", "arguments",
    "approval_request_id", "approve", "queries", "code", "container_id",
)  # fmt: skip
"""The same of an item of the Responses API, which may hold the call as well."""
_CHOICES = {"tools": ("tool_choice", "parallel_tool_calls"), "functions": ("function_call",)}
_LEADING = ("system", "developer")
_PREFILL = ("prefix", "partial")
"""Members of an assistant message that say that the answer is to go on from it (DeepSeek, Mistral, Moonshot)."""


class Shaped:
    """Collects what is put in, replaced and taken out of one body, then makes splices of it."""

    def __init__(self, request: Request, document: JsonText, texts: Mapping[int, str]) -> None:
        """Start from a request that was read before.

        Args:
            request: What was read.
            document: The places of its body.
            texts: Index in `request.unit.deltas` -> the text that comes in its place.
        """
        self.request = request
        self.document = document
        self.body = request.members
        self.splices: list[Splice] = []
        self._added: list[str] = []
        """Members of the body that it had not, as JSON."""
        self._doomed: dict[Path, set[str | int]] = {}
        self._texts = texts
        self.remove((), tuple(OWN_FIELDS))

    def put(self, name: str, value: str) -> None:
        """Set the top-level member `name` to the JSON `value`."""
        span = self.document.span((name,))
        if span is not None:
            self.splices.append(Splice(*span, value))
            return
        self._added.append(f"{quote(name)}:{value}")

    def remove(self, path: Path, names: Sequence[str | int]) -> None:
        """Take these entries out of the container at `path`, where they are there."""
        there = self.document.entries(path)
        self._doomed.setdefault(path, set()).update(name for name in names if name in there)

    def take_out(self, path: Path, note: str) -> None:
        """Leave a document out; put a note in the place of a file, and of all that a tool's message says."""
        span = self.document.span(path)
        if span is None:
            return  # of our own field, which goes as a whole
        match path:
            case ("messages", int()):
                there = self.document.entries(path)
                self.remove(path, [name for name in there if name not in MESSAGE_FRAME])
                self.set_member(path, "content", quote(note))
            case ("messages", _, "content", _):
                self.splices.append(Splice(*span, f'{{"type":"text","text":{quote(note)}}}'))
            case _:
                self.remove(path[:-1], path[-1:])

    def set_member(self, path: Path, name: str, value: str) -> None:
        """Set a member of the object at `path`, which keeps others, to the JSON `value`."""
        given, start = self.document.span((*path, name)), self._span(path)[0] + 1
        self.splices.append(
            Splice(*given, value) if given is not None else Splice(start, start, f"{quote(name)}:{value},")
        )

    def note(self, path: Path, note: str) -> None:
        """Put a note in the place of a text or of an object that holds one."""
        span = self.document.span(path)
        if span is not None:
            text = quote(note)
            self.splices.append(Splice(*span, f'{{"text":{text}}}' if self.document.text[span[0]] == "{" else text))

    def append(self, path: Path, values: Sequence[str], *, behind: int | None = None) -> None:
        """Add JSON values to the array at `path`: at its end, or behind its first `behind` entries."""
        entries = list(self.document.entries(path).values())
        joined = ",".join(values)
        kept = entries if behind is None else entries[:behind]
        if kept:
            self.splices.append(Splice(kept[-1].end, kept[-1].end, f",{joined}"))
        else:
            start = self._span(path)[0] + 1
            self.splices.append(Splice(start, start, joined + ("," if entries else "")))

    def extend_text(self, path: Path, more: str) -> bool:
        """Write `more` behind the string at `path`, as edited; return whether there is one."""
        span = self.document.span(path)
        if span is None or not self.document.text.startswith('"', span[0]):
            return False
        self.splices.append(Splice(*span, quote(self.said(path) + more)))
        return True

    def said(self, path: Path) -> str:
        """Return the text at `path`, as edited."""
        deltas = self.request.unit.deltas
        place = next((i for i, delta in enumerate(deltas) if delta.path == path), None)
        return "" if place is None else self._texts.get(place, deltas[place].text)

    def writing(self) -> Generator[None, None, bytes]:
        """Return, in steps, the body with everything done, edits of its texts included.

        Raises:
            WireError: the body is not the JSON that the request was read from.
        """
        edits = yield from request_splices(self.document, self.request, self._texts, OWN_FIELDS)
        written = {(splice.start, splice.end) for splice in self.splices}
        splices = [*self.splices, *(edit for edit in edits if (edit.start, edit.end) not in written)]
        if self._added:
            start = self._span(())[0] + 1
            stays = self.document.entries(()).keys() - self._doomed[()]  # a body may be left with what is put in alone
            splices.append(Splice(start, start, ",".join(self._added) + ("," if stays else "")))
        for path, names in self._doomed.items():
            splices += yield from self.document.cutting(path, frozenset(names))
        return (yield from self.document.applying(splices))

    def _span(self, path: Path) -> tuple[int, int]:
        span = self.document.span(path)
        if span is None:
            raise WireError(f"`{path[-1]}` can't be shaped: it is not where it was read")
        return span


def writing_shaped(
    request: Request,
    texts: Mapping[int, str],
    shaping: Shaping | None,
    shape_it: Callable[[Shaped, Shaping], None],
) -> Generator[None, None, bytes]:
    """Return, in steps, a body with texts replaced and without our own fields, shaped as policies want if they do.

    Raises:
        WireError: the body is not the JSON that the request was read from, or can't be shaped so.
    """
    if shaping is None:
        return (yield from editing_request(request, texts, OWN_FIELDS))
    document = yield from request_places(request)
    shaped = Shaped(request, document, texts)
    shape_it(shaped, shaping)
    return (yield from shaped.writing())


Continue = Callable[[Shaped, str], None]
"""Make the model go on from a text: how is the surface's own."""


def shape(shaped: Shaped, shaping: Shaping, go_on: Continue) -> None:
    """Put what both surfaces have in common into the request.

    Args:
        shaped: The request.
        shaping: What policies want of it.
        go_on: How the surface is made to continue an answer.

    Raises:
        WireError: a field has a form that can't be shaped, or the answer can't be continued.
    """
    _clear(shaped, shaping)
    if shaping.max_temperature is not None:
        _cool(shaped, shaping.max_temperature)
    if shaping.tools is not None:
        constrain_tools(shaped, shaping.tools)
    if shaping.bad_words:
        _ban_words(shaped, shaping.bad_words)
    if shaping.logit_bias:
        _bias(shaped, shaping.logit_bias)
    form = _form(shaping)
    if form is not None:
        shaped.put(*form)
    if shaping.continue_from:
        if shaped.request.choices != 1 or shaped.body.get("best_of") not in (None, 1):
            raise WireError("an answer of several choices can't be continued; ask for one")
        if form is not None or is_structured(shaped.body):
            raise WireError("an answer of a fixed form can't be continued; the upstream would begin the form anew")
        go_on(shaped, shaping.continue_from)


def _clear(shaped: Shaped, shaping: Shaping) -> None:
    """Take out what policies have removed, and what could undo the rest."""
    for path, note in shaping.removed:
        shaped.take_out(path, note)
    for path in undoing(shaped.body, shaping, shaped.request.strange):
        shaped.remove(path[:-1], path[-1:])


def _cool(shaped: Shaped, most: float) -> None:
    given = shaped.request.temperature
    if given is None or given > most:
        shaped.put("temperature", msgspec.json.encode(most).decode())


def constrain_tools(shaped: Shaped, allow: Sequence[str]) -> None:
    """Take out the tools that are not on an allow-list, and choices that name one."""
    for path, tools in tool_lists(shaped.body):
        doomed = [i for i, tool in enumerate(tools) if not tool_allowed(tool, allow)] if isinstance(tools, list) else []
        if not isinstance(tools, list) or len(doomed) == len(tools):
            shaped.remove(path[:-1], path[-1:])
            shaped.remove((), _CHOICES.get(str(path[0]), ()) if len(path) == 1 else ())
        elif doomed:
            shaped.remove(path, doomed)
    for name in ("tool_choice", "function_call"):
        if not choice_allowed(shaped.body.get(name), allow):
            shaped.remove((), (name,))


def _ban_words(shaped: Shaped, words: Sequence[str]) -> None:
    given = shaped.body.get("bad_words")
    if given is None:
        shaped.put("bad_words", f"[{','.join(map(quote, words))}]")
    elif not isinstance(given, list):
        raise WireError("`bad_words` must be an array of strings")
    elif more := [quote(word) for word in words if word not in given]:
        shaped.append(("bad_words",), more)


def _bias(shaped: Shaped, biases: Sequence[tuple[int, int]]) -> None:
    given = shaped.body.get("logit_bias")
    own = ",".join(f'"{token}":{bias}' for token, bias in dict(biases).items())
    if given is None:
        shaped.put("logit_bias", f"{{{own}}}")
        return
    if not isinstance(given, dict):
        raise WireError("`logit_bias` must be an object of tokens and their bias")
    tokens = {token for token, _ in biases}
    # `07` and ` 7` are the token 7 to servers that read keys as Python does.
    doomed = [key for key in given if _token(key) in tokens]
    shaped.remove(("logit_bias",), doomed)
    span = shaped.document.span(("logit_bias",))
    start = (0 if span is None else span[0]) + 1
    shaped.splices.append(Splice(start, start, own + ("," if len(given) > len(doomed) else "")))


def _token(key: str) -> int | None:
    try:
        return int(key) if len(key) <= 32 else None
    except ValueError:
        return None


def _form(shaping: Shaping) -> tuple[str, str] | None:
    """Return the field that fixes the form of the answer, and its JSON."""
    if shaping.json_schema is not None:
        schema = f'{{"name":"policy","schema":{shaping.json_schema},"strict":true}}'
        return form_field(shaping), f'{{"type":"json_schema","json_schema":{schema}}}'
    if shaping.grammar is not None:
        return form_field(shaping), f'{{"grammar":{quote(shaping.grammar)}}}'
    return None


def instruct(shaped: Shaped, instructions: Sequence[str]) -> None:
    """Put system messages behind those that a chat begins with."""
    messages = shaped.body.get("messages")
    roles = [message.get("role") for message in messages] if isinstance(messages, list) else []
    leading = next((i for i, role in enumerate(roles) if role not in _LEADING), len(roles))
    said = [f'{{"role":"system","content":{quote(text)}}}' for text in dict.fromkeys(instructions)]
    shaped.append(("messages",), said, behind=leading)


def continue_chat(shaped: Shaped, text: str) -> None:
    """Make the model go on from `text`: as the last message, or behind the beginning that the caller gave.

    Raises:
        WireError: the caller's beginning is not text.
    """
    messages = shaped.body.get("messages")
    last = messages[-1] if isinstance(messages, list) else {}
    begun = last.get("role") == "assistant" and (
        shaped.body.get("continue_final_message") is True or any(last.get(name) is True for name in _PREFILL)
    )
    if not begun:
        shaped.append(("messages",), [f'{{"role":"assistant","content":{quote(text)}}}'])
    else:
        path: Path = ("messages", len(shaped.document.entries(("messages",))) - 1, "content")
        parts = last.get("content")
        if isinstance(parts, list) and parts:
            path = (*path, len(parts) - 1, *(("text",) if isinstance(parts[-1], dict) else ()))
        if not shaped.extend_text(path, text):
            raise WireError("the answer can't be continued: the message that begins it does not end with text")
    shaped.put("continue_final_message", "true")
    shaped.put("add_generation_prompt", "false")
    shaped.remove((), ("echo",))


def continue_text(shaped: Shaped, text: str) -> None:
    """Make the model go on from the prompt with `text` behind it.

    Raises:
        WireError: the prompt is not one string, or the answer repeats it.
    """
    given = shaped.body.get("prompt")
    path: Path = ("prompt", 0) if isinstance(given, list) and len(given) == 1 else ("prompt",)
    if shaped.body.get("echo") or not shaped.extend_text(path, text):
        raise WireError("the answer can't be continued: the prompt is not one string, or `echo` repeats it")
