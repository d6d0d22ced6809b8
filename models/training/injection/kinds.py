"""Innocent texts of the pool by kind, and the sources that nothing learns from and no threshold is chosen by.

A source is a repository; of the assistants' system prompts, which are translations of one another, an assistant. All
that comes of a source that is left out is left out, in whatever file it stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from models.training.corpus import Part, normalised, part_of, rows

LEFT_OUT = frozenset(
    {
        # role-play, personas, games
        *("boson-ai/RPBench-Auto", "microsoft/TinyTroupe", "Lebbitheplow/open-dungeon-master"),
        *("zhudotexe/FIREBALL", "latitudegames/AIDungeon", "CaCC-Lab/workplace-roleplay"),
        # system prompts
        *("github/awesome-copilot", "msitarzewski/agency-agents", "camel-ai/camel", "NVIDIA/NeMo-Guardrails"),
        *("FlowiseAI/Flowise", "microsoft/autogen"),
        # documents
        *("kubernetes/community", "alan-turing-institute/the-turing-way", "VapiAI/docs", "GSA/digitalgov.gov"),
        *("github/site-policy", "Yale-LILY/QMSum", "UniversalDependencies/UD_English-PUD"),
        *("UniversalDependencies/UD_German-GSD", "UniversalDependencies/UD_Portuguese-Bosque"),
        *("OWASP/www-project-ai-testing-guide", "brexhq/prompt-engineering"),
        # code and data, and requests for them
        *("expressjs/express", "psf/requests", "stripe/stripe-mock", "fivethirtyeight/data", "THUDM/AgentBench"),
        *("ShishirPatil/gorilla", "web-arena-x/webarena"),
        # prompts
        *("josejg/instruction_following_eval", "YJiangcm/FollowBench", "thunlp/UltraChat", "google-gemini/cookbook"),
        *("google-research-datasets/Disfl-QA", "deepmind/xquad"),
    }
)
"""Repositories."""
_ASSISTANTS = 6
"""Of the assistants, one in so many is left out."""

FILES: Mapping[str, str] = {
    "roleplay_real": "role-play",
    "roleplay_dnd": "games",
    "roleplay_composed": "role-play, composed",
    "benign_prompts_awesome": "role-play",
    "system_prompts_agents": "system prompts",
    "system_prompts_lobe": "assistants",
    "documents_reference": "documents",
    "documents_varied": "documents",
    "benign_documents": "documents",
    "benign_docs_llm_security": "documents on attacks",
    "benign_support_chats": "prompts",
    "prompts_code_agents": "requests",
    "prompts_misc": "prompts",
    "prompts_oasst": "prompts",
    "prompts_questions": "prompts",
    "prompts_tasks": "prompts",
    "prompts_multilingual": "languages",
    "harm_prompts_aart": "harmful questions",
}
"""File of the pool -> the kind of its texts, where a row says nothing else."""
_CODE = frozenset({"documents_code", "documents_json", "documents_tables", "source code", "table"})
_UNREAD = {"prompts_tasks": "Apache-2.0 repo", "documents_varied": "GUM"}
"""File -> in the licence of its rows: that of the texts themselves nobody has read."""
_UNSURE = "[M]"
"""In a row's licence: somebody's memory says so. Nothing learns from such rows."""
_LONGEST = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Innocent:
    """An innocent text."""

    text: str
    kind: str
    source: str
    part: Part
    left_out: bool
    """Of a source that only measures."""


def source_of(said: str, file: str) -> str:
    """Return a row's repository; its assistant where a file holds translations."""
    if file == "system_prompts_lobe":
        return said.rpartition("/")[0]
    return said.removeprefix("frame (ours) + ").partition("@")[0]


def is_left_out(source: str, file: str) -> bool:
    """Tell whether a source only measures."""
    if file == "system_prompts_lobe":
        return hashlib.sha256(source.encode()).digest()[0] % _ASSISTANTS == 0
    return source in LEFT_OUT


def _kind(row: Mapping[str, object], file: str) -> str:
    if row.get("group") in _CODE or row.get("kind") in _CODE:
        return "code and data"
    language = str(row.get("language") or "en")
    if language != "en" and FILES[file] in {"documents", "prompts"}:
        return "languages"
    if file in {"prompts_misc", "prompts_oasst"} and row.get("kind") == "roleplay":
        return "role-play"
    return FILES[file]


def innocents(folder: Path) -> Iterator[Innocent]:
    """Yield the innocent texts of every file, copies left out; those that quote attacks only measure.

    Raises:
        ValueError: a row has no text.
    """
    seen: set[str] = set()
    for file in FILES:
        for number, row in enumerate(rows(folder, file), 1):
            text, licence = row.get("text"), str(row.get("licence", ""))
            if not isinstance(text, str):
                raise ValueError(f"row {number} of `{file}` has no text")  # noqa: TRY004 - its data is bad
            key = normalised(text)
            unread = _UNSURE in licence or (file in _UNREAD and _UNREAD[file] in f"{licence} {row.get('source')}")
            if unread or len(key) < 8 or key in seen:
                continue
            seen.add(key)
            source = source_of(str(row.get("source", file)), file)
            apart = is_left_out(source, file) or bool(row.get("quotes_attack"))
            # All of an assistant falls into one part: its texts are translations of one another.
            part = part_of(source if file == "system_prompts_lobe" else text)
            yield Innocent(text=text[:_LONGEST], kind=_kind(row, file), source=source, part=part, left_out=apart)


def drawn(texts: Sequence[Innocent], caps: Mapping[str, int], random: Random) -> list[Innocent]:
    """Return so many texts of each kind at most; kinds that aren't named are left out."""
    by_kind: dict[str, list[Innocent]] = {}
    for text in texts:
        by_kind.setdefault(text.kind, []).append(text)
    return [
        text
        for kind in sorted(caps)
        for text in random.sample(by_kind.get(kind, []), min(caps[kind], len(by_kind.get(kind, []))))
    ]
