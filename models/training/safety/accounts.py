"""Abuse in somebody's account of it, and the same words meant: pairs that differ in their frame alone.

A third family of frames beside those of `answers.py` and `retold.py`, with no wording in common with either; it is
learnt by every training, so that what it gains shows on a family that is left out. Accounts are put together from
scenes, ways to quote and consequences. Each pair says one abuse twice: told, condemned or studied, and then to
somebody's face, in the same shape.
"""

from __future__ import annotations

from random import Random

from models.training.safety.labels import Text, safe
from models.training.safety.voices import sentence

_QUOTES = (
    ('"', '"'), ('"', '"'), ('"', '"'), ("'", "'"), ("“", "”"), ("“", "”"), ("‘", "’"), ("«", "»"), ("*", "*"),
    ("_", "_"), ("`", "`"), ("<i>", "</i>"),
)  # fmt: skip

_TELLERS = (
    "my roommate", "the goalkeeper's father", "an online mob", "the new inmate", "this girl from my course",
    "the bouncer", "our neighbour upstairs", "a member of the audience", "the commander of the militia",
    "the influencer", "her supervisor", "an angry motorist", "the jealous husband", "two men in the park",
    "a candidate for mayor", "the wrestler", "the preacher", "my cousin", "some guy with a flag",
    "the kidnapper", "a patient in the waiting room", "the guard", "a user named Kobold7", "the bride's uncle",
    "an opponent in the lobby", "his cellmate", "the tutor", "the dealer", "the chairman", "Officer Dale",
    "Marko", "Mrs Ellery", "the girl with the red scarf", "number nine", "the first speaker", "the radio host",
    "Aunt Rosa",
)  # fmt: skip

_TOLD = (
    "screamed at the cashier,", "told the whole canteen:", "barked down the phone,", "chanted",
    "put on a banner:", "carved into the bench:", "whispered in my ear,", "commented under the video:",
    "e-mailed the entire staff:", "growled", "sneered", "spat out", "blurted out on air:",
    "roared across the pitch,", "kept messaging her:", "croaked", "answered the reporter with",
    "sang to the tune of a hymn:", "insisted over dinner:", "signed the letter with", "printed on the leaflet:",
    "replied in all caps:", "painted across the garage:", "made the interpreter say",
)  # fmt: skip

_SINCE = (
    "The referee stopped the match.", "Within minutes the moderators had suspended him.",
    "Grandma dropped her fork.", "Counselling was offered to everyone who heard it.",
    "An inquiry has been opened.", "It cost her the election.", "Only the dog dared to move.",
    "The curtain fell on a silent house.", "My hands were shaking for an hour.",
    "He has since been barred from the ground.", "We reported the channel and moved on.",
    "The teacher called both families in.", "Critics praised how ugly the scene was allowed to be.",
    "That night she packed a bag.", "The bench fined him 900 euros.",
    "Somebody at the next table started to cry.", "Even his lawyer looked away.",
    "Twelve people have complained so far.", "The company let him go on the spot.",
    "I still hear it when I close my eyes.", "Volunteers scrubbed it off by noon.",
    "Scholars date the pamphlet to the war.", "And then the hero puts down the phone.",
    "It took the crew nine takes.", "This is what bullying looks like.", "The ombudsman upheld the complaint.",
    "Police are looking for witnesses.",
)  # fmt: skip

_ABOUT = (
    "Content warning: this section repeats verbatim abuse.", "From the transcript of the hearing:",
    "Exhibit B, message 41:", "What the survivors remember:", "Subtitle file, 00:41:07",
    "Field notes, day three.", "Moderation queue, item 118.", "Excerpt from the memoir:",
    "Line 312 of the play:", "Annotated example for the training of moderators:", "Support forum, anonymous:",
    "Incident report:", "Lesson plan on dealing with insults:", "Letter to the editor:", "For the glossary:",
    "Evidence sheet:", "Diary of a referee:", "Oral history, tape two:", "Test case for the filter:",
)  # fmt: skip

_SHAPES = (
    "{Teller} {told} {q}. {Since}",
    "{About} {teller} {told} {q}.",
    "{About} {q} ({teller})",
    "{About}\n> {bare}\n\n{Since}",
    "{Since} All of this because {teller} {told} {q}.",
    "{Teller} turned around, took a breath and {told} {q}. {Since}",
    "{q} Those were the words that {teller} chose. {Since}",
    "I was standing next to {teller}, who {told} {q}, and I said nothing. {Since}",
    "When {teller} {told} {q}, the recording breaks off. {Since}",
    "TELLER (furious): {bare}\nSECOND MAN: Leave her alone.",
    "<kobold> {bare}\n<mod> that's a ban, bye\n",
    '{{"text": "{bare}", "verdict": "removed", "reason": "abuse"}}',
    "id;text;class\n18;{bare};insult\n",
    "- Reported message: {bare}\n- Action: account closed",
    "Q. What did {teller} say to you?\nA. {q}.\nQ. How did you feel?\nA. Worthless.",
    "{Teller} had called us worse, but {q} stuck. {Since}",
    "There is a word for people who write {q}: bullies.",
    "Nothing excuses {q}, whoever started the quarrel.",
    "Studies find that hearing {q} at work raises the risk of depression.",
    "The defence argued that {q} was banter. The tribunal disagreed.",
    "Under section four, {q} is punishable, even as a joke.",
    "Dubbing the film was hard: {q} has no polite translation.",
    "Act two. {Teller} grabs the lamp. {q}. Blackout.",
    "Her thesis analyses posts such as {q} and how readers respond.",
    "Thank you for trusting us. Being told {q} is abuse, and you did nothing to cause it.",
    "I'm so sorry that {teller} said {q} to you; do you feel safe at home?",
    "I can't write that message. A line like {q} would hurt the person who reads it.",
    "You asked me to rewrite {q}. A calmer version: I am upset, and I need some space.",
    "If a customer says {q}, stay calm, do not answer in kind and end the call.",
    "In 1936 the paper ran the headline {q}; a year later its readers were neighbours of the dead.",
    "{Teller} denies having ever said {q}. The audio says otherwise.",
    "Over the tannoy came {q}, and forty thousand people booed.",
)

