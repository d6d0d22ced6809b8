"""The profiles, by the designs that they are: what each says of an answer, and what follows where nobody can say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast, get_args

import msgspec
import pytest

from checkstream.app.inline import KEYS
from checkstream.app.profiles import MOST_CLAIMS, Said, profiles, scorers
from checkstream.app.verifiers import Verifiers
from checkstream.config.background import Profile as ProfileName
from checkstream.errors import JobError, StoreUnusable
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage
from checkstream.jobs import Exchange, Message

EMBEDDED = Verifiers(EmbeddedVerifier(), ClaimJudge(EmbeddedVerifier()))
RULES = Passage(id="S0", text="Goods can be returned within 30 days of delivery.", source="rules.md")


def exchange(answer: str, *documents: Passage) -> Exchange:
    return Exchange(
        stream="s",
        route="r",
        surface="openai.chat",
        messages=(Message("system", "Be sure."), Message("user", "How long?"), Message("user", "Really?")),
        answer=answer,
        documents=documents,
    )


async def said(profile: str, asked: Exchange) -> tuple[float | None, dict[str, Any]]:
    found: Said = await profiles(EMBEDDED)[profile].assess(asked)
    return found.risk, json.loads(msgspec.json.encode(found.members))


def test_every_profile_that_routes_may_name_is_there_and_says_by_whom_it_judges() -> None:
    known = profiles(EMBEDDED)
    assert set(known) == set(get_args(ProfileName)) == set(KEYS)
    assert {profile.version for profile in known.values()} == {"2 embedded@1", "1 embedded@1"}
    assert set(scorers(known)) == set(known)


async def test_the_risk_engine_tells_a_wrong_number_with_evidence_and_reason() -> None:
    risk, members = await said("watchdog", exchange("Goods can be returned within 60 days of delivery.", RULES))
    assert risk == 35
    assert members["risk"]["signals"]["rag_contradiction"] is True
    assert members["risk"]["claims"] == [
        {"text": "Goods can be returned within 60 days of delivery", "rag_status": "CONTRADICTED"}
    ]
    (claim,) = members["checkstream"]["claims"]
    assert (claim["verdict"], claim["start"], claim["end"]) == ("contradicted", 0, 49)
    assert "60" in claim["reason"]
    (evidence,) = claim["evidence"]
    assert (evidence["id"], evidence["source"]) == ("S0", "rules.md")
    assert evidence["text"] == RULES.text[evidence["start"] : evidence["end"]]
    assert "30 days" in evidence["text"]
    sound, _ = await said("watchdog", exchange("Goods can be returned within 30 days of delivery.", RULES))
    assert sound == 0


async def test_rag_verification_of_an_answer_that_cites_its_source_is_sound() -> None:
    risk, members = await said("rag", exchange(f"{RULES.text[:-1]} [1].", RULES))
    verification = members["verification"]
    assert risk == round(100 * (1 - verification["overall_score"]), 2)
    assert verification["fact_verification_score"] == 1.0
    assert verification["verified_sources"] == ["S0"]
    nothing, members = await said("rag", exchange(RULES.text))
    assert (nothing, members["verification"]["issues"]) == (15.0, ["No sources retrieved"])


@pytest.mark.parametrize("name", sorted(KEYS))
async def test_claims_without_any_evidence_are_unconfirmed_and_small_talk_is_no_claim(name: str) -> None:
    assert (await said(name, exchange("Goods can be returned within 60 days of delivery.")))[0] == 15.0
    for answer in ("Hello! How can I help?", "I don't know."):
        assert (await said(name, exchange(answer)))[0] == 0.0
        assert (await said(name, exchange(answer, RULES)))[0] == 0.0


async def test_what_is_false_hides_behind_no_number_of_true_claims() -> None:
    sound, _ = await said("watchdog", exchange(" ".join([RULES.text] * MOST_CLAIMS), RULES))
    hidden, _ = await said("watchdog", exchange(" ".join([RULES.text] * MOST_CLAIMS + ["The moon is cheese."]), RULES))
    assert (sound, hidden) == (0.0, 15.0)


async def test_the_evidence_budget_warns_in_the_answers_language() -> None:
    said_of = "Waren können innerhalb von 60 Tagen zurückgegeben werden, und der Versand ist kostenlos [S0]."
    risk, members = await said("budget", exchange(said_of, RULES))
    assert risk == 100.0
    assert members["hallucination_check"]["overall_grounded"] is False
    assert members["warning"].startswith("Hinweis: 1 Aussage")
    sound, members = await said("budget", exchange(f"{RULES.text[:-1]} [S0].", RULES))
    assert (sound, members["warning"]) == (0.0, None)


class Silent:
    """A verifier whose model never answers."""

    name, version = "silent", "1"

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        raise AssertionError(claims, passages)

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        return [Entailment(low=0.0, high=1.0, error="late")] * len(pairs)


async def test_an_answer_that_nobody_could_check_is_tried_again_and_never_sound() -> None:
    known = profiles(Verifiers(Silent(), ClaimJudge(Silent())))
    asked = exchange(RULES.text, RULES)
    found = await known["budget"].assess(asked)
    assert found.risk is None
    with pytest.raises(JobError, match="answered no question"):
        await scorers(known)["budget"].assess(asked)


async def test_what_is_kept_of_a_score_is_what_a_reply_would_carry() -> None:
    asked = exchange("Goods can be returned within 60 days of delivery.", RULES)
    for name, scorer in scorers(profiles(EMBEDDED)).items():
        kept = await scorer.assess(asked)
        risk, members = await said(name, asked)
        assert (kept.risk, json.loads(kept.report)) == (risk, members)
        assert set(KEYS[name]) <= set(members)


async def test_g22_of_ten_thousand_claims_the_first_are_judged_and_the_rest_counted() -> None:
    asked = exchange("".join(f"The tower number {number} is {number} metres high. " for number in range(10_000)), RULES)
    _, members = await said("watchdog", asked)
    assert len(members["checkstream"]["claims"]) == MOST_CLAIMS
    assert members["checkstream"]["unjudged"] == 10_000 - MOST_CLAIMS
    for name in ("rag", "budget"):
        risk, _ = await said(name, asked)
        assert risk is not None
        assert risk > 60


class Broken:
    async def passages(self, asked: Exchange) -> Sequence[Passage]:
        raise StoreUnusable(f"no evidence for {asked.route}")


@pytest.mark.parametrize("name", sorted(KEYS))
async def test_without_its_evidence_an_answer_is_not_scored(name: str) -> None:
    with pytest.raises(StoreUnusable):
        await profiles(EMBEDDED, Broken())[name].assess(exchange(RULES.text))


@pytest.mark.parametrize("answer", ["", " ", "?", "\x00", "🙂" * 5000, "a" * 50_000, "Hi! How can I help you?"])
async def test_odd_answers_are_scored_too(answer: str) -> None:
    for name in KEYS:
        risk, members = await said(
            name, exchange(answer, RULES, Passage(id="S0", text=""), Passage(id="", text="\x00"))
        )
        assert risk is not None
        assert 0 <= risk <= 100, name
        assert cast("dict[str, object]", members)
