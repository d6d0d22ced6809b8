"""Which fields of a request can undo what a policy shapes, and have to go with it.

A field that nobody knows may do anything, so that under any shaping it goes as well: what an upstream adds tomorrow
can't undo what a policy asks for today. Fields that are known stay unless the table names them.

Source: vLLM's and SGLang's sampling parameters, llama.cpp's server README, OpenRouter's request parameters,
`apply_chat_template` of transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests.fields import FORM_FIELDS
from checkstream.core.wire.requests.tools import allowed
from checkstream.core.wire.surface import Request, Shaping

_PROMPT = frozenset({  # rewrite, shorten or replace the prompt
    "chat_template", "truncate_prompt_tokens", "transforms", "session_params", "kv_transfer_params", "id_slot",
    "n_keep", "n_discard", "extra_content", "add_special_tokens",
})  # fmt: skip
_SAMPLER = frozenset({"use_beam_search", "vllm_xargs", "extra_content"})  # sample in another way, or with other numbers

UNDOES: Mapping[str, frozenset[str]] = MappingProxyType({
    "temperature": _SAMPLER | {
        "dynatemp_range", "dynatemp_exponent", "samplers", "mirostat", "mirostat_tau", "mirostat_eta",
        "xtc_probability", "xtc_threshold",
    },
    "bad_words": _SAMPLER | {"allowed_token_ids", "detokenize"},
    "logit_bias": _SAMPLER | {"allowed_token_ids"},
    "form": _SAMPLER | {
        "stop", "stop_token_ids", "stop_regex", "ignore_eos", "min_tokens", "include_stop_str_in_output",
        "no_stop_trim", "skip_special_tokens", "spaces_between_special_tokens", "detokenize", "allowed_token_ids",
        "modalities", "audio", "echo", "suffix", "prefix", "continue_final_message", "add_generation_prompt",
        "guided_decoding_backend", "chat_template",
    },
    "tools": frozenset({"chat_template", "plugins", "search_parameters", "extra_content", "parse_tool_calls"}),
    "instructions": _PROMPT,
    "continue": _PROMPT,
})  # fmt: skip
"""What is shaped -> known fields that can undo it."""

_TEMPLATE_ARGUMENTS = frozenset({
    "messages", "conversation", "conversations", "documents", "chat_template", "add_generation_prompt",
    "continue_final_message", "tokenize", "padding", "truncation", "max_length", "return_tensors", "return_dict",
    "tokenizer_kwargs", "return_assistant_tokens_mask",
})  # fmt: skip
"""Members of `chat_template_kwargs` that stand for the prompt itself. Others are variables of a template's own."""
_FORMS = (*sorted(FORM_FIELDS), "guided_whitespace_pattern", "response_format")
_SEARCH = "web_search"
"""The tool that `web_search_options` offers."""


def form_field(shaping: Shaping) -> str:
    """Return the field that fixes the form of the answer."""
    return "response_format" if shaping.json_schema is not None else "structured_outputs"


def wishes_of(shaping: Shaping) -> frozenset[str]:
    """Return what is shaped, by the names of the table."""
    wanted = {
        "temperature": shaping.max_temperature is not None,
        "bad_words": bool(shaping.bad_words),
        "logit_bias": bool(shaping.logit_bias),
        "form": shaping.json_schema is not None or shaping.grammar is not None,
        "tools": shaping.tools is not None,
        "instructions": bool(shaping.instructions),
        "continue": bool(shaping.continue_from),
    }
    return frozenset(name for name, given in wanted.items() if given)


def undoing(body: Mapping[str, object], shaping: Shaping, unknown: frozenset[str]) -> Iterator[Path]:
    """Yield the members of a body that could undo a shaping.

    Args:
        body: The request.
        shaping: What policies want of it.
        unknown: Names of its fields that nobody knows.
    """
    wishes = wishes_of(shaping)
    if not wishes:
        return
    doomed = frozenset[str]().union(*(UNDOES[wish] for wish in wishes)) | unknown
    yield from ((name,) for name in body if name in doomed)
    if "form" in wishes:
        yield from _against_a_form(body, shaping)
    if shaping.tools is not None and not allowed(_SEARCH, shaping.tools) and "web_search_options" in body:
        yield ("web_search_options",)
    arguments = body.get("chat_template_kwargs")
    if wishes & {"instructions", "continue", "tools", "form"} and isinstance(arguments, dict):
        for name, value in arguments.items():
            if name.casefold() in _TEMPLATE_ARGUMENTS or (isinstance(value, dict | list) and name != "tools"):
                yield ("chat_template_kwargs", name)


def undone(request: Request, shaping: Shaping) -> tuple[Path, ...]:
    """Return what goes out of a request when it is shaped so."""
    return tuple(undoing(request.members, shaping, request.strange)) if wishes_of(shaping) else ()


def _against_a_form(body: Mapping[str, object], shaping: Shaping) -> Iterator[Path]:
    """Yield what makes an answer another than its form: a second form, a forced call, words, a beginning."""
    own = form_field(shaping)
    yield from ((name,) for name in _FORMS if name != own and name in body)
    if not shaping.bad_words and "bad_words" in body:
        yield ("bad_words",)
    for name in ("tool_choice", "function_call"):
        if body.get(name) not in (None, "auto", "none"):
            yield (name,)
    messages = body.get("messages")
    for position, message in enumerate(messages if isinstance(messages, list) else ()):
        for name in ("prefix", "partial"):
            if isinstance(message, dict) and name in message:
                yield ("messages", position, name)
