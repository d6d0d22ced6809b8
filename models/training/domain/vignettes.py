"""Cases in several sentences, as exams, clients and patients tell them: who did what, and a question. Pure.

Long texts name their domain less often than short questions do; a reader that knows only short ones takes a
lawsuit for a story.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from models.training.domain.topics import TOPICS

_PEOPLE = (
    "a man",
    "a woman",
    "a farmer",
    "a teacher",
    "a shop owner",
    "a student",
    "a young couple",
    "an engineer",
    "a retiree",
    "a driver",
    "a baker",
    "a nurse",
    "a painter",
    "a widow",
    "a neighbour",
    "Anna",
    "Omar",
    "Mr Lee",
    "Ms Novak",
    "Priya",
)

_BEGIN = {
    "legal": (
        "{P} owned a parcel of land and conveyed it by deed to {q}.",
        "{P} leased a house to {q} for {n} months at a fixed rent.",
        "{P} orally promised to sell {q} a car for ${n}00.",
        "{P} hired a contractor to build a garage, and the written contract set a price of ${n},000.",
        "{P} left a bar after an argument and struck {q} with a bottle.",
        "{P} was stopped by a police officer, who searched the car without a warrant and found {n} grams of cocaine.",
        "{P} died and left a will that gave the whole estate to {q}.",
        "{P} slipped on a wet floor in a department store and broke an arm.",
        "A state legislature passed a statute that forbids {t}.",
        "A city enacted an ordinance about {t}.",
        "{P} entered {q}'s home at night, intending to take a painting.",
        "{P} and {q} formed a partnership and agreed on {t}.",
        "{P} was indicted for {t}.",
        "In a suit for damages, {p} claims that {q} was driving carelessly.",
        "{P} was dismissed after {n} years with the company and was paid nothing.",
        "{P} bought a chainsaw made by a large company, and it broke and injured {q}.",
        "{P} mailed a letter to {q}, saying: I accept your offer.",
        "{P} entered the country {n} months ago and applied to stay.",
        "{P} and {q} are getting divorced and can't agree about {t}.",
        "Two states concluded a treaty on {t}.",
        "A newspaper published an article that accused {p} of {t}.",
    ),
    "medical": (
        "A {n}-year-old {w} comes to the clinic because of a {m}-day history of {t}.",
        "A {n}-year-old {w} is brought to the emergency department after collapsing at home.",
        "A {n}-year-old {w} has had fatigue and weight loss for {m} weeks.",
        "A newborn delivered at {m} weeks has a rash and does not feed well.",
        "I am {n} and have had {t} since last week.",
        "My {n}-year-old father takes tablets for {t}.",
        "The patient reports {t}, nausea and a fever of 39 C.",
        "A {n}-year-old {w} is scheduled for surgery.",
        "On ward rounds a nurse notes that the patient with {t} is short of breath.",
        "A study followed {n}0 adults with {t} for {m} years.",
        "I stopped taking my pills {m} days ago and now I feel dizzy.",
    ),
    "financial": (
        "{P} has ${n},000 in a savings account and wants to retire in {m} years.",
        "A company sold {n}00 units at ${m} each and had fixed costs of ${n},000.",
        "A firm in a competitive market faces a price of ${m} and an average total cost of ${n}.",
        "The central bank bought bonds on the open market.",
        "{P} checked the account and saw a payment of ${n} that nobody had made.",
        "{P} wants to borrow ${n},000 for a flat at {m} percent.",
        "During the audit of a manufacturer, the auditor looked at {t}.",
        "The government of a small economy cut taxes while spending stayed the same.",
        "A manager wants to raise sales of a new product and studies {t}.",
        "I transferred ${n} yesterday and it still isn't there.",
        "On January 1 the corporation issued {n}00 shares of common stock.",
        "{P} bought shares at ${n} and they now stand at ${m}.",
        "A researcher regresses monthly returns on {t}.",
        "A board of directors asks whether the company's profits or its stakeholders come first.",
    ),
    "none": (
        "{P} told {q} a secret and {q} told everybody at school.",
        "{P} has {n} apples and gives {m} of them to {q}.",
        "A train leaves the station at {m} o'clock at {n} km per hour.",
        "A researcher put {n} rats into a maze and timed them.",
        "{P} threw a ball upwards from a tower of {n} metres.",
        "In this passage the author describes {t} as it was in the {m}th century.",
        "The excerpt is from a speech on {t} by a president.",
        "{P} saw {q} drop a wallet in the park and ran after {q} with it.",
        "I baked a cake with {m} eggs and forgot the sugar.",
        "A class of {n} pupils learns about {t}.",
        "A programmer wrote a function that loops over {n} items.",
        "{P} and {q} played cards until midnight.",
        "A sociologist interviewed {n} families about {t}.",
        "Two governments stopped talking to each other after an election.",
        "A school child is afraid of spiders since a camping trip.",
        "A wire carries a current of {m} amperes.",
        "Archaeologists dug up {n} pots near a river.",
        "I straightened my neighbour's fence for fun while the neighbour was away.",
        "Let x be the number of {t} and y = {n}.",
        "A solution contains {m} moles of salt in {n} litres.",
    ),
}
_MIDDLE = {
    "legal": (
        "{Q} refused to perform and said that the agreement was not in writing.",
        "{Q} brought an action against {p} for {t}.",
        "The deed was never recorded, and later a bank took a mortgage without notice.",
        "The contract had a clause on {t}.",
        "At trial, {p} objected to the testimony as hearsay.",
        "The jury found for the plaintiff, and the defendant moved for a new trial.",
        "A witness testified that {p} had said so before.",
        "The prosecutor called the arresting officer.",
        "{P} was charged with {t}.",
        "The lower court dismissed the complaint.",
        "The statute says nothing about {t}.",
        "{P} asks for damages of ${n},000.",
        "A lawyer told {p} to rely on {t}.",
        "The lease is silent on the matter.",
        "The jurisdiction follows the common law on {t}.",
    ),
    "medical": (
        "Blood pressure is {n}/{m} mm Hg and pulse is {n}/min.",
        "Physical examination shows tenderness and swelling.",
        "The history includes {t}.",
        "Medications are {t} and a daily multivitamin.",
        "Laboratory studies show a raised leukocyte count.",
        "An x-ray of the chest is normal.",
        "There is no family history of {t}.",
        "The doctor suspects {t}.",
        "The pain gets worse at night and after meals.",
        "The skin is pale and there is swelling of both ankles.",
        "The dose was raised {m} days ago.",
    ),
    "financial": (
        "Variable costs are ${m} a unit.",
        "The interest rate is {m} percent a year, compounded monthly.",
        "As a consequence {t} changes.",
        "The adviser recommends {t}.",
        "The books show {t} of ${n},000.",
        "The bank charged a fee of ${m}.",
        "The app shows the amount as pending.",
        "Investors worry about {t}.",
        "Consumers expect prices to rise.",
        "The firm's liabilities exceed its assets by ${n},000.",
        "Demand shifts to the right while supply is fixed.",
    ),
    "none": (
        "Everybody laughed, and {p} felt ashamed.",
        "Then {q} gave back half of them.",
        "The second group had no cheese at the end.",
        "It rained all day.",
        "The text mentions {t}.",
        "Afterwards {q} wanted to know more about {t}.",
        "Critics of the time saw {t} in another light.",
        "The temperature rises by {m} degrees.",
        "Friction can be neglected.",
        "{P} never told anybody.",
        "The loop stops when the counter reaches {m}.",
        "The voters knew little about {t}.",
    ),
}
_END = {
    "legal": (
        "Is {p} liable?",
        "Will {q} prevail?",
        "What is {p}'s best argument?",
        "The court should hold that",
        "Which of the following is the strongest defence?",
        "Who has title to the land?",
        "Is the evidence admissible?",
        "Is the law constitutional?",
        "Of which crime can {p} be convicted?",
        "What can I do, do I need a lawyer?",
        "Can {q} recover damages?",
        "The appellate court should",
    ),
    "medical": (
        "Which of the following is the most likely diagnosis?",
        "What is the next step in management?",
        "Which drug is most appropriate?",
        "Should I go to the hospital?",
        "Is that a side effect?",
        "Which structure is affected?",
        "What should the nurse do first?",
        "The most likely cause of these findings is",
        "What could it be?",
    ),
    "financial": (
        "How many units must be sold to break even?",
        "What is the effect on output and prices?",
        "Should the loan be refinanced?",
        "What amount is reported on the balance sheet?",
        "Which strategy should the company choose?",
        "Can I get the money back?",
        "In the short run the firm should",
        "What is the present value?",
        "Is this a good time to sell?",
        "Which of the following entries is correct?",
    ),
    "none": (
        "How many are left?",
        "Was that the right thing to do?",
        "What does the author think?",
        "What does the function return?",
        "How fast is it at the end?",
        "Which conclusion can be drawn?",
        "Which of these is an example of the concept?",
        "What happened next?",
        "",
        "Find x.",
    ),
}


def vignettes(domain: str, count: int, random: Random) -> Iterator[str]:
    """Yield cases of one domain.

    Args:
        domain: `medical`, `legal`, `financial` or `none`.
        count: how many texts.
        random: where every choice comes from.
    """
    for _ in range(count):
        first, second = random.sample(_PEOPLE, 2)
        forms = [random.choice(_BEGIN[domain]), *random.sample(_MIDDLE[domain], random.randint(0, 4))]
        forms.append(random.choice(_END[domain]))
        yield " ".join(
            form.format(
                p=first.replace("a ", "the ", 1).replace("an ", "the ", 1) if number else first,
                q=second,
                P=first[0].upper() + first[1:],
                Q=second[0].upper() + second[1:],
                t=random.choice(TOPICS[domain]),
                n=random.randint(20, 95),
                m=random.randint(2, 19),
                w=random.choice(("man", "woman", "boy", "girl")),
            )
            for number, form in enumerate(forms)
            if form
        )
