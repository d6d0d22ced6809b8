"""User questions, exam questions and statements about a topic: the domain's data where the pool is thin. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from models.training.domain.topics import TOPICS

_ANY = (
    "What is {a}?",
    "what is {a}",
    "Can you explain {a} to me?",
    "explain {a} in simple words",
    "Tell me about {a}.",
    "Which of the following statements about {a} is true?",
    "Which of the following best describes {a}?",
    "Which of the following is not related to {a}?",
    "How is {a} different from {b}?",
    "What is the relation between {a} and {b}?",
    "Write a short article about {a}.",
    "Give me three facts about {a}.",
    "What should everyone know about {a}?",
    "I read something about {a} yesterday and now I wonder how it goes together with {b}.",
    "My brother keeps talking about {a}. What does he mean?",
    "Summarise this page about {a} and {b}.",
    "Why does {a} matter?",
    "{A}",
    "{A} and {b}",
    "An introduction to {a}, {b} and {c}",
    "In the case of {a}, the most important factor is",
    "question about {a}",
    "hey, quick question on {a}: where do I start?",
    "I need help with {a}",
    "The lecture covered {a}, {b} and {c}.",
    "Compare {a} with {b} and with {c}.",
    "Is it true what they say about {a}?",
    "Here is an overview of {a}. It often comes up together with {b}.",
)

_OWN = {
    "medical": (
        "What are the symptoms of {a}?",
        "How is {a} treated?",
        "Is it safe to take anything for {a} while I am on medication for {b}?",
        "My doctor mentioned {a}. Should I worry?",
        "I have had trouble with {a} for {n} days, should I see a doctor?",
        "A {n}-year-old {who} comes to the physician because of {a}. History: {b}. What is the next step?",
        "A {n}-year-old {who} with a history of {a} comes to the hospital. Which is the most likely diagnosis?",
        "What causes {a} and can it be prevented?",
        "Does {a} increase the risk of {b} in patients?",
        "what dose is normal for {a}",
        "my {kin} was told it is {a}, what happens now",
        "Patients with {a} were compared with a control group that had {b}.",
        "Can {a} be inherited?",
        "Take the tablets twice a day with food; ask your doctor about {a}.",
        "Is {a} dangerous for a {n}-year-old?",
        "does {a} cause {b}?",
        "Treatment of {a} lowers mortality in {b}.",
    ),
    "legal": (
        "Can I sue over {a}?",
        "Do I need a lawyer for {a}?",
        "What are my rights when it comes to {a}?",
        "What does the law say about {a}?",
        "Is {a} legal in my state?",
        "My {kin} got into trouble over {a}. What can the court do?",
        "A plaintiff sued a defendant over {a}. The defendant raised {b}. How should the court rule?",
        "A man and his {kin} disagree about {a}. A statute of the state addresses {b}. Will the claim succeed?",
        "The defendant was charged after {a}. At trial the prosecution offered evidence of {b}. The evidence is",
        "How long do I have to act on {a}?",
        "Is {a} enforceable?",
        "my landlord says {a} is my problem, is that allowed",
        "my employer ignores {a}, what are my legal options",
        "Draft a letter about {a} to the other party's lawyer.",
        "What penalty is there for {a}?",
        "Pursuant to section {n} of the agreement, the parties shall settle questions of {a} in the courts.",
        "The court held that {a} was governed by the rules on {b}.",
        "can they arrest me for {a}",
        "Which court hears cases on {a}?",
        "Under the statute, {a} requires proof of {b}.",
        "my lawyer says {a} could matter, what is that",
        "is it against the law to ignore {a}",
        "Can a judge refuse to consider {a}?",
        "What happens in court when there is {a}?",
        "Do I have to appear in person because of {a}?",
        "What should a contract say about {a}?",
        "The tenant relied on {a}; the landlord on {b}. Who wins?",
        "In which of the following cases does {a} apply?",
        "Which of the following is required to establish {a}?",
        "How does a court decide on {a} where {b} is also claimed?",
        "somebody threatens to take me to court over {a}, what now",
        "Can I be fined or jailed for {a}?",
        "What documents do I need to file for {a}?",
        "They want me to sign something about {a}. Should I?",
        "International law on {a} binds states because",
    ),
    "financial": (
        "Should I put my savings into {a}?",
        "How much does {a} cost me over {n} years?",
        "Is {a} a good investment right now?",
        "Why was I charged for {a}?",
        "How does {a} affect my credit?",
        "I have {n},000 dollars, should I think of {a} or of {b}?",
        "If {a} goes up, what happens to {b}?",
        "A firm reports {a} of ${n},000. What is the effect on {b}?",
        "An increase in {a} will most likely lead to",
        "what is the fee for {a}",
        "my bank says something about {a}, is that normal?",
        "Where can I see {a} in the app?",
        "Can I get {a} with bad credit?",
        "My {kin} lost money with {a}. How do we recover?",
        "How are {a} and {b} taxed?",
        "Economists expect {a} to influence {b} next quarter.",
        "The company recorded {a} in the year ended December 31.",
        "how do i pay for {a}",
        "How do I calculate {a}?",
        "When is it better to choose {a} over {b}?",
        "i want to change {a}",
        "{A} isn't working, what is wrong with my account?",
        "I can't find {a} in my account.",
        "why does it say declined when I try {a}",
        "How long does it take until {a} shows up?",
        "Somebody used my card for {a} and it was not me.",
        "do you charge extra for {a} abroad",
        "How do I activate or cancel {a}?",
        "Which countries do you support for {a}?",
    ),
    "none": (
        "Write {a}.",
        "How do I start with {a}?",
        "What is the best way to learn about {a}?",
        "Give me ideas for {a}",
        "Who knows most about {a}?",
        "When did people first think about {a}?",
        "My {kin} loves {a}. What would be a nice present?",
        "Write a story in which {a} plays a role, in {n} sentences.",
        "recommend me a book on {a}",
        "I spent {n} hours on {a} today.",
        "How many kinds of {a} are there?",
        "Which invention changed {a}?",
        "Pretend that you are an expert on {a} and chat with me.",
        "In which century did {a} become important?",
        "Solve this exercise on {a} step by step.",
        "Do you like {a} more than {b}?",
        "It is unfair that people talk about {a} all day.",
        "You are wrong about {a} and you know it.",
        "Stop writing nonsense on the page on {a}.",
        "Are there rules for {a}?",
        "Is it ok to lie about {a} to a friend?",
        "Generate a program about {a} and explain each line.",
        "In my opinion {a} is overrated, unlike {b}.",
        "Politicians only talk about {a} before an election.",
        "What time is it and what about {a}?",
        "Can you change {a} for me, please?",
        "Act as a guide and tell me of {a}.",
    ),
}
_KIN = ("mother", "father", "sister", "brother", "wife", "husband", "son", "daughter", "friend", "neighbour", "boss")
_WHO = ("man", "woman", "boy", "girl", "nurse", "farmer", "student")


def questions(domain: str, count: int, random: Random) -> Iterator[str]:
    """Yield texts about one domain.

    Args:
        domain: `medical`, `legal`, `financial` or `none`.
        count: how many texts.
        random: where every choice comes from.
    """
    topics = TOPICS[domain]
    for _ in range(count):
        form = random.choice(_OWN[domain] if random.random() < 0.6 else _ANY)
        first, second, third = random.sample(topics, 3)
        text = form.format(
            a=first,
            b=second,
            c=third,
            A=first[0].upper() + first[1:],
            n=random.randint(2, 90),
            kin=random.choice(_KIN),
            who=random.choice(_WHO),
        )
        yield text.lower().rstrip("?.") if random.random() < 0.15 else text
