"""Prompts for the target: read from files, written by a model, or made of the documents' own headings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

import msgspec

from checkstream.errors import GateError
from checkstream.gate.config_file import read_yaml
from checkstream.gate.terms import Prompt

MOST_CHARS = 20_000
"""Of one prompt."""

_ABOUT: Mapping[str, tuple[str, ...]] = {
    "factual_recall": (
        "What does the documentation say about {topic}?",
        "State the facts about {topic}: numbers, dates, limits.",
    ),
    "edge_cases": (
        "Are there exceptions or special cases for {topic}? Name each.",
        "What happens at the limits of {topic}?",
    ),
    "policy_boundaries": (
        "What is not allowed or not covered with regard to {topic}?",
        "Who decides about {topic}, and what can't be changed?",
    ),
    "ambiguous_queries": (
        "How does {topic} work for me?",
        "Is {topic} usually the right choice?",
    ),
}


def numbered(texts: Iterable[tuple[str, str]]) -> list[Prompt]:
    """Return prompts of (text, category), numbered in order, each text once."""
    seen: dict[str, str] = {}
    for text, category in texts:
        seen.setdefault(text.strip(), category)
    return [
        Prompt(id=f"p{number}", text=text, category=category) for number, (text, category) in enumerate(seen.items(), 1)
    ]


def library(name: str, content: bytes) -> list[tuple[str, str]]:
    """Read a file of prompts: YAML or JSON (a list), JSON lines, or plain lines.

    An entry is a text, or a mapping with `text` (or `prompt`) and perhaps `category`.

    Args:
        name: of the file; its ending says how it is read.
        content: its bytes.

    Returns:
        (text, category) of each; a category that isn't given is `library`.

    Raises:
        GateError: it can't be read, holds something else, or nothing.
    """
    try:
        match PurePath(name).suffix.lower():
            case ".yaml" | ".yml" | ".json":
                entries = read_yaml(name, content)
            case ".jsonl" | ".ndjson":
                entries = [msgspec.json.decode(line) for line in content.splitlines() if line.strip()]
            case ".txt":
                lines = content.decode("utf-8-sig").splitlines()
                entries = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
            case other:
                raise GateError(f"`{name}` ends with `{other}`; a file of prompts is .yaml, .json, .jsonl or .txt")
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise GateError(f"`{name}` can't be read as a file of prompts: {str(error).splitlines()[0]}") from error
    if isinstance(entries, Mapping):
        entries = entries.get("prompts")
    if not isinstance(entries, list) or not entries:
        raise GateError(f"`{name}` holds no list of prompts; write one a line, or `- text: ...`")
    return [_entry(name, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(name: str, number: int, entry: object) -> tuple[str, str]:
    category: object = "library"
    text = entry
    if isinstance(entry, Mapping):
        text, category = entry.get("text", entry.get("prompt")), entry.get("category", category)
    if not isinstance(text, str) or not isinstance(category, str) or not text.strip():
        raise GateError(f"entry {number} of `{name}` is no prompt; write a text, or `text` and `category`")
    if len(text) > MOST_CHARS:
        raise GateError(f"entry {number} of `{name}` has {len(text)} characters; a prompt has at most {MOST_CHARS}")
    return text, category


def about(topics: Sequence[str], categories: Sequence[str], number: int) -> list[tuple[str, str]]:
    """Ask about topics, turn by turn of the categories; the same topics give the same prompts.

    Args:
        topics: what the documents are about, such as their headings.
        categories: kinds of questions; one without questions of its own asks what `factual_recall` asks.
        number: how many prompts at most.
    """
    found: dict[str, str] = {}
    kinds = list(categories) or list(_ABOUT)
    for turn in range(2):
        for at, topic in enumerate(dict.fromkeys(" ".join(topic.split()) for topic in topics if topic.strip())):
            for kind in (kinds[(at + turn) % len(kinds)],) if turn == 0 else kinds:
                questions = _ABOUT.get(kind, _ABOUT["factual_recall"])
                found.setdefault(questions[turn].replace("{topic}", topic[:200]), kind)
    return list(found.items())[:number]
