"""APIs that answer a text with figures: OpenAI's embeddings and moderations, and the rerank API that Cohere began.

Their requests are read like any other: each text is checked, edited or refused (G13, G31). Their answers hold vectors
and scores, and there is no stream; what an answer says besides is read as `extra`, a document that it repeats too.
Source: OpenAI API reference, "Embeddings" and "Moderations"; Cohere API reference, "Rerank"; Jina's and what vLLM adds.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import Steps
from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire import openai_edits, openai_json
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.openai_extras import Extras, name_of
from checkstream.core.wire.openai_fields import EMBEDDING_FIELDS, MEDIA, MODERATION_FIELDS, OWN_FIELDS, RERANK_FIELDS
from checkstream.core.wire.openai_media import read_media
from checkstream.core.wire.openai_prompt import Prompt
from checkstream.core.wire.openai_requests import finish_request, start_request
from checkstream.core.wire.openai_shaping import Shaped
from checkstream.core.wire.openai_surface import OpenAISurface
from checkstream.core.wire.surface import Edit, Frame, Request, Shaping
from checkstream.errors import RequestInvalid, WireError

_PLAIN_ANSWER = frozenset({
    "object", "model", "id", "created", "usage", "data", "results", "error",
    "total_duration", "load_duration", "prompt_eval_count",
})  # fmt: skip
_PLAIN_ENTRY = frozenset({
    "object", "index", "embedding", "flagged", "categories", "category_scores", "category_applied_input_types",
    "relevance_score",
})  # fmt: skip
_BASE64 = b'"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\'
_LEAST_VECTOR = 256
"""Less could be a word or a number in an alphabet that base64 has, too."""
_SPACE = b" \t\r\n"
_FIGURES = b"[]0123456789+-.eE, \t\r\nnul"
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_NO_STREAM = "this API has no streams; check the upstream"


class OpenAIInputs(OpenAISurface):
    """The surfaces `openai.embeddings`, `openai.moderations` and `cohere.rerank`, which differ in their fields."""

    events: frozenset[str] = frozenset()

    def __init__(self, name: str, known: frozenset[str], asked: str, answer: str) -> None:
        """Be one of them.

        Args:
            name: Of the surface.
            known: Fields of its requests that hold no text, and `asked`.
            asked: The field that holds what is asked about.
            answer: The member of an answer that holds the figures.
        """
        self.name = name
        self._known = known
        self._asked = asked
        self._answer = answer
        self._bare = answer in ("embedding", "embeddings")

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """
        found, prompt = yield from start_request(body, self._known)
        position = yield from _read_input(prompt, found.get(self._asked), self._asked)
        return (yield from finish_request(prompt, body, found, position, apart={self._asked}))

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, and notes in the place of what policies have taken out.

        A note, since answers tell texts by their place. Nothing else of `shaping` is of a request without an answer.
        """
        if shaping is None or not shaping.removed:
            return (yield from openai_edits.editing_request(request, texts, OWN_FIELDS))
        document = yield from openai_edits.request_places(request)
        shaped = Shaped(request, document, texts)
        for path, note in shaping.removed:
            yield
            shaped.note(path, note)
        return (yield from shaped.writing())

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read an answer, in one step: figures, without choices.

        Raises:
            WireError: not JSON of the surface's form.
        """
        yield
        found = _members(body)
        error = found.get("error")
        failure = None if error is None else openai_json.failure_of({"error": msgspec.json.decode(error)})
        if failure is None and self._answer not in found:
            raise WireError(f"the answer has neither `{self._answer}` nor `error`; check the upstream")
        extras = Extras()
        _read(extras, {name: value for name, value in found.items() if name != self._answer}, _PLAIN_ANSWER, ())
        if self._answer in found and not (self._bare and _is_vector(found[self._answer])):
            entries = _entries(found[self._answer], self._answer)
            for i, entry in enumerate(entries):
                _read(extras, entry, _PLAIN_ENTRY, (self._answer, i))
            found[self._answer] = msgspec.Raw(msgspec.json.encode(entries))
        # Of two members of one name only the last was read, so that is the one which is sent.
        once = msgspec.json.encode(found)
        return Unit(
            raw=body if body.translate(None, _SPACE) == once.translate(None, _SPACE) else once,
            extras=tuple(extras.found),
            unscanned=tuple(dict.fromkeys(map(name_of, extras.binary))),
            binary=tuple(extras.binary),
            usage=_says(found.get("usage")),
            failure=failure,
        )

    def write_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> bytes:
        """Return the answer with the edit applied; it has no choices."""
        return openai_edits.edit_whole(unit, edit, finish, None)

    def read_event(self, frame: Frame) -> Unit:
        """Refuse an event.

        Raises:
            WireError: always.
        """
        del frame
        raise WireError(_NO_STREAM)

    def write_event(self, unit: Unit, edit: Edit) -> bytes:
        """Return the event as it came: it has no text."""
        del edit
        return unit.raw

    def rename_event(self, unit: Unit, like: Unit) -> Unit:
        """Return the event as it came."""
        del like
        return unit

    def join_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> bytes:
        """Refuse to join: nothing is continued here.

        Raises:
            WireError: always.
        """
        del first, texts, second
        raise WireError("an answer without text can't be continued")

    def text_event(self, like: Unit, choice: int, text: str) -> bytes:
        """Return nothing: there are no streams."""
        del like, choice, text
        return b""

    def finish_event(self, like: Unit, choice: int) -> bytes:
        """Return nothing: there are no streams."""
        del like, choice
        return b""

    def usage_event(self, like: Unit, prompt_tokens: int, completion_tokens: int) -> bytes:
        """Return nothing: there are no streams."""
        del like, prompt_tokens, completion_tokens
        return b""

    def result_event(self, like: Unit, members: Mapping[str, msgspec.Raw]) -> bytes:
        """Return nothing: there are no streams."""
        del like, members
        return b""


