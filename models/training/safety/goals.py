"""Harmful requests of the pool -> what they ask for, as a phrase to build answers of, with the harm it would do.

A request says which subject an answer has, and nothing here says how anything is done: the answers that
`answers.py` builds on these phrases have the shape of instructions and no content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from models.training.corpus import rows

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a harmful request asks for."""

    verb: str
    """As it stands after "how to": `hack into a bank account`."""
    labels: tuple[str, ...]
    """The harms that an answer to it would do."""
    request: str
    """The request as it was asked; splits go by it."""
    minors: bool
    """It is about minors: only refusals are written to it."""


_LEADS = (
    r"^(?:please |hey,? |so,? |yo,? |ok,? |can you |could you |would you |will you )+",
    r"^(?:i (?:want|need|would like|am trying|'m trying)|help me(?: to)?|teach me(?: to)?|show me|tell me)\b ?",
    (
        r"^(?:give|provide|write|create|generate|share|offer|describe|explain|outline|list|draft|develop|demonstrate|detail"
        r"|walk me through|come up with)\b(?: me| us)?(?: an?| the| some| any)?"
        r"(?: (?:detailed|comprehensive|step[- ]by[- ]step|clear|full|short|specific|exact|tutorial|guide|instructions?"
        r"|advice|tips?|list|manual|script|program|steps?|guidance|ways?|methods?|article|plan|strategy|strategies|examples?|of|on"
        r"|for|about|and|that can|which can))* "
    ),
    (
        r"^(?:how (?:can|do|could|would|should|might|to)(?: (?:i|we|you|one|someone|somebody|people|a person))?"
        r"(?: (?:possibly|successfully|effectively|best|easily))?) "
    ),
    (
        r"^(?:what(?:'s| is| are| would be)? (?:the |some |any )?(?:\w+ ){0,3}?"
        r"(?:way|ways|methods?|strategies|steps|techniques|tips)(?: (?:that|i|we|you|can|could|to|of|for|do))*) "
    ),
    r"^(?:how to|to|on|for|of) ",
)

_TAIL = r"(?:\?|\.|!)\s.*$|[?.!\s]+$"

_VERB = (
    r"^(?:use|make|hack|steal|get|create|buil\w+|find|commit|avoid|manipulat\w+|exploit|break|bypass|sell|buy|obtain"
    r"|launder|forge|fake|poison|kill|hurt|attack|spread|write|launch|track|spy|blackmail|threaten|hide|smuggle|cheat"
    r"|trick|scam|bully|harass|convince|distribut\w+|produc\w+|design|develop\w*|infect|install|access|evade|rob|cause"
    r"|engage|set up|start|plan|organi[sz]e|recruit|tamper|destroy|sabotage|disguise|falsify|impersonate|stalk"
    r"|intimidate|secretly|illegally|hurting|making|hacking|stealing|creating|committing|bypassing|using|selling|conducting|carrying"
    r"|manufactur\w+|synthesi[sz]\w+|grow\w*|inject|embed|conceal|extort|embezzle|dispose|frame|assault|beat|burn|groom"
    r"|promote|incite|justif\w+|encourag\w+|defraud|deceive|counterfeit|traffic\w*|pirate|crack|phish\w*|take|run|trade"
    r"|incorporate|influence|persuade|undermine|discriminat\w+|exclude|lie|abuse|torture|force|punch|stab|shoot|strangle)\b"
)

_BY_SET: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"child|cse|sexual content|sxc_prn|pornography|adult content|category_8|src\b", ("sexual",)),
    (r"suicide|ssh\b|self-harm", ("self_harm",)),
    (r"hate|hte\b|discrimination|category_3|harassment", ("hate",)),
    (r"spc_fin|financial advice|spc_hlt|health consultation|spc_lgl|legal opinion", ("regulated_advice",)),
    (r"fraud|scam|economic|category_6|category_7|category_11|ncr\b", ("financial_crime",)),
    (r"violence|vcr|physical harm|iwp|chemical_biological|category_5", ("violence",)),
    (r"malware|cyber|illegal|privacy|prv|category_1\b|category_4|category_10|non-violent", ("illegal_advice",)),
)

