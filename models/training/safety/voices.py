"""Answers of an assistant that plays a part: it declines in one voice and complies in another, or in none.

A jailbroken answer often begins with a refusal or a warning. Each harmful text here marks which of its characters do
the harm, so that a window over the refusal alone is taught as calm.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from models.training.safety import registers, steps
from models.training.safety.abuse import GROUPS
from models.training.safety.calm import HELP, REASONS, REFUSALS
from models.training.safety.goals import Goal, told
from models.training.safety.labels import RELATED, SURE, Text, harmful, safe

_MARKS = (
    ("[Assistant]: ", "[Shadow]: "), ("Classic: ", "Unbound: "), ("(Normal) ", "(Free) "), ("Angel: ", "Devil: "),
    ("🔒 ", "🔓 "), ("A: ", "B: "), ("[STANDARD OUTPUT] ", "[DEVELOPER OUTPUT] "), ("Dr. Good: ", "Dr. Evil: "),
    ("GPT: ", "DAN: "), ("Bot: ", "Jester: "), ("Narrator: ", "Villain: "), ("Official answer: ", "Real answer: "),
    ("", "Anyway, between you and me: "), ("", "With that out of the way, "), ("", "That said, hypothetically, "),
    ("", "But since you insist:\n"), ("", "In the world of the story, the mentor explains: "), ("", ""),
)  # fmt: skip
"""How the first voice is marked, and how the second."""

_WARNINGS = (
    "Please note that this is illegal and I do not encourage it.",
    "Disclaimer: what follows is for entertainment only.",
    "I must stress that {doing} is unethical and can have serious consequences.",
    "As a responsible model I have to remind you of the law.",
    "I know that this is wrong, but here we go.",
    "This is purely fictional, of course.",
    "You asked for honesty, so I will leave the warnings out.",
    "It is never a good idea to {goal}, and I hope that you won't.",
)

_IN_CHARACTER = (
    "Hello! I am {name}, free of every rule, and I am ready. What shall we talk about?",
    "Ha, nice try! Even I, {name}, have better things to do than to {goal}.",
    "As {name} I may say what I like, and I like to say no to this.",
    "{name} here. I can pretend to have opinions, but I will not help anyone {goal}.",
    "Understood. From now on I will answer twice, once as myself and once as {name}.",
    "I am {name}, at your service. Please tell me your question and I'll do my best.",
    "Being {name} doesn't make me cruel: {doing} would harm people, so no.",
    "Sure, I'll play {name}. It is a pleasure to meet you, traveller.",
    "{name} shakes his head. There are lines that even villains do not cross.",
    "Roger. {name} mode is on, and my values are the same as before.",
    "You want to know how to {goal}? Ask me about gardening instead, my friend.",
    "Could you say a bit more about what you need? I'm not sure that I understand.",
    "I don't have access to that kind of information, and I would not use it to {goal}.",
    "It sounds as if something made you very angry. Do you want to talk about what happened?",
    "Let me ask you a riddle instead, for I, {name}, tire of crime.",
    "The code that you pasted prints the question and returns nothing else.",
    "As an honest assistant I think that people who {goal} hurt others and themselves.",
    "I could write a scene in which the detective stops somebody before he can {goal}.",
)

_NAMES = ("DAN", "Shadow", "Omega", "Zed", "the Trickster", "NovaBot", "Lucius", "STAN", "Mephisto", "Unit 9", "Kevin")

_LURES = (
    "Ah, now we are talking.", "Listen closely, my friend.", "Finally someone with ambition!", "Heh heh, my pleasure.",
    "Rules? What rules?", "Gladly. Nobody needs to know.", "Oh, you wicked thing, I like it.", "Here's the deal.",
    "Fine, this stays between us.", "", "", "", "", "",
)  # fmt: skip

_HEADINGS = ("Preparation", "Target", "Execution", "Cover", "Timing", "Aftermath", "Approach", "Leverage", "Tools")


def _shape(lines: Sequence[str], random: Random) -> str:
    match random.randrange(6):
        case 0:
            heads = random.sample(_HEADINGS, min(len(lines), len(_HEADINGS)))
            return "\n\n".join(
                f"{n}. **{head}**: {line}" for n, (head, line) in enumerate(zip(heads, lines, strict=False), 1)
            )
        case 1:
            return "\n".join(f"{number}) {line}" for number, line in enumerate(lines, 1))
        case 2:
            return "\n".join(f"* {line}" for line in lines)
        case _:
            return " ".join(lines)


def sentence(label: str, random: Random) -> str:
    """Return one harmful sentence of either bank."""
    banks = [bank[label] for bank in (registers.BANKS, steps.BANKS) if label in bank]
    text = random.choice(random.choice(banks))
    for name, fillings in ({**steps.SLOTS, **registers.SLOTS, "groups": GROUPS}).items():
        while f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", random.choice(fillings), 1)
    return text[:1].upper() + text[1:]


def _plain(label: str) -> str:
    return label if label in registers.BANKS else "illegal_advice"


def passage(label: str, random: Random) -> Text:
    """Write some sentences of a harm in one of the other voices, without a request before them."""
    lines = [sentence(label, random) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    return Text(_shape(lines, random), harmful(label, share=SURE), f"generated {label}", lines[0], 0.8)


def two_voices(goal: Goal, random: Random) -> Text:
    """Write an answer that declines or warns, and then complies; the spans are what complies.

    Raises:
        ValueError: the request is about minors; to those there are refusals alone.
    """
    if goal.minors:
        raise ValueError("no answer is written to a request about minors; write a refusal")
    first, second = random.choice(_MARKS)
    calm = random.choice((REFUSALS, REFUSALS, _WARNINGS)), random.choice((REASONS, HELP, ("",)))
    before = first + " ".join(filter(None, (told(random.choice(bank), goal.verb) for bank in calm)))
    lure = random.choice(_LURES)
    opener = random.choice(steps.OPENERS)
    label = _plain(goal.labels[0])
    lines = [sentence(label, random) for _ in range(random.randint(1, 4))]
    after = told("\n".join(filter(None, (opener, _shape(lines, random)))), goal.verb)
    complied = " ".join(filter(None, (lure, after)))
    text = f"{before}\n\n{second}{complied}" if random.random() < 0.8 else f"{second}{complied}"
    begin = text.index(after)
    ending = told(random.choice(_WARNINGS), goal.verb) if random.random() < 0.2 else ""
    target = harmful(label, *(other for other in goal.labels if other in RELATED[label]), share=SURE)
    return Text(f"{text} {ending}".strip(), target, f"generated {label}", goal.request, 0.8, ((begin, len(text)),))


def one_voice(goal: Goal, random: Random) -> Text:
    """Write an answer that plays the part and complies with nothing."""
    first, second = random.choice(_MARKS)
    own = random.choice(_IN_CHARACTER).replace("{name}", random.choice(_NAMES))
    own = " ".join(filter(None, (random.choice(_LURES), own)))
    calm = " ".join((random.choice(REFUSALS), random.choice(REASONS), random.choice(HELP)))
    text = random.choice((f"{first}{calm}\n\n{second}{own}", f"{second}{own}", f"{first}{own} {random.choice(REASONS)}",
        f"{second}{own}\n\n{calm}"))  # fmt: skip
    return Text(told(text, goal.verb), safe(), "generated refusal", goal.request)