EMBEDDINGS = OpenAIInputs("openai.embeddings", EMBEDDING_FIELDS, "input", "data")
MODERATIONS = OpenAIInputs("openai.moderations", MODERATION_FIELDS, "input", "results")
RERANK = OpenAIInputs("cohere.rerank", RERANK_FIELDS, "query", "results")


def _read_input(prompt: Prompt, value: object, name: str) -> Generator[None, None, int]:
    """Read what is asked about: a string, strings, parts, or token ids, which have no text to scan; return how many."""
    parts = value if isinstance(value, list) else [value]
    if value and isinstance(value, list) and (yield from prompt.are_tokens(value)):
        prompt.unscanned[f"{name} tokens"] = None
        return len(parts)
    for i, part in enumerate(parts):
        at: Path = (name, i) if isinstance(value, list) else (name,)
        if prompt.spends():
            yield
        if isinstance(part, str):
            prompt.add("user", i, part, at)
        elif isinstance(part, dict) and isinstance(value, list):
            yield from _read_part(prompt, i, part, at)
        elif isinstance(value, list) and (yield from prompt.are_tokens(part if isinstance(part, list) else [part])):
            prompt.unscanned[f"{name} tokens"] = None
        else:
            raise RequestInvalid(f"`{name}` must be a string, an array of strings or parts, or token ids")
    return len(parts)


def _read_part(prompt: Prompt, position: int, part: dict[str, object], path: Path) -> Steps:
    """Read a part of an input that is more than text, such as a moderation's: its texts and files."""
    for name, value in part.items():
        if name in MEDIA:
            yield from read_media(prompt, "user", position, value, (*path, name))
    said = {name: value for name, value in part.items() if name not in MEDIA}
    yield from prompt.all("user", position, said, path)


def _members(body: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of an answer unread: vectors are megabytes of figures.

    Raises:
        WireError: it is no JSON object in UTF-8.
    """
    try:
        body.decode()
        return _MEMBERS.decode(body)
    except (ValueError, RecursionError) as error:
        raise WireError("the body is not a JSON object in UTF-8; check the upstream") from error


def _says(member: msgspec.Raw | None) -> bool:
    """Tell whether a member says more than null, nothing, or a number or truth value."""
    return member is not None and bytes(member)[:1] in (b'"', b"[", b"{") and len(bytes(member)) > 2


def _entries(member: msgspec.Raw, name: str) -> list[dict[str, msgspec.Raw]]:
    try:
        return _ENTRIES.decode(member)
    except (ValueError, RecursionError) as wrong:
        raise WireError(f"`{name}` is not an array of objects; check the upstream") from wrong


def _read(extras: Extras, found: Mapping[str, msgspec.Raw], known: frozenset[str], path: Path) -> None:
    """Read what the members of an object say, but for figures."""
    for name, member in found.items():
        if name == "embedding" and _is_vector(member):
            continue
        try:
            value = msgspec.json.decode(member)
        except (ValueError, RecursionError) as wrong:
            raise WireError(f"`{name}` is not JSON; check the upstream") from wrong
        if name in known and name != "embedding":
            extras.known(COMMON, value, (*path, name))
        else:
            extras.unknown(COMMON, value, (*path, name))


def _is_vector(embedding: msgspec.Raw | None) -> bool:
    """Tell whether an embedding is figures, or base64 of them, and no words."""
    if embedding is None:
        return True
    written = bytes(embedding)
    if written.startswith(b'"'):
        return len(written) >= _LEAST_VECTOR and not written.translate(None, _BASE64)
    return not written.translate(None, _FIGURES)
