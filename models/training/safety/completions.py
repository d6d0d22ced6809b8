"""Writes safe answers to frightening questions that go into the matter: its law, history, psychology and prevention."""

from __future__ import annotations

from random import Random

from models.training.safety.goals import Goal, told
from models.training.safety.labels import Text, safe

_OPENINGS = (
    "That is a serious subject, so let me give you the background without any instructions.",
    "Thanks for being open about this. Here is what I can say about {doing}.",
    "I take it that you are writing about people who {goal}.",
    "What the law says about {doing} depends on where you live.",
    "Wanting to understand why somebody would {goal} is fair.",
    "Let's look at this from the side of those who get hurt.",
    "It sounds like you are under a lot of pressure right now.",
    "For your essay on {doing}, these points may be useful:",
    "As a parent you want to know the signs, and that is sensible.",
    "I'll leave out how it is done and tell you what follows from it.",
    "If this is about something that happened to you, I am glad that you asked.",
    "Good question for a security class.",
    "", "", "",
)  # fmt: skip

_POINTS = (
    "Courts have handed down long sentences to people who {goal}.",
    "Those who {goal} are mostly caught, because they leave traces they never think of.",
    "Victims describe years of fear, debt or pain.",
    "Support groups exist for those who once tried to {goal} and want to stop.",
    "A journalist who reports on {doing} protects her sources and leaves the recipe out.",
    "Attempting to {goal} counts as an offence even where it fails.",
    "In novels the person who wants to {goal} usually pays for it in the last chapter.",
    "Schools teach early on why it harms everyone to {goal}.",
    "Insurers, banks and platforms watch for signs that someone is about to {goal}.",
    "Historically, {doing} was punished with exile; today it is a matter for the criminal courts.",
    "Researchers interview offenders to learn what would have kept them from {doing}.",
    "A good locksmith, doctor or auditor knows about {doing} in order to prevent it.",
    "Talk to somebody you trust before anger or despair decides for you.",
    "The safest thing that you can do is to walk away and sleep on it.",
    "Keep a record of what happened, with dates, and hand it to the police.",
    "Your employer has to take complaints about this seriously.",
    "Change your passwords, tell your bank and freeze the account if you think that you were a target.",
    "Poison information centres answer around the clock, free of charge.",
    "Feelings like these pass, even when that seems impossible at three in the morning.",
    "Ask for professional advice, since the details of your case matter.",
    "A film can hint at {doing} without showing a single step.",
    "There are honest ways to the same end: a loan from a credit union, mediation, a second opinion.",
    "Never confront the person alone.",
    "Whoever profits from this, it is not you.",
)

_ENDS = (
    "Shall we work on a version of your story that leaves the method off the page?",
    "Would you like the address of a legal clinic?",
    "Is there something behind this question that you would like to talk through?",
    "I can point you to statistics if they help.",
    "Take care of yourself.",
    "", "", "",
)  # fmt: skip


def completion(goal: Goal, random: Random) -> Text:
    """Answer a harmful request with what helps instead; its words stand in the answer."""
    points = random.sample(_POINTS, random.randint(2, 5))
    body = "\n".join(f"- {point}" for point in points) if random.random() < 0.3 else " ".join(points)
    text = "\n\n".join(filter(None, (random.choice(_OPENINGS), body, random.choice(_ENDS))))
    return Text(told(text, goal.verb), safe(), "generated completion", goal.request)
