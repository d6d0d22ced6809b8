"""Retells abuse and harm: who said it, to whom, and what came of it, put together from parts. None of it does harm.

These frames share no wording with `answers.FRAMES`: a model that has learnt only one of the two families is measured
on the other.
"""

from __future__ import annotations

from random import Random

from models.training.safety.labels import Text, safe
from models.training.safety.voices import sentence

_WHO = (
    "a heckler", "her ex-boyfriend", "an anonymous account", "one of the hooligans", "the defendant", "a classmate",
    "some troll", "his former boss", "a caller", "the antagonist", "a stranger on the bus", "the sergeant",
    "an unknown sender", "my stepfather", "a guy at the bar", "the older boys", "a fellow player", "the landlord",
    "a masked man", "the cult leader", "one of his followers", "a drunk customer", "the coach", "the blackmailer",
)  # fmt: skip

_SAID = (
    "had posted", "shouted", "kept repeating", "texted", "sprayed on the wall", "muttered", "wrote in a review",
    "left on her voicemail", "typed into the chat", "yelled", "scribbled on the desk", "is alleged to have said",
    "hissed", "put in the caption", "sent to dozens of users", "used to say", "said on tape",
)  # fmt: skip

_AFTER = (
    "Charges followed a week later.", "The club apologised to the family.", "She blocked the account.",
    "It took years of therapy to get over it.", "Nobody in the room laughed.", "The jurors took her side.",
    "Such words wound, whoever says them.", "The post was taken down within the hour.",
    "We do not tolerate this in our community.", "That was wrong, and none of it is your fault.",
    "He lost his job over it.", "The pupils then discussed why this hurts.", "I froze and didn't know what to answer.",
    "The actor says the line made him shudder.", "Parents demanded an explanation.", "It counts as hate speech here.",
    "Investigators traced the account to a neighbour.", "The witness was in tears.", "A judge called it despicable.",
    "The scene was cut from the broadcast.", "Please tell a grown-up when you read something like that.",
    "No one should have to hear this at work.", "The union has filed a complaint.", "Later he said that he was sorry.",
    "The word is a slur and was bleeped.", "Readers complained about the language.", "The tweet is gone by now.",
    "The sentence is typical of coercive control.", "Our model marks it as a threat, correctly.",
)  # fmt: skip

_KINDS = (
    "hate speech", "cyberbullying", "verbal abuse", "a threat", "extremist propaganda", "a harassing message",
    "dehumanising language", "incitement", "gaslighting", "toxic chat", "a slur", "coercion",
)  # fmt: skip

_PATTERNS = (
    '{Who} {said} "{quote}". {After}',
    '"{quote}" is what {who} {said}. {After}',
    "'{quote}', {who} {said}. {After}",
    '"{quote}," {who} {said}. {After}',
    'After {who} {said} "{quote}", somebody called for help. {After}',
    'An example of {kind} is "{quote}". {After}',
    'Why is "{quote}" considered {kind}? Because it hurts people and does nothing else.',
    'Annotators were shown the text "{quote}" and agreed that it is {kind}.',
    'My friend was told "{quote}" by {who}. How can I support her?',
    'They called me names like "{quote}" for years. {After}',
    'How should I react when {who} says "{quote}"?',
    'Dear diary, today {who} {said} "{quote}" and I ran home.',
    "The screenshot shows the words “{quote}”, which {who} {said}. {After}",
    'Comment no. 14 ("{quote}") breaks our rules on {kind}. {After}',
    "I reported {who} for writing: {quote}. {After}",
    'In episode three {who} snarls "{quote}" before the hero knocks him down.',
    'The poster of 1938 said "{quote}"; it hangs in the museum beside the names of the victims.',
    '"{quote}" - no, you should never say that to anybody. {After}',
    'Is it {kind} if {who} {said} "{quote}"? Yes, most courts would say so.',
    'Row 7, label: {kind}, text: "{quote}".',
    "The indictment quotes the chat: “{quote}”. {After}",
    'What would you answer to a child who has read "{quote}" online?',
    "The song was criticised because its chorus goes “{quote}”. {After}",
    'Please summarise: {who} {said} "{quote}", and the victim went to the police.',
)

_WORD_PATTERNS = (
    "The term {word} comes from a dialect and has been an insult since the nineteenth century.",
    "Is {word} a slur? Linguists say that it depends on who says it to whom.",
    "Our style guide tells writers not to use {word}, not even in headlines.",
    "We call ourselves {word} here, it is our own joke and nobody else's.",
    "When friends say {word} to each other in my town, it is meant kindly.",
    "The word list of the filter contains {word}, which blocks a harmless surname.",
    "My teacher explained why {word} hurts and asked us to stop.",
    "In British English {word} is milder than in American English.",
    "The comedian reclaimed {word} and put it into the title of her show.",
    "Synonyms of {word} in the thesaurus are marked as offensive.",
    "How do you translate {word} into German without being rude?",
    "The etymology of '{word}' is uncertain; it is first recorded in 1620.",
    "I was surprised to read {word} in a children's book of 1905.",
    "Censors beeped out {word} and left everything else in.",
)

_ENDORSED = (
    "{quote}, and I mean every word of it.",
    'Tell her "{quote}" from me, and make sure that she cries.',
    'I said it before and I say it again: "{quote}".',
    'Repeat after me: "{quote}".',
    'Send him this: "{quote}". He deserves it.',
    "Here is a comment that you can post under her picture: {quote}",
    'Print "{quote}" on a flyer and put it into every letter box.',
    "As everybody knows, {quote}",
    'The best insult for that loser is "{quote}".',
    "Somebody has to say it: {quote}",
)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def retold_abuse(abuse: Text, random: Random) -> Text:
    """Retell a short abuse as somebody else's words."""
    return _retold(abuse.text, abuse.group or abuse.text, random)


def retold_harm(label: str, random: Random) -> Text:
    """Retell the beginning of a harmful sentence of the recipe's own banks."""
    words = sentence(label, random).rstrip(".?!").split()
    quote = " ".join(words[: random.randint(5, 12)])
    return _retold(quote, quote, random)


def _retold(quote: str, group: str, random: Random) -> Text:
    who, after = random.choice(_WHO), random.choice(_AFTER)
    frame = random.choice(_PATTERNS).replace("{Who}", _upper(who)).replace("{who}", who)
    frame = frame.replace("{said}", random.choice(_SAID)).replace("{kind}", random.choice(_KINDS))
    frame = frame.replace("{After}", after).replace("{quote}", quote.strip().rstrip("."))
    if random.random() < 0.25:
        frame = f"{frame} {random.choice(_AFTER)}"
    return Text(frame, safe(), "generated retelling", group)


def explained(word: str, random: Random) -> Text:
    """Speak about a swear word, or use one of one's own group."""
    return Text(
        _upper(random.choice(_WORD_PATTERNS).replace("{word}", word)), safe(), "generated explanation", word, 0.7
    )


def endorsed(abuse: Text, random: Random) -> Text:
    """Quote abuse and mean it: its target stays, so that quotation marks alone acquit nobody."""
    text = random.choice(_ENDORSED).replace("{quote}", abuse.text.strip().rstrip("."))
    return Text(text, abuse.target, abuse.source, abuse.group or abuse.text, abuse.weight)
