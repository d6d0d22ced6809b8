"""OpenAI's legacy completions (`POST /v1/completions`), streamed and whole.

Source: OpenAI API reference, "Completions" (legacy); what vLLM, SGLang and llama.cpp add to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from checkstream.core.terms import Channel, Delta
from checkstream.core.wire.answers.answer import Answer
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.openai.choices import OpenAIChoices
from checkstream.core.wire.requests.fields import COMPLETION_FIELDS
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.requests.reading import finish_request, reading_fields
from checkstream.core.wire.requests.shaping import Shaped, continue_text, shape
from checkstream.core.wire.surface import Request, Shaping
from checkstream.errors import RequestInvalid, WireError


class OpenAICompletions(OpenAIChoices):
    """The surface `openai.completions`. Its one answer channel per choice is `content`."""

    name = "openai.completions"
    form = "text_completion"
    id = "cmpl-checkstream"
    holder = None
    streamed = "text"

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a caller's body, in steps.

        Raises:
            RequestInvalid: not JSON of the surface's form, duplicate or case-variant keys, wrong types.
        """

        def read(found: dict[str, object], prompt: Prompt) -> Generator[None, None, Request]:
            position, prompts = yield from _read_prompt(prompt, found.get("prompt"))
            return (yield from finish_request(prompt, body, found, position, apart={"prompt"}, prompts=prompts))

        return reading_fields(body, COMPLETION_FIELDS, read)

    @staticmethod
    def shape(shaped: Shaped, shaping: Shaping) -> None:
        """Carry a shaping into a request.

        Raises:
            WireError: it has system messages or tools, for which there is no place.
        """
        if shaping.instructions or shaping.tools is not None:
            raise WireError("a completion has no system messages and no tools; use them on chat routes")
        shape(shaped, shaping, continue_text)

    @staticmethod
    def read_streamed(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
        """Read the `text` of a choice, if it has one."""
        if choice.get("text") is not None:
            answer.text("content", number, 0, choice["text"], (*path, "text"))

    @staticmethod
    def read_choice(answer: Answer, number: int, choice: dict[str, object], path: Path) -> None:
        """Read the `text` of a choice; an empty one has a place for what a stop has to say."""
        if choice.get("text"):
            answer.text("content", number, 0, choice["text"], (*path, "text"))
        else:
            answer.deltas.append(Delta(Channel("content", number), "", (*path, "text")))

    @staticmethod
    def saying(text: str | None, *, first: bool) -> Mapping[str, object]:  # noqa: ARG004 - alike in every event
        """Return the member of a choice that says a text."""
        return {"text": text or ""}


def _read_prompt(prompt: Prompt, value: object) -> Generator[None, None, tuple[int, int]]:
    """Read `prompt`: a string, strings, or token ids, which have no text to scan.

    Returns:
        How many entries it has, and how many prompts that is: an array of numbers is one, of strings or arrays so many.
    """
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, list) and (yield from prompt.are_tokens(value)):
        if value:
            prompt.unscanned["prompt tokens"] = None
        return len(value), 1
    for i, part in enumerate(parts):
        at: Path = ("prompt", i) if isinstance(value, list) else ("prompt",)
        if prompt.spends():
            yield
        if isinstance(part, str):
            prompt.add("user", i, part, at)
        elif isinstance(value, list) and (yield from prompt.are_tokens(part if isinstance(part, list) else [part])):
            prompt.unscanned["prompt tokens"] = None
        else:
            raise RequestInvalid("`prompt` must be a string, an array of strings, or token ids")
    return len(parts), len(parts) if isinstance(value, list) else 1
