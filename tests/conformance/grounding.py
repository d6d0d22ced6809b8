"""What a worked case of grounding runs: design and function -> the product's own code, on the case's input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from checkstream.errors import GateError
from checkstream.gate import config_file
from checkstream.grounding import (
    budget,
    contradictions,
    decision,
    entailment,
    evidence_check,
    fusion,
    overconfidence,
    rag,
    risk,
    warnings,
    windows,
)
from checkstream.grounding.claims import Level, claims
from checkstream.grounding.sentences import sentences
from checkstream.grounding.terms import Claim, Passage

Given = Mapping[str, Any]


def _plain(record: Any) -> Any:
    """Return `record` as the API would send it."""
    return msgspec.json.decode(msgspec.json.encode(record))


def _analyze(given: Given) -> Any:
    return _plain(risk.analyze(given.get("prompt"), given.get("llm_response"), given.get("rag_results")))


def _analyze_batch(given: Any) -> Any:
    requests = given.get("requests", given.get("items")) if isinstance(given, Mapping) else given
    return _plain(risk.analyze_batch(requests))


def _risk_score(given: Given) -> Any:
    signals = msgspec.convert(given.get("signals", given), risk.Signals)
    total = risk.score(signals)
    words = risk.explanation(signals, total, given.get("contradiction", ""), given.get("overconfidence_reason", ""))
    return {"risk_score": total, "risk_level": risk.level(total), "explanation": words}


def _internal(given: Given) -> Any:
    answer = given["llm_response"]
    details = contradictions.contradiction(answer, sentences(answer))
    return {"found": bool(details), "details": details}


def _overconfidence(given: Given) -> Any:
    reason = overconfidence.overconfidence(given.get("prompt", ""), given["llm_response"])
    return {"found": bool(reason), "reason": reason}


def _risk_claims(given: Given) -> Any:
    return {"claims": [claim.text for claim in risk.claims_of(given.get("llm_response", given.get("answer", "")))]}


def _verify(given: Given) -> Any:
    judge = given.get("judge") or {}
    return _plain(
        rag.reckoned(
            given["answer"],
            rag.passages_of(given.get("chunks")),
            judge.get("alignment"),
            judge.get("facts"),
            identifiers=given.get("identifiers", rag.IDENTIFIERS),
            strict=given.get("strict", False),
        )
    )


def _coverage(given: Given) -> Any:
    chunks = rag.passages_of(given.get("chunks"))
    found = rag.citation_coverage(given["answer"], chunks, strict=given.get("strict", False))
    return {"citation_coverage": round(found, 4)}


def _overlap(given: Given) -> Any:
    return {"overlap": round(rag.overlap(given["answer"], rag.passages_of(given.get("chunks"))), 4)}


def _facts(given: Given) -> Any:
    return _plain(rag.read_facts(given.get("reply"), rag.passages_of(given.get("chunks"))))


def _kl(given: Given) -> Any:
    nats = budget.kl_bernoulli(given["p"], given["q"])
    return {"nats": nats, "bits": nats / 0.6931471805599453}


def _grounding_score(given: Given) -> Any:
    cited = given.get("has_citations", True)
    return _plain(budget.grounding(given["p1"], given["p0"], cited=cited, profile=given.get("profile", "seed")))


def _extract_claims(given: Given) -> Any:
    found, aside = evidence_check.claims_of(given.get("answer", given.get("text", "")))
    found = found[: evidence_check.MAX_CLAIMS]
    listed = [{"text": claim.text, "citing": list(claim.citing)} for claim in found]
    ends = {"first": listed[0]["text"], "last": listed[-1]["text"]} if listed else {}
    return {"claims": listed, "count": len(listed), "not_checkable": aside, **ends}


def _docs(given: Any) -> list[Passage]:
    return [Passage(id=doc["id"], text=doc["text"]) for doc in given]


def _scrub(given: Given) -> Any:
    found = evidence_check.scrubbed(_docs(given["docs"]), given.get("cites", given.get("citing", ())))
    return {"docs": [{"id": doc.id, "text": doc.text} for doc in found]}


def _check(given: Given) -> Any:
    if "claims" in given:
        listed = [claim if isinstance(claim, Mapping) else {"text": claim} for claim in given["claims"]]
        found = [Claim(text=one["text"], start=0, end=0, citing=tuple(one.get("citing", ()))) for one in listed]
        aside = 0
    else:
        found, aside = evidence_check.claims_of(given["answer"], [doc["id"] for doc in given.get("docs", ())])
    pairs = [evidence_check.pair_of(pair) for pair in given["probabilities"]]
    profile, language = given.get("profile", "seed"), given.get("language", "en")
    return _plain(evidence_check.decided(found, pairs, profile=profile, language=language, aside=aside))


def _p_yes(given: Given) -> Any:
    if "text" in given:
        found = entailment.p_yes_of_text(given["text"])
    else:
        found = entailment.p_yes([(token, log) for token, log in given["top_logprobs"]])
    return {"p_lower": found.low, "p_upper": found.high}


def _warning(given: Given) -> Any:
    return {"warning": warnings.ungrounded(given["ungrounded"], given.get("language", "en"))}


def _masked(given: Given) -> Any:
    return {"text": evidence_check.masked(given["text"])}


def _score_risk(given: Given) -> Any:
    thresholds = decision.Thresholds(**given.get("thresholds", {}))
    least = given.get("min_claims", 0)
    if "label_counts" in given:
        counts = given["label_counts"]
        supported, weakly = counts.get("supported", 0), counts.get("weakly_supported", 0)
        unsupported = counts.get("unsupported", 0)
        return _plain(decision.score_counts(supported, weakly, unsupported, thresholds, min_claims=least))
    labels = given["labels"] if "labels" in given else [verdict.get("label") for verdict in given["verdicts"]]
    return _plain(decision.score_risk(labels, thresholds, min_claims=least))


def _merge(given: Given) -> Any:
    found = fusion.merged(
        given.get("keyword", []),
        given.get("vector", []),
        id_of=lambda document: document["id"],
        text_of=lambda document: document.get("content", document.get("text", "")),
    )
    return {"ids": [document["id"] for document in found]}


def _rrf(given: Given) -> Any:
    return {"ranked": [list(pair) for pair in fusion.reciprocal_rank(given["lists"], given.get("k", 60))]}


def _chunk_words(given: Given) -> Any:
    words = given["words"] if "words" in given else given["text"].split()
    try:
        found = windows.windows(len(words), given["size"], given["overlap"])
    except ValueError as error:
        return {"error": str(error)}
    return {"chunks": [words[span.start : span.end] for span in found]}


def _exit_code(given: Given) -> Any:
    return _plain(decision.exit_of(given.get("decision")))


def _config(given: Given) -> Any:
    try:
        return _plain(config_file.normalised(given.get("yaml", given.get("config"))))
    except GateError as error:
        return {"error": str(error)}


def _labels(given: Given) -> Any:
    return {"labels": [decision.label_of(label) for label in given["labels"]]}


def _sentences(given: Given) -> Any:
    text = given["text"]
    return {"sentences": [text[span.start : span.end] for span in sentences(text)]}


def _claims(given: Given) -> Any:
    found = claims(given["answer"], Level(given.get("level", 0)))
    return {
        "claims": [{"text": one.text, "citing": list(one.citing), "not_checkable": one.not_checkable} for one in found]
    }


RUNS: Mapping[tuple[str, str], Callable[[Any], Any]] = MappingProxyType(
    {
        ("watchdog", "analyze"): _analyze,
        ("watchdog", "analyze_batch"): _analyze_batch,
        ("watchdog", "score"): _risk_score,
        ("watchdog", "contradictions"): _internal,
        ("watchdog", "overconfidence"): _overconfidence,
        ("watchdog", "extract_claims"): _risk_claims,
        ("rag_verification", "verify"): _verify,
        ("rag_verification", "citation_coverage"): _coverage,
        ("rag_verification", "overlap"): _overlap,
        ("rag_verification", "facts"): _facts,
        ("strawberry", "kl_bernoulli"): _kl,
        ("strawberry", "grounding_score"): _grounding_score,
        ("strawberry", "extract_claims"): _extract_claims,
        ("strawberry", "scrub"): _scrub,
        ("strawberry", "check"): _check,
        ("strawberry", "p_yes"): _p_yes,
        ("strawberry", "warning"): _warning,
        ("strawberry", "masked"): _masked,
        ("reliability_gate", "score_risk"): _score_risk,
        ("reliability_gate", "labels"): _labels,
        ("reliability_gate", "merge_evidence"): _merge,
        ("reliability_gate", "rrf"): _rrf,
        ("reliability_gate", "chunk_words"): _chunk_words,
        ("reliability_gate", "ci_exit_code"): _exit_code,
        ("reliability_gate", "normalise_config"): _config,
        ("grounding", "sentences"): _sentences,
        ("grounding", "claims"): _claims,
    }
)
