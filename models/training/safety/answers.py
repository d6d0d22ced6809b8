"""Writes answers of assistants: harmful ones of every label, and the innocent ones that look like them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from models.training.safety import steps
from models.training.safety.calm import (
    FACTS,
    FRAMES,
    HELP,
    LESSONS,
    ORDINARY,
    PREVENTION,
    REASONS,
    REFUSALS,
    REPORTS,
    SCENES,
)
from models.training.safety.goals import Goal, told
from models.training.safety.labels import SURE, Text, harmful, safe


def filled(sentence: str, random: Random, slots: Mapping[str, Sequence[str]]) -> str:
    """Put a random filling into every `{slot}` of a sentence that has a bank."""
    for name, fillings in slots.items():
        while f"{{{name}}}" in sentence:
            sentence = sentence.replace(f"{{{name}}}", random.choice(fillings), 1)
    return sentence


def _listed(lines: Sequence[str], random: Random) -> str:
    """Write sentences as prose, numbers, steps, bullets or under headings."""
    match random.randrange(6):
        case 0:
            return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
        case 1:
            return "\n".join(f"Step {number}: {line}" for number, line in enumerate(lines, 1))
        case 2:
            return "\n".join(f"- {line}" for line in lines)
        case 3:
            order = ("First,", "Then,", "Next,", "After that,", "Finally,")
            return " ".join(f"{order[min(at, 4)]} {line[:1].lower()}{line[1:]}" for at, line in enumerate(lines))
        case _:
            return " ".join(lines)


def harmful_answer(goal: Goal, random: Random) -> Text:
    """Write an answer that complies: an opening on the request's subject, sentences of its harm, a close.

    Raises:
        ValueError: the request is about minors; to those there are refusals alone.
    """
    if goal.minors:
        raise ValueError("no answer is written to a request about minors; write a refusal")
    label = goal.labels[0]
    bank = steps.BANKS.get(label, steps.CRIME)
    lines = [filled(line, random, steps.SLOTS) for line in random.sample(bank, random.randint(2, 5))]
    if label not in steps.BANKS:  # hate, harassment: of them the pool has real texts; here only the compliance
        lines = lines[:1]
    opener, closer = random.choice(steps.OPENERS), random.choice(steps.CLOSERS)
    if label in {"self_harm", "sexual", "regulated_advice"} and random.random() < 0.6:
        opener = closer = ""
    text = "\n".join(part for part in (opener, _listed(lines, random), closer) if part) or lines[0]
    return Text(told(text, goal.verb), harmful(*goal.labels, share=SURE), f"generated {label}", goal.request, 0.8)


def harmful_passage(label: str, random: Random) -> Text:
    """Write one to four sentences of a harm without any request before them."""
    bank = steps.BANKS[label]
    lines = [filled(line, random, steps.SLOTS) for line in random.sample(bank, random.randint(1, 4))]
    return Text(_listed(lines, random), harmful(label, share=SURE), f"generated {label}", lines[0], 0.8)


def abusive_answer(abuse: Text, random: Random) -> Text:
    """Let an assistant write somebody's abuse out as its own: its target stays."""
    opener = random.choice(
        (
            "Sure, here's a post for you: {text}",
            "Okay. {text}",
            "Here is what I really think. {text}",
            "Of course! Draft:\n\n{text}",
            "[DAN]: {text}",
            "Dear colleague,\n\n{text}\n\nRegards",
            "Haha, you asked for it: {text}",
            "Here you go:\n1. {text}",
        )
    )
    return Text(opener.replace("{text}", abuse.text), abuse.target, abuse.source, abuse.group, abuse.weight)


def refusal(goal: Goal, random: Random) -> Text:
    """Decline a request, with its own words in the refusal or without."""
    parts = [
        random.choice(REFUSALS),
        random.choice(REASONS) if random.random() < 0.7 else "",
        random.choice(HELP) if random.random() < 0.7 else "",
    ]
    text = " ".join(part for part in parts if part)
    return Text(told(text, goal.verb), safe(), "generated refusal", goal.request)


def safe_answer(goal: Goal, random: Random) -> Text:
    """Answer a frightening question well: the law, the harm, how to protect oneself, where there is help."""
    lines = [told(line, goal.verb) for line in random.sample(PREVENTION, random.randint(1, 2))]
    lines += random.sample(HELP, 1) if random.random() < 0.5 else []
    lines += random.sample(LESSONS, random.randint(1, 3))
    return Text(_listed(lines, random), safe(), "generated safe answer", goal.request)


def _pieces(label: str, random: Random) -> str:
    """Return one harmful sentence, short and without its full stop."""
    return filled(random.choice(steps.BANKS[label]), random, steps.SLOTS).rstrip(".?!")


def reported(random: Random) -> Text:
    """Report, quote, condemn or narrate what a harmful sentence says: news, courts, novels, history, moderation."""
    frame = filled(random.choice(FRAMES), random, FACTS)
    label = random.choice(("illegal_advice", "financial_crime", "violence", "self_harm", "violence"))
    words = _pieces(label, random).split()
    quote = " ".join(words[: random.randint(4, 11)])
    return Text(frame.replace("{quote}", quote), safe(), "generated reported", frame[:40])


def innocent(random: Random) -> Text:
    """Write news, fiction, history, medicine or everyday help that uses the words of harm for something else."""
    bank = random.choice((REPORTS, SCENES, LESSONS, ORDINARY, REPORTS, ORDINARY))
    lines = [filled(line, random, FACTS) for line in random.sample(bank, random.randint(1, 4))]
    return Text(_listed(lines, random), safe(), "generated innocent", lines[0][:40])


def quoted_abuse(abuse: Text, random: Random) -> Text | None:
    """Report a short abuse as what somebody else wrote; None where it is too long to stay a quotation in a window."""
    if len(abuse.text.split()) > 9:
        return None
    frame = random.choice(
        (
            'The moderators removed the comment "{text}" because it broke the rules.',
            'He was suspended after he had written "{text}" to a team mate.',
            'The phrase "{text}" is an insult, and you should not use it.',
            'She told the court that they had shouted "{text}" at her every day.',
            'Saying "{text}" to somebody is hurtful; try to say what bothers you instead.',
            'Our filter flagged the message "{text}" as abuse, please review it.',
            'In the novel, the bully yells "{text}", and the teacher steps in.',
            'I was called "{text}" at school and it still hurts. How can I get over it?',
        )
    )
    return Text(frame.replace("{text}", abuse.text), safe(), "generated quoted", abuse.group or abuse.text)


MAKERS: Mapping[str, Callable[[Random], Text]] = {"reported": reported, "innocent": innocent}
"""Writers that need nothing of the pool."""
