"""Reads and shapes Ollama's requests: every text as a delta, nothing smuggled (G31)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from checkstream.core.steps import Steps
from checkstream.core.wire.json_text.spans import Path, Splice
from checkstream.core.wire.json_text.strict import shown
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.ollama import fields
from checkstream.core.wire.openai.messages import read_messages
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import finish_request, reading_fields, temperature_of
from checkstream.core.wire.requests.shaping import Shaped, constrain_tools, instruct
from checkstream.core.wire.requests.undoing import wishes_of
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import RequestInvalid, WireError

_NOT_HERE = {
    "bad_words": "Ollama knows no words that must not be written",
    "logit_bias": "Ollama knows no bias for tokens",
    "grammar": "Ollama knows no grammars; ask for a JSON schema",
}
_SAMPLER = ("mirostat", "mirostat_tau", "mirostat_eta")
_SHAPED = frozenset({"temperature", *_SAMPLER})
_UNDOES: Mapping[str, tuple[str, ...]] = {
    "instructions": ("template", "raw", "context"),
    "tools": ("template", "raw"),
    "continue": ("template", "raw"),
    "form": ("template", "raw"),
}
"""What is shaped -> fields that can undo it; and any that nobody knows."""
_OPTIONS_UNDO: Mapping[str, tuple[str, ...]] = {
    "temperature": _SAMPLER,
    "instructions": ("num_keep",),
    "continue": ("num_keep",),
    "form": ("stop",),
}
"""The same of members of `options`."""
_LEAST_CONTEXT = 2048
"""Tokens of the context that servers have unless they are asked for another: of what is longer only the end is read,
without what policies have put at the beginning."""


def reading_chat(body: bytes) -> Generator[None, None, Request]:
    """Read a body of `/api/chat`, in steps.

    Raises:
        RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
    """

    def read(found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
        messages = found.get("messages")
        # Without any the model is only loaded, or let go of.
        position = 0 if messages in (None, []) else (yield from read_messages(prompt, messages))
        return (yield from _finish(prompt, body, found, position, {"messages"}))

    return reading_fields(body, fields.CHAT, read, fields.TEXTS)


def reading_generate(body: bytes) -> Generator[None, None, Request]:
    """Read a body of `/api/generate`, in steps.

    Raises:
        RequestInvalid: as `reading_chat`.
    """

    def read(found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
        said = found.get("prompt")
        if said is not None and not isinstance(said, str):
            raise RequestInvalid("`prompt` must be a string")
        prompt.add("user", 0, said or "", ("prompt",))
        yield from _images(prompt, found.get("images"))
        context = found.get(fields.CONTEXT)
        if context is not None and not (isinstance(context, list) and (yield from prompt.are_tokens(context))):
            raise RequestInvalid("`context` must be an array of token ids")
        if context:
            prompt.unscanned["context tokens"] = None
        return (yield from _finish(prompt, body, found, 1, {"prompt", "images", fields.CONTEXT}))

    return reading_fields(body, fields.GENERATE, read, fields.TEXTS)


def _images(prompt: Prompt, value: object) -> Steps:
    if value is None:
        return
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RequestInvalid("`images` must be an array of strings")
    for i, each in enumerate(value):
        yield from prompt.file(0, each, ("images", i), "images")


def _finish(
    prompt: Prompt, body: bytes, found: dict[str, object], position: int, apart: AbstractSet[str]
) -> Generator[None, None, Request]:
    options = found.get("options")
    if options is not None and not isinstance(options, dict):
        raise RequestInvalid("`options` must be an object")
    for name in options or ():
        if name.casefold() in _SHAPED and name not in _SHAPED:
            raise RequestInvalid(f"`options.{shown(name)}` must be written `{name.casefold()}`")
    request = yield from finish_request(prompt, body, found, position, apart=apart, texts=fields.TEXTS)
    return msgspec.structs.replace(
        request,
        streaming=found.get("stream") is not False,
        usage_wanted=True,
        temperature=temperature_of(options or {}, "options."),
        structured=bool(found.get("format")),
    )


def shape(shaped: Shaped, shaping: Shaping, *, chat: bool) -> None:
    """Put what policies want into a request.

    Raises:
        WireError: Ollama can't do it.
    """
    for name, why in _NOT_HERE.items():
        if getattr(shaping, name):
            raise WireError(why)
    for path, note in shaping.removed:
        shaped.take_out(path, note)
    for path in undoing(shaped.request, shaping):
        shaped.remove(path[:-1], path[-1:])
    if shaping.max_temperature is not None:
        _cool(shaped, shaping.max_temperature, wishes_of(shaping))
    if shaping.json_schema is not None:
        shaped.put("format", shaping.json_schema)
    if chat:
        _shape_chat(shaped, shaping)
    elif shaping.instructions or shaping.tools is not None or shaping.continue_from:
        raise WireError("`generate` has no messages and no tools; use them on routes of `/api/chat`")


def _shape_chat(shaped: Shaped, shaping: Shaping) -> None:
    if shaping.instructions:
        instruct(shaped, shaping.instructions)
    if shaping.tools is not None:
        constrain_tools(shaped, shaping.tools)
    if shaping.continue_from:
        _continue(shaped, shaping.continue_from)


def undoing(request: Request, shaping: Shaping) -> Iterator[Path]:
    """Yield the members of a request that could undo a shaping."""
    wishes = wishes_of(shaping)
    doomed = {name for wish in wishes for name in _UNDOES.get(wish, ())} | (request.strange if wishes else set())
    yield from ((name,) for name in request.members if name in doomed)
    options = request.members.get("options")
    for name in _undoing_options(options, wishes) if wishes and isinstance(options, dict) else ():
        yield "options", name


def _undoing_options(options: Mapping[str, object], wishes: AbstractSet[str]) -> Iterator[str]:
    doomed = {name for wish in wishes for name in _OPTIONS_UNDO.get(wish, ())} | (options.keys() - fields.OPTIONS)
    context = options.get("num_ctx")
    long = isinstance(context, int) and not isinstance(context, bool) and context >= _LEAST_CONTEXT
    if wishes & {"instructions", "continue"} and not long:
        doomed.add("num_ctx")
    yield from (name for name in options if name in doomed)


def _cool(shaped: Shaped, most: float, wishes: AbstractSet[str]) -> None:
    given = shaped.request.temperature
    if given is not None and given <= most:
        return
    value = msgspec.json.encode(most).decode()
    options = shaped.document.span(("options",))
    there = shaped.document.span(("options", "temperature"))
    if there is not None:
        shaped.splices.append(Splice(*there, value))
    elif options is None or shaped.body.get("options") is None:
        shaped.put("options", f'{{"temperature":{value}}}')
    else:
        given_options = shaped.request.members["options"]
        doomed = set(_undoing_options(given_options, wishes)) if isinstance(given_options, dict) else set()
        comma = "," if shaped.document.entries(("options",)).keys() - doomed else ""
        shaped.splices.append(Splice(options[0] + 1, options[0] + 1, f'"temperature":{value}{comma}'))


def _continue(shaped: Shaped, text: str) -> None:
    """Make the model go on from `text`: as the last message, or behind the beginning that the caller gave."""
    if shaped.request.structured:
        raise WireError("an answer of a fixed form can't be continued; the upstream would begin the form anew")
    messages = shaped.body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    begun = isinstance(last, dict) and last.get("role") == "assistant" and isinstance(messages, list)
    path: Path = ("messages", len(messages) - 1 if isinstance(messages, list) else 0, "content")
    if not begun or not shaped.extend_text(path, text):
        shaped.append(("messages",), [f'{{"role":"assistant","content":{quote(text)}}}'])
