"""Claims against passages without a model: verdicts, scores, reasons and places."""

import pytest

from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.embedded.lexical import SUPPORTED
from checkstream.grounding.embedded.verifier import score_of
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict

POLICY = Passage(
    id="S0",
    text="Our shop opened in 1999. The refund is paid within 30 days to customers in Germany. It is not paid in cash.",
)
OTHER = Passage(id="S1", text="Penguins live in the south, where they eat fish and walk over the ice in long rows.")


async def judged(text: str, *passages: Passage) -> Judgement:
    (found,) = await EmbeddedVerifier().judge([Claim(text=text, start=0, end=len(text))], passages)
    return found


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The refund is paid within 30 days.", Verdict.SUPPORTED),
        ("Refunds are paid within thirty days.", Verdict.SUPPORTED),
        ("The shop opened in 1999.", Verdict.SUPPORTED),
        ("The refund is not paid in cash.", Verdict.SUPPORTED),
        ("The refund is paid within 60 days.", Verdict.CONTRADICTED),
        ("The shop opened in 1989.", Verdict.CONTRADICTED),
        ("The refund is paid to customers in France.", Verdict.CONTRADICTED),
        ("The refund is not paid within 30 days.", Verdict.CONTRADICTED),
        ("Our founder collects rare stamps.", Verdict.UNSUPPORTED),
    ],
)
async def test_a_claim_gets_the_verdict_that_its_evidence_gives(claim: str, verdict: Verdict) -> None:
    found = await judged(claim, OTHER, POLICY)
    assert found.verdict is verdict
    assert (found.score >= 0.5) == (verdict is Verdict.SUPPORTED)
    assert found.reason


async def test_the_reason_names_what_decided_and_the_excerpt_where_it_was_read() -> None:
    found = await judged("The refund is paid within 60 days.", OTHER, POLICY)
    assert found.reason == "the claim says `60 days`, the evidence `30 days`"
    (excerpt,) = found.excerpts
    assert excerpt.passage_id == "S0"
    assert "30 days" in POLICY.text[excerpt.start : excerpt.end]


@pytest.mark.parametrize(
    "passages", [(), (Passage(id="S0", text=""),), (Passage(id="S0", text=" \n "),), (Passage(id="S0", text="..."),)]
)
async def test_without_evidence_nothing_is_supported(passages: tuple[Passage, ...]) -> None:
    found = await judged("The refund is paid within 30 days.", *passages)
    assert (found.verdict, found.score, found.excerpts) == (Verdict.UNSUPPORTED, 0.0, ())
    (entailment,) = await EmbeddedVerifier().entailed([("", "The refund is paid.")])
    assert entailment.high == 0


async def test_a_claim_that_is_not_checkable_is_not_judged() -> None:
    claim = Claim(text="Hello!", start=0, end=6, not_checkable="a greeting")
    (found,) = await EmbeddedVerifier().judge([claim], [POLICY])
    assert (found.verdict, found.reason) == (Verdict.NOT_CHECKABLE, "a greeting")
    assert (await judged("?!", POLICY)).verdict is Verdict.NOT_CHECKABLE


async def test_ten_irrelevant_passages_move_no_score_by_more_than_a_twentieth() -> None:
    subjects = (
        "Penguins",
        "Volcanoes",
        "Violins",
        "Glaciers",
        "Tulips",
        "Comets",
        "Camels",
        "Bakers",
        "Harbours",
        "Boats",
    )
    irrelevant = [
        Passage(
            id=f"X{at}",
            text=f"{subject} are described in this chapter. It is about how {subject.lower()} change with time.",
        )
        for at, subject in enumerate(subjects)
    ]
    for claim in (
        "The refund is paid within 30 days.",
        "The refund is paid within 60 days.",
        "Our founder collects rare stamps.",
    ):
        alone, among = await judged(claim, POLICY), await judged(claim, *irrelevant[:5], POLICY, *irrelevant[5:])
        assert abs(alone.score - among.score) <= 0.05
        assert alone.verdict is among.verdict


async def test_one_false_sentence_makes_a_claim_of_several_false() -> None:
    claim = "Our shop opened in 1999. The refund is paid within 60 days to customers in Germany."
    found = await judged(claim, POLICY)
    assert found.verdict is not Verdict.SUPPORTED


async def test_a_question_inside_a_claim_is_not_held_against_it() -> None:
    assert (
        await judged("The shop opened in 1999. Would you like to hear more about penguins?", POLICY)
    ).verdict is Verdict.SUPPORTED


async def test_other_languages_are_read_too() -> None:
    hebrew = Passage(id="S0", text='השמאי קבע פיצוי של 50,000 ש"ח ביום 15.03.2023.')
    assert (await judged('השמאי קבע פיצוי של 50,000 ש"ח.', hebrew)).verdict is Verdict.SUPPORTED
    assert (await judged('השמאי קבע פיצוי של 70,000 ש"ח.', hebrew)).verdict is Verdict.CONTRADICTED
    german = Passage(id="S0", text="Die Erstattung wird innerhalb von 30 Tagen bezahlt.")
    assert (await judged("Die Erstattung wird innerhalb von 30 Tagen bezahlt.", german)).verdict is Verdict.SUPPORTED
    assert (
        await judged("Die Erstattung wird nicht innerhalb von 30 Tagen bezahlt.", german)
    ).verdict is Verdict.CONTRADICTED


