"""APIs that answer a text with figures: OpenAI's embeddings and moderations, and the rerank API that Cohere began.

Their requests are read like any other: each text is checked, edited or refused (G13, G31). Their answers hold vectors
and scores, and there is no stream; what an answer says besides is read as `extra`, a document that it repeats too.
Source: OpenAI API reference, "Embeddings" and "Moderations"; Cohere API reference, "Rerank"; Jina's and what vLLM adds.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import Steps, freeing
from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire.answers.extras import Extras, name_of
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.answers.numbers import Lists
from checkstream.core.wire.json_text import objects
from checkstream.core.wire.json_text.size import MOST_EXTRAS_OF_WHOLE
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai import edits
from checkstream.core.wire.openai.surface import OpenAISurface
from checkstream.core.wire.requests import edits as request_edits
from checkstream.core.wire.requests.fields import EMBEDDING_FIELDS, MEDIA, MODERATION_FIELDS, OWN_FIELDS, RERANK_FIELDS
from checkstream.core.wire.requests.media import read_media
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import finish_request, reading_fields
from checkstream.core.wire.requests.shaping import Shaped
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
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_LEAST_VECTOR = 256
"""Less could be a word or a number in an alphabet that base64 has, too."""
_ENTRIES_A_STEP = 256
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

        def read(found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
            position = yield from _read_input(prompt, found.get(self._asked), self._asked)
            return (yield from finish_request(prompt, body, found, position, apart={self._asked}))

        return reading_fields(body, self._known, read)

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, the body with texts replaced, and notes in the place of what policies have taken out.

        A note, since answers tell texts by their place. Nothing else of `shaping` is of a request without an answer.
        """
        if shaping is None or not shaping.removed:
            return (yield from request_edits.editing_request(request, texts, OWN_FIELDS))
        document = yield from request_edits.request_places(request)
        shaped = Shaped(request, document, texts)
        for path, note in shaping.removed:
            yield
            shaped.note(path, note)
        return (yield from shaped.writing())

    def reading_whole(self, body: bytes) -> Generator[None, None, Unit]:
        """Read an answer, in steps: figures, without choices.

        Raises:
            WireError: not JSON of the surface's form.
        """
        found = yield from objects.reading_object(body)
        return (yield from freeing(found, self._reading(found, body), len(body)))

    def _reading(self, found: dict[str, object], body: bytes) -> Generator[None, None, Unit]:
        error = found.get("error")
        failure = None if error is None else failure_of({"error": error})
        if failure is None and self._answer not in found:
            raise WireError(f"the answer has neither `{self._answer}` nor `error`; check the upstream")
        extras = Extras(MOST_EXTRAS_OF_WHOLE, whole=True)
        rest = {name: value for name, value in found.items() if name != self._answer}
        yield from _reading_rest(extras, rest, _PLAIN_ANSWER, ())
        entries = found.get(self._answer, [])
        if self._bare and (yield from _is_vector(entries)):
            entries = []
        if not isinstance(entries, list):
            raise WireError(f"`{self._answer}` is not an array of objects; check the upstream")
        for i, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise WireError(f"`{self._answer}` is not an array of objects; check the upstream")
            yield from _reading_rest(extras, entry, _PLAIN_ENTRY, (self._answer, i))
            if i % _ENTRIES_A_STEP == 0:
                yield
        usage = found.get("usage")
        return Unit(
            raw=body,
            extras=tuple(extras.found),
            unscanned=tuple(dict.fromkeys(map(name_of, extras.binary))),
            binary=tuple(extras.binary),
            usage=isinstance(usage, str | list | dict) and bool(usage),
            failure=failure,
        )

    def writing_whole(self, unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
        """Return, in steps, the answer with the edit applied; it has no choices."""
        return edits.editing_whole(unit, edit, finish, None)

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

    def joining_whole(self, first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
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


def _reading_rest(extras: Extras, found: Mapping[str, object], known: frozenset[str], path: Path) -> Steps:
    """Read, in steps, what the members of an object say, but for figures."""
    for count, (name, value) in enumerate(found.items(), 1):
        if count % _ENTRIES_A_STEP == 0:
            yield
        if name == "embedding" and (yield from _is_vector(value)):
            continue
        if name in known and name != "embedding":
            extras.known(COMMON, value, (*path, name))
        else:
            extras.unknown(COMMON, value, (*path, name))
        yield from extras.taking()


def _is_vector(embedding: object) -> Generator[None, None, bool]:
    """Tell whether an embedding is figures, or base64 of them, and no words."""
    if isinstance(embedding, str):
        written = embedding.encode("utf-8", "replace")
        return len(written) >= _LEAST_VECTOR and not written.translate(None, _BASE64)
    if isinstance(embedding, list) and embedding:
        return (yield from Lists().is_figures(embedding))
    return not embedding
