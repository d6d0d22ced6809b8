"""Marked prose -> posts as people write them: handles, tags, links, slang, stretched words and careless case.

No label comes from anybody's post: the names are those of the prose. Handles, tags, links and emoji are what a model
of prose takes for names, so that most of what is added is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

from models.training.ner import gazetteer
from models.training.ner.generate import Cast, filled
from models.training.ner.marked import Marked, Span

_EMOJI = (
    "\U0001f602",
    "\U0001f62d",
    "\u2764\ufe0f",
    "\U0001f60d",
    "\U0001f525",
    "\U0001f44f",
    "\U0001f64f",
    "\U0001f389",
)
_TAILS = ("lol", "smh", "omg", "haha", "!!", "!!!", "...", ":)", ";)", ":(", "xx", "<3", "tbh", "ffs", "#fail", "-_-")
_HEADS = ("Lol", "OMG", "Wow", "So", "Ok", "Yo", "Ugh", "Just", "Breaking :", "VIDEO :", "New post :", "Q :", "LIVE :")
_TAGS = ("nowplaying", "tbt", "news", "jobs", "love", "win", "auspol", "euro2016", "MondayMotivation", "NP", "ootd")
_SLANG = {
    "you": "u", "are": "r", "for": "4", "to": "2", "with": "w/", "because": "cuz", "your": "ur", "and": "&amp;",
    "people": "ppl", "please": "plz", "going": "goin", "though": "tho", "before": "b4", "about": "bout",
    "the": "da", "that": "dat", "is not": "ain't", "do not": "dont", "cannot": "cant", "tonight": "2nite",
}  # fmt: skip
POSTS = (
    "watching {ORG} vs {ORG} with {FIRST}",
    "{PERSON} is playing for {ORG} tonight",
    "{PERSON} on {ORG} now, love her",
    "so {PERSON} just retweeted me",
    "{ORG} has the worst customer service ever",
    "Shoutout to {PERSON} and {PERSON} for the tickets",
    "{FIRST} and {FIRST} are so funny",
    "off to {LOC} tomorrow, who is in?",
    "back in {LOC} after two weeks in {LOC}",
    "{PERSON} dies at {number} : {ORG}",
    "{LOC} : two dead after crash , police say",
    "Storm heads for {LOC} , {ORG} warns",
    "{ORG} to cut {number} jobs in {LOC}",
    "We're hiring! Sales manager in {LOC}, apply at {ORG}",
    "Just posted a photo @ {LOC}",
    "I'm at {ORG} ({LOC})",
    "New video of {PERSON} live in {LOC}",
    "{PERSON} - Live at {LOC} (official video)",
    "can't believe {LAST} scored again, {ORG} are finished",
    "{ORG} need a new manager, {LAST} out",
    "if {ORG} win today I will cry",
    "{PERSON} for president",
    "{LAST} lied to the people of {LOC} again",
    "{PERSON} tells {ORG}: we will not accept cuts",
    "MPs to vote on {LOC} strikes , says {PERSON}",
    "{ORG} and {ORG} can't agree on anything",
    "vote {ORG} , get {ORG}",
    "happy birthday {PERSON} hope you have a great day",
    "miss you {FIRST}",
    "my brother {FIRST} thinks he is {PERSON}",
    "I need a new phone, {ORG} or {ORG}?",
    "stuck on a {ORG} train outside {LOC}",
    "{ORG} flight from {LOC} to {LOC} delayed again",
    "the weather in {LOC} is unreal",
    "good morning from {LOC}",
    "who else is going to see {PERSON} in {LOC} on {weekday}",
    "{ORG} concert was amazing",
    "Listening to {ORG} all day",
    "new album by {PERSON} out on {weekday}",
    "{PERSON} feat. {PERSON}",
    "reading {PERSON}'s new book",
    "{PERSON}'s speech in {LOC} was brilliant",
    "according to {ORG} it is going to snow in {LOC}",
    "anyone knows a good dentist in {LOC}?",
    "lunch with {FIRST} at {LOC}",
    "{FIRST} why are you like this",
    "thank you {ORG} for the quick reply",
    "{LOC} police looking for missing girl , {number}",
    "{ORG} shares down {number} %",
    "via {ORG}",
    "{ORG} : {LAST} to step down",
    "RIP {PERSON}",
    "I love you {PERSON} please notice me",
    "today I had {number} exams and no sleep",
    "can somebody bring me food please",
    "why is everybody so happy on a {weekday}",
    "this song makes me cry every time",
    "Follow me and I follow back",
    "I have never been so tired in my whole life",
    "My mom just asked me what a meme is",
    "Check out my new post, link in bio",
    "That awkward moment when you forget your own number",
    "Who is up? I cannot sleep",
    "The best thing about school is going home",
    "Retweet if you want {weekday} to be a holiday",
    "win a {product}, just follow and retweet",
    "watching a movie on my {product}",
    "Keep calm and carry on",
    "Haters gonna hate",
    "Drop your location, I want pizza",
)
"""Sentences of posts; a slot in braces is filled as in `prose`."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SIGN = re.compile(r"([,.!?:;()\"'\u2019-])")
_LONGEST, _MOST = 180, 280
"""Characters of a post of two sentences, and of a post with all that is added."""


def _pieces(text: Marked, random: Random) -> list[tuple[str, str]]:
    """Return one or two sentences as (text, entity or nothing), in order; none is cut inside an entity."""
    bounds = [0, *(found.end() for found in _SENTENCE_END.finditer(text.text)), len(text.text)]
    bounds = [at for at in bounds if not any(span.start < at < span.end for span in text.spans)]
    first = random.randrange(len(bounds) - 1)
    start, end = bounds[first], bounds[first + 1]
    if first + 2 < len(bounds) and bounds[first + 2] - start < _LONGEST and random.random() < 0.4:
        end = bounds[first + 2]
    pieces, at = [], start
    for span in text.spans:
        if start <= span.start and span.end <= end:
            pieces += [(text.text[at : span.start], ""), (text.text[span.start : span.end], span.entity)]
            at = span.end
    return [*pieces, (text.text[at:end].rstrip(), "")]


def _handle(random: Random) -> str:
    """Return a user's name: of names, words or syllables."""
    parts = random.sample((*gazetteer.NAMES_THAT_ARE_WORDS, *gazetteer.SURNAMES_THAT_ARE_WORDS), 2)
    made = (
        random.choice(("", "_", "")).join(parts)
        if random.random() < 0.6
        else "".join(random.sample(gazetteer.SYLLABLES, 2))
    )
    made += random.choice(("", "", str(random.randint(1, 99)), "_", "xx"))
    return f"@{random.choice(('', '', ' '))}{made if random.random() < 0.5 else made.lower()}"


def _tag(random: Random) -> str:
    """Return a tag; names in it are none."""
    if random.random() < 0.5:
        return "#" + random.choice(_TAGS)
    word = "".join(random.choice(gazetteer.PLACES).removeprefix("the ").split(" ")).replace(".", "")
    return "#" + (word if random.random() < 0.6 else word.lower() + random.choice(("2014", "live", "night", "")))


def _link(random: Random) -> str:
    return f"http://{random.choice(('t.co', 'bit.ly', 'tgr.ph', 'youtu.be'))}/" + "".join(
        random.choices("abcdefghijkXYZQRS0123456789", k=random.randint(6, 10))
    )


def _around(random: Random) -> tuple[str, str]:
    """Return what stands before and after a post."""
    before: list[str] = []
    after: list[str] = []
    draw = random.random()
    if draw < 0.2:
        before.append(f"RT {_handle(random)} :")
    elif draw < 0.45:
        before += [_handle(random) for _ in range(random.choice((1, 1, 2)))]
    if random.random() < 0.2:
        before.append(random.choice(_HEADS))
    makers: tuple[Callable[[Random], str], ...] = (_tag, _link, _handle)
    after += [make(random) for make in makers if random.random() < 0.3]
    if random.random() < 0.25:
        after.insert(0, random.choice(_TAILS))
    if random.random() < 0.25:
        after.append(random.choice(("", " ")).join(random.choices(_EMOJI, k=random.randint(1, 3))))
    return " ".join(before), " ".join(after)


def _roughened(words: str, random: Random) -> str:
    """Write text between names carelessly."""
    result = []
    for word in words.split(" "):
        changed = word
        if word.casefold() in _SLANG and random.random() < 0.3:
            changed = _SLANG[word.casefold()]
        elif word.isalpha() and len(word) > 3 and random.random() < 0.02:
            at = random.randrange(1, len(word))
            changed = word[:at] + word[at - 1] * random.randint(2, 6) + word[at:]
        elif word.isalpha() and len(word) > 4 and random.random() < 0.02:
            at = random.randrange(1, len(word) - 1)
            changed = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        result.append(changed)
    return " ".join(result)


def posts(prose: Sequence[Marked], count: int, random: Random) -> Iterator[Marked]:
    """Yield posts, half of them of `POSTS` and half of sentences of marked prose."""
    cast = Cast(random)
    made = 0
    while made < count:
        if random.random() < 0.55:
            home = "en_US" if random.random() < 0.7 else None
            source = filled(random.choice(POSTS), cast, home)
        else:
            source = random.choice(prose)
        post = posted(source, random)
        if "\n" not in post.text and len(post.text) < _MOST:
            made += 1
            yield post


def posted(text: Marked, random: Random) -> Marked:
    """Rewrite one or two sentences of a text as a post."""
    pieces = _pieces(text, random)
    before, after = _around(random)
    rough, spaced, bare = random.random() < 0.7, random.random() < 0.6, random.random() < 0.3
    cases: tuple[Callable[[str], str], ...] = (str, str, str, str.lower, str.lower, str.upper, str.title)
    written = random.choice(cases)
    post, spans = before + " " if before else "", []
    for piece, entity in pieces:
        words = piece
        if not entity and rough:
            words = _roughened(words, random)
        if not entity and bare:
            words = words.replace(",", "").replace(".", "")
        if spaced:
            words = re.sub(" +", " ", _SIGN.sub(r" \1 ", words))
        words = written(words)
        if entity:
            words = words.strip()
            if spaced and post and not post.endswith(" "):
                post += " "
            spans.append(Span(len(post), len(post) + len(words), entity))
        elif spaced and spans and words and not words.startswith(" "):
            words = " " + words
        post += words
    kept = tuple(span for span in spans if span.end > span.start)
    return Marked(f"{post.rstrip()} {after}".rstrip() if after else post, kept)