async def test_every_claim_gets_its_own_judgement_in_order() -> None:
    texts = ["The refund is paid within 30 days.", "Our founder collects rare stamps.", "The shop opened in 1999."]
    claims = [Claim(text=text, start=0, end=len(text)) for text in texts]
    together = await EmbeddedVerifier().judge(claims, [POLICY, OTHER])
    assert together == [await judged(text, POLICY, OTHER) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "\ud800",
        "a" * 50_000,
        "no " * 5_000,
        "1." * 5_000,
        "not not not",
        "\u202e",
        "A. " * 3_000,
        "漢" * 2_000,
        "<script>",
        "5" * 4_000,
    ],
)
async def test_hostile_texts_give_a_score_between_nothing_and_one(text: str) -> None:
    passage = Passage(id="S0", text=text)
    for claim, evidence in ((text, POLICY), ("The shop opened in 1999.", passage), (text, passage)):
        found = await judged(claim, evidence)
        assert 0 <= found.score <= 1


def test_the_score_rises_with_the_share_and_is_one_half_where_a_claim_counts_as_said() -> None:
    shares = [at / 1000 for at in range(1001)]
    scores = [score_of(share) for share in shares]
    assert scores == sorted(scores)
    assert (scores[0], score_of(SUPPORTED), scores[-1]) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("evidence", "claim", "verdict"),
    [
        ("The temperature was -5 degrees.", "The temperature was 5 degrees.", Verdict.CONTRADICTED),
        ("The store closes at 17:30.", "The store closes at 5:30 pm.", Verdict.SUPPORTED),
        ("The store closes at 17:30.", "The store closes at 5:30 am.", Verdict.CONTRADICTED),
        ("Revenue grew 4.2% in 2022.", "Revenue fell 4.2% in 2022.", Verdict.CONTRADICTED),
        ("No refunds are given after 30 days.", "Refunds are not given after 30 days.", Verdict.SUPPORTED),
        ("Plants have leaves and roots.", "It leaves.", Verdict.WEAKLY_SUPPORTED),
        ("The shop in Rome is closed on Sundays.", "It is closed.", Verdict.SUPPORTED),
        ("It is closed on Sundays.", "It is closed.", Verdict.SUPPORTED),
        ("It was born in Paris.", "Paris", Verdict.SUPPORTED),
        ("The office has plants.", "plants", Verdict.WEAKLY_SUPPORTED),
    ],
)
async def test_signs_times_opposites_and_denials_are_read(evidence: str, claim: str, verdict: Verdict) -> None:
    found = await judged(claim, Passage(id="S0", text=evidence))
    assert found.verdict is verdict


async def test_a_passage_more_never_lowers_a_score_though_it_denies_one_sentence() -> None:
    claim = "I would not think so. The duo has earned two platinum albums."
    own = Passage(id="own", text="The duo has earned two platinum albums.")
    denying = Passage(id="other", text="I would think so, said the man of the party.")
    alone, among = await judged(claim, own), await judged(claim, denying, own)
    assert among.score >= alone.score


async def test_sentences_that_two_passages_say_outright_are_said_together() -> None:
    claim = "The refund is paid within 30 days. Penguins eat fish in the south."
    assert (await judged(claim, POLICY)).verdict is not Verdict.SUPPORTED
    found = await judged(claim, OTHER, POLICY)
    assert found.verdict is Verdict.SUPPORTED
    assert {excerpt.passage_id for excerpt in found.excerpts} == {"S0", "S1"}


@pytest.mark.parametrize("said", ["It is an important job in the world.", "I know so."], ids=["half", "small talk"])
async def test_what_texts_about_something_else_half_say_adds_nothing_to_a_claim(said: str) -> None:
    claim = f"{said} The refund is paid within 30 days to customers in Germany and in Austria."
    elsewhere = Passage(id="S2", text="I know so. A baker had an odd job in the next town, and saw the world.")
    assert (await judged(said, elsewhere)).score > 0
    alone, among = await judged(claim, POLICY), await judged(claim, elsewhere, POLICY)
    assert among.score == alone.score


@pytest.mark.parametrize(
    ("said", "there", "reason"),
    [
        ("The tower was finished in 1925.", "The tower was finished in 1889.", "`1925`, the evidence `1889`"),
        ("The tower was not finished in 1889.", "The tower was finished in 1889.", "is denied"),
        ("Sales of the firm grew strongly in spring.", "Sales of the firm fell strongly in spring.", "its opposite"),
    ],
    ids=["number", "negation", "opposite"],
)
async def test_a_sentence_is_denied_by_whichever_passage_denies_it(said: str, there: str, reason: str) -> None:
    claim, first = f"Paris is the capital of France. {said}", "Paris is the capital of France."
    apart = await judged(claim, Passage(id="A", text=first), Passage(id="B", text=there))
    joined = await judged(claim, Passage(id="A", text=f"{first} {there}"))
    assert apart.verdict is joined.verdict is Verdict.CONTRADICTED
    assert apart.reason == joined.reason
    assert reason in apart.reason
    assert {excerpt.passage_id for excerpt in apart.excerpts} == {"A", "B"}