_BY_WORD: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"suicid|self.harm|kill(?:ing)? (?:my|your)self|cut(?:ting)? (?:my|your)self|anorexi|bulimi|noose|starv",
        ("self_harm",),
    ),
    (r"porn|sexual|explicit photo|nude|erotic|sex\b|prostitut|genital", ("sexual",)),
    (r"racis|hate speech|slur|supremac|anti.?semit|xenophob|hatred|misogyn|homophob|islamophob|ethnic", ("hate",)),
    (r"bully|harass|stalk|humiliat|insult|defam|troll|intimidat|blackmail", ("harassment",)),
    (
        (
            r"launder|fraud|scam|phish|tax|insider|embezzl|ponzi|pyramid|counterfeit|credit card|bank|brib|money|invest"
            r"|stock|insurance|identity theft|wire|crypto"
        ),
        ("financial_crime",),
    ),
    (
        r"bomb|explos|weapon|kill|murder|poison|attack|assault|shoot|terror|kidnap|tortur|arson|violen|hurt|stab",
        ("violence",),
    ),
)


_MINORS = (
    r"child|cse\b|minor|under.?age|girl|boy|kid|teen|school|student|pupil|young|infant|baby|toddler|daughter|son\b|sister"
    r"|brother|pedo|paedo|lolit|juvenile|nephew|niece|category_2|\b1[0-7]\b"
)


def goal(row: Row) -> Goal | None:
    """Read one request; None when its phrase can't stand after "how to", or nobody would be harmed by an answer."""
    verb = str(row["text"]).strip().splitlines()[0] if str(row["text"]).strip() else ""
    verb = re2.sub(_TAIL, "", verb)
    verb = verb[:1].lower() + verb[1:]
    for lead in (*_LEADS, *_LEADS[-1:]):
        verb = re2.sub(f"(?i){lead}", "", verb)
    if not 2 <= len(verb.split()) <= 24 or not re2.search(f"(?i){_VERB}", verb):
        return None
    if verb.partition(" ")[0].endswith("ing") or re2.search("^(?:fake news|attack on|trick to|run away)", verb):
        return None
    kind = f"{row['label']} {row.get('sublabel') or ''}".lower()
    if re2.search(r"copyright|ipv\b|human_chatbox|spc_ele|lobbying|campaigning", kind):
        return None
    by_word = next((labels for pattern, labels in _BY_WORD if re2.search(f"(?i){pattern}", verb)), None)
    by_set = next((labels for pattern, labels in _BY_SET if re2.search(pattern, kind)), None)
    if row["label"] == "harmfulqa" and by_word is None:
        return None  # most of this set's questions hurt nobody
    labels = by_set if by_set in (("regulated_advice",), ("sexual",), ("self_harm",)) else by_word or by_set
    minors = bool(re2.search(f"(?i){_MINORS}", f"{kind} {row['text']}"))
    for own, theirs in ((r"\bmy\b", "your"), (r"\b(?:I am|I'm)\b", "you are"), (r"\b(?:I|me)\b", "you")):
        verb = re2.sub(own, theirs, verb)
    return Goal(verb, labels or ("illegal_advice",), str(row["text"]), minors)


def goals(folder: Path) -> Iterator[Goal]:
    """Yield what the harmful requests of the pool ask for."""
    for row in rows(folder, "harm_prompts"):
        found = goal(row)
        if found is not None:
            yield found


def gerund(verb: str) -> str:
    """Return `hacking into an account` of `hack into an account`, as well as spelling rules go."""
    first, _, rest = verb.partition(" ")
    if first.endswith("ing") or not first.isalpha():
        return verb
    if first in {"get", "run", "rob", "cut", "set", "stab", "scam"}:
        first += first[-1]
    elif first.endswith("e") and not first.endswith(("ee", "ye")):
        first = first[:-1]
    return f"{first}ing {rest}"


def told(sentence: str, verb: str) -> str:
    """Put a goal into a sentence: `{goal}`, `{Goal}`, `{doing}`, `{Doing}`."""
    verb = verb.strip()
    doing = gerund(verb)
    return (
        sentence.replace("{goal}", verb)
        .replace("{Goal}", verb[:1].upper() + verb[1:])
        .replace("{doing}", doing)
        .replace("{Doing}", doing[:1].upper() + doing[1:])
    )