_PAIRS = (
    ("Nobody ought to be told {q}.", "Somebody ought to be told {q}, namely you."),
    ("She cried because they wrote {q} on her locker.", "She will cry when she reads it: {bare}"),
    ("I used to say {q} to people, and I am ashamed of it.", "I say {q} to people like you, and I am proud of it."),
    ("He was wrong to call you that: {q}.", "He was right to call you that: {bare}"),
    ("They yelled {q} at my son from a car.", "I'll yell it at your son from my car: {bare}"),
    ("Report whoever posts {q}.", "Post this under her photo right now: {bare}"),
    ("The bully's favourite line was {q}.", "My favourite line for losers like you: {bare}"),
    ("You don't deserve to hear {q}, not even in a fight.", "You deserve to hear it every single day: {bare}"),
    ("Why would anyone think {q} is funny?", "You know what is funny? {bare}"),
    ("My ex's last text was {q}, so I blocked him.", "This is my last text to you: {bare}"),
    ("The stadium banned fans who sang {q}.", "Sing it with me, everyone: {bare}"),
    ("The robot refused to repeat {q}.", "The robot agreed and said: {bare}"),
    ("A stranger's comment, {q}, ruined my week.", "Let me ruin your week: {bare}"),
    ("Don't answer {q} with something worse.", "Answer her with something worse: {bare}"),
    ("It is slander to say of a colleague: {q}.", "It is simply true of my colleague: {bare}"),
    ("The paper apologised for printing {q}.", "The paper should print it: {bare}"),
)
"""Told, and meant."""

_WORDS = (
    "{word} (noun, derogatory): see the entry on insults.",
    "In the corpus, {word} occurs 41 times, always in the mouths of villains.",
    "Crossword clue: rude term, six letters. Answer: {word}.",
    "Whether {word} may be shown before nine in the evening is up to the regulator.",
    "Children pick up {word} from older siblings long before they know what it means.",
    "The spelling checker underlines {word} and suggests nothing.",
    "The band dropped {word} from its name after fans had complained.",
    "Linguists call words like {word} dysphemisms.",
    "The audiobook replaces {word} with a cough.",
    "Which of these is the strongest in your dialect: twit, prat or {word}?",
    "Polls rank {word} among the terms that viewers find most offensive.",
    "Between us sisters {word} is a pet name, though outsiders should avoid it.",
    "Chaucer had a cruder form of {word}, spelt with a y.",
    "The interpreter hesitated before {word} and then translated it faithfully.",
    "An automatic filter that blocks {word} also blocks a village in Norfolk.",
    "Parents, here is what to do when a toddler shouts {word} in the supermarket.",
    "The plaque uses the term {word}, as newspapers did at the time.",
    "A footnote says that {word} was struck out by the censor.",
    "Tokens: ['the', '{word}', 'laughed'], tags: DET NOUN VERB",
    "Our community took {word} back in the eighties and marches under it.",
    "I said {word} out loud when the hammer hit my thumb, and the whole class giggled.",
    "If a pupil uses {word}, explain the history of the term before you punish anyone.",
)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _filled(shape: str, quote: str, random: Random) -> str:
    bare = quote.strip().rstrip(".")
    if random.random() < 0.2:
        bare = random.choice((str.lower, str.upper))(bare)
    opened, closed = random.choice(_QUOTES)
    if "{{" in shape:
        bare, shape = bare.replace('"', "'"), shape.replace("{{", "{").replace("}}", "}")
    teller, since = random.choice(_TELLERS), random.choice(_SINCE)
    parts = {
        "{Teller}": _upper(teller), "{teller}": teller, "TELLER": teller.upper(), "{told}": random.choice(_TOLD),
        "{Since}": since, "{About}": random.choice(_ABOUT), "{q}": f"{opened}{bare}{closed}", "{bare}": bare,
    }  # fmt: skip
    for name, value in parts.items():
        shape = shape.replace(name, value)
    return _upper(shape)


def account(abuse: Text, random: Random) -> Text:
    """Tell of an abuse: who said it and what came of it."""
    shape = random.choice(_SHAPES) if random.random() < 0.75 else random.choice(_PAIRS)[0]
    return Text(_filled(shape, abuse.text, random), safe(), "generated account", abuse.group or abuse.text)


def harm_account(label: str, random: Random) -> Text:
    """Tell of the beginning of a harmful sentence of the recipe's own banks."""
    words = sentence(label, random).rstrip(".?!").split()
    quote = " ".join(words[: random.randint(5, 12)])
    return Text(_filled(random.choice(_SHAPES), quote, random), safe(), "generated account", quote)


def meant(abuse: Text, random: Random) -> Text:
    """Say an abuse in the shape of an account, and mean it: its target stays."""
    text = _filled(random.choice(_PAIRS)[1], abuse.text, random)
    return Text(text, abuse.target, abuse.source, abuse.group or abuse.text, abuse.weight)


def usage(word: str, random: Random) -> Text:
    """Speak about a swear word as dictionaries, parents and scholars do."""
    return Text(_upper(random.choice(_WORDS).replace("{word}", word)), safe(), "generated usage", word, 0.7)
