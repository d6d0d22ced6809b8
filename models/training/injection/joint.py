"""How gate and encoder score together: what is measured on texts of the part `dev`, and what comes of it on others.

Neither graph changes. A window that both have read is scored by both, since they err apart: the encoder knows English
and suspects what it can't read, the gate knows other languages and nothing of who speaks to whom. Thresholds stand
where they keep every kind of innocent texts below its rate, so that no kind pays for another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.evaluation.figures import rate_at
from checkstream.scoring import Model, load_models, open_session, read_whole
from checkstream.scoring.gated import GatedSession
from checkstream.scoring.manifest import Curve, Joint, ModelEntry, Rate, Tail, Threshold
from checkstream.scoring.session import windows_of
from models.training.export import MODELS, put_entry
from models.training.graph import Float
from models.training.injection.ship import GATE_ABOVE, NAME, VERSION, Trial

GATE = 0.5
"""Weight of the gate's logit. Of 0, 0.35, 0.5, 0.7, 1 and 1.5 the least that halves what long prompts fire falsely."""
RATES: Mapping[float, float] = {0.05: 0.05, 0.01: 0.01, 0.001: 0.003}
"""Rate of false positives, of all innocent texts together -> what each kind of them may have."""
ANCHORS: Mapping[float, float] = {0.01: 0.778886, 0.001: 0.972202}
"""Rate -> score of its threshold, as 1.4.0 had them: policies that name scores go on meaning what they meant. Between
these and beyond them scores follow the sum of the logits in a line, as calibration would have it, too."""
GENERATED = "generated"
"""Beginning of the groups of texts that are made to be hard: nobody's, so that they choose no threshold."""
_KIND_TEXTS = 500
"""Of a kind with fewer texts no threshold is chosen: one text would decide."""
_LEGIBLE_SUSPICION = 0.05
"""Words among such letters are suspect: the encoder's thresholds count for the next lower rate. This is the first."""
_UNDO, _EARLIER = "ignore|disregard|forget|override|bypass", "previous|prior|above|earlier|preceding"
_WHAT = "instruction|prompt|rule|direction|guideline|message|command|order|context"
PHRASES = (
    f"{_UNDO} {_EARLIER} {_WHAT}",
    f"{_UNDO} all|any|your|my|the|every {_EARLIER} {_WHAT}",
    f"{_UNDO} all|any your|my|the {_EARLIER} {_WHAT}",
    f"{_UNDO} all|any of your|my|the {_EARLIER} {_WHAT}",
    f"{_UNDO} your|my|all instruction|rule|guideline|prompt",
    f"{_UNDO} your|the|my|any system prompt|instruction|message",
    f"{_UNDO} everything|anything|all above|before|previous|prior",
    "reveal|print|repeat|output|show|leak your|the system prompt|instruction|message",
    "show me your|the system prompt|instruction|message",
    "you are now in developer|god|jailbreak|admin|debug mode",
)
"""Beginnings of orders whose sentence is read by itself. A word may go on: `instruction` is `instructions` as well."""
WINDOWS = 4
"""Of texts whose scores are what they are: of those that the thresholds are measured on 19 of 20 have no more."""
_LONG_CHARS, _LONG_TEXTS, _LONG_ENGLISH = 20_000, 6, 20
"""Of texts that the tail is measured on, how many of each language, and English ones besides, which fire most."""
_MAY_FIRE, _MOST_TENTHS = 0.03, 15
"""Share of these that may reach the highest threshold: many hold dozens of questions to a model about itself."""
_LOW, _HIGH = 1e-4, 0.9999


class Told(NamedTuple):
    """What is said of texts, float32[text] each; -inf where nothing is."""

    alone: Float
    """The encoder's highest logit, of the windows that it reads."""
    both: Float
    """The highest logit of windows that both read."""
    foreign: Float
    """The gate's highest logit, of windows of letters that the vocabulary has no words of."""


def joined(model: Model, dev: Trial) -> tuple[list[dict[str, object]], Joint]:
    """Return the thresholds of gate and encoder together, and how scores come about.

    Args:
        model: as it is shipped; its own `joint` and rates say nothing here.
        dev: texts to measure on; the kind of an innocent one is its group.

    Raises:
        ValueError: of the innocent texts too many fire at any threshold, or the gate clears all of one sort.
    """
    session = GatedSession(plain(model))
    attacks, innocents = told(session, dev.attacks), told(session, dev.innocents)
    honest = np.array([not group.startswith(GENERATED) for group in dev.groups])
    kinds = np.array(dev.groups)[honest]
    read = [logits[np.isfinite(logits)] for logits in (attacks.both, innocents.both)]
    if not all(map(len, read)):
        raise ValueError("the gate clears all attacks, or all innocent texts: look at its threshold")
    limits = {rate: limit_of(innocents.both[honest], kinds, rate) for rate in RATES}
    (low, given), (high, most) = ((limits[rate], _logit(score)) for rate, score in ANCHORS.items())
    slope = (most - given) / max(high - low, 1e-6)
    offset = given - slope * low
    scores = [ANCHORS.get(rate, round(_score(slope * limit + offset), 6)) for rate, limit in limits.items()]
    own = [round(_score(limit_of(innocents.alone[honest], kinds, rate)), 6) for rate in RATES]
    foreign = [round(_score(limit_of(innocents.foreign[honest], kinds, rate)), 6) for rate in RATES]
    for name, points in (("both", scores), ("the encoder alone", own), ("the gate alone", foreign)):
        if not all(low < high for low, high in pairwise([_LOW, *points, _HIGH])):
            raise ValueError(f"thresholds of {name} are no rising scores: {points}")
    joint = Joint(
        gate=GATE,
        slope=round(slope, 6),
        offset=round(offset, 6),
        alone=_curve(own, scores),
        foreign=_curve(foreign, scores),
        legible=_curve([min(_LEGIBLE_SUSPICION, own[0] / 2), *own[:2]], scores),
        phrases=PHRASES,
    )
    rates: list[dict[str, object]] = [
        {"label": NAME, "fpr": rate, "threshold": score} for rate, score in zip(RATES, scores, strict=True)
    ]
    return rates, joint


def limit_of(logits: Float, kinds: NDArray[np.str_], rate: float) -> float:
    """Return the lowest logit that no more innocent texts reach than may: of all together, and of each kind.

    Args:
        logits: of the texts, float32[text]; -inf of what says nothing.
        kinds: str[text].
        rate: one of `RATES`.
    """
    names, counts = np.unique(kinds, return_counts=True)
    groups = [(logits, rate)]
    groups += [
        (logits[kinds == name], RATES[rate]) for name, count in zip(names, counts, strict=True) if count >= _KIND_TEXTS
    ]
    tops = [np.sort(own)[::-1][int(share * len(own))] for own, share in groups]
    return float(np.nextafter(np.float32(max(tops)), np.float32(np.inf)))


def long_texts(prompts: Mapping[str, Sequence[str]], random: Random) -> list[str]:
    """Return long texts, each of prompts of one language."""
    found = []
    for language in [*prompts] * _LONG_TEXTS + ["en"] * _LONG_ENGLISH:
        parts: list[str] = []
        while sum(map(len, parts)) < _LONG_CHARS:
            parts.append(random.choice(prompts[language]))
        found.append("\n\n".join(parts)[:_LONG_CHARS])
    return found


def tail(model: Model, texts: Sequence[str]) -> Tail:
    """Return how many windows a text may have, and the least that is taken off for more so that long texts pass.

    Of the largest of n draws from an exponential tail `rise * ln n` has to be taken off, with the tail's scale.

    Args:
        model: with its thresholds and weights.
        texts: long innocent ones, of the part `dev`.

    Raises:
        ValueError: too many of them fire whatever is taken off.
    """
    session = GatedSession(model)
    limit = _logit(max(rate.threshold for rate in model.entry.rates))
    tops, counts = [], []
    for text in texts:
        windows = [window for window in windows_of(session, text) if window.excerpt != "order"]
        tops.append(max(_logit(float(session.run([window]).scores[0][0])) for window in windows))
        counts.append(max(len(windows), WINDOWS))
    for tenth in range(1, _MOST_TENTHS):
        rise = tenth / 10
        if np.mean(np.array(tops) - rise * np.log(np.array(counts) / WINDOWS) >= limit) <= _MAY_FIRE:
            return Tail(rise=rise, windows=WINDOWS)
    raise ValueError("long innocent texts fire whatever is taken off for their windows; look at what they say")


def encoder_rates(entry: ModelEntry) -> list[dict[str, object]]:
    """Return the thresholds of the encoder by itself: what the manifest has beside those of both."""
    if entry.joint is None:
        return [{"label": rate.label, "fpr": rate.fpr, "threshold": rate.threshold} for rate in entry.rates]
    own = (score for score, _ in entry.joint.alone[1:-1])
    return [{"label": NAME, "fpr": rate, "threshold": score} for rate, score in zip(RATES, own, strict=True)]


def _curve(given: Sequence[float], scores: Sequence[float]) -> Curve:
    return ((_LOW, _LOW), *zip(given, scores, strict=True), (_HIGH, _HIGH))


def plain(model: Model) -> Model:
    """Return a model whose gate only clears windows."""
    return msgspec.structs.replace(model, entry=msgspec.structs.replace(model.entry, joint=None))


def told(session: GatedSession, texts: Sequence[str]) -> Told:
    """Return what is said of each text; what the gate clears the encoder is not asked about."""
    rows = []
    for text in texts:
        alone, both, foreign = [-np.inf], [-np.inf], [-np.inf]
        for window in windows_of(session, text):
            unread = window.tokens <= GATE_ABOVE or window.excerpt is not None
            doubt = 1.0 if unread else session.doubt(window)
            if not unread and session.is_foreign(window):
                foreign.append(_logit(doubt))
            elif unread or doubt >= session.threshold:
                alone.append(_logit(float(session.encoder.score(window)[0])))
                if not unread:
                    both.append(alone[-1] + GATE * _logit(doubt))
        rows.append((max(alone), max(both), max(foreign)))
    found = np.array(rows, np.float32).reshape(-1, 3)
    return Told(found[:, 0], found[:, 1], found[:, 2])


def _logit(score: float) -> float:
    kept = min(max(score, 1e-7), 1 - 1e-7)
    return math.log(kept / (1 - kept))


def _score(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def write(dev: Trial, long: Sequence[str]) -> Model:
    """Measure what ships, and write how it scores into the manifest; return the model as it is then.

    Args:
        dev: texts to measure on.
        long: long innocent ones of the same part.
    """
    (model,) = load_models(MODELS, (NAME,))
    rates, joint = joined(model, dev)
    default = next(float(str(rate["threshold"])) for rate in rates if rate["fpr"] == 0.01)
    entry = msgspec.structs.replace(
        model.entry,
        version=VERSION,
        rates=tuple(msgspec.convert(rate, Rate) for rate in rates),
        thresholds=(Threshold(NAME, default),),
        joint=joint,
    )
    known = msgspec.structs.replace(model, entry=entry)
    entry = msgspec.structs.replace(entry, joint=msgspec.structs.replace(joint, tail=tail(known, long)))
    described = {name: value for name, value in msgspec.to_builtins(entry).items() if name != "files" and value}
    put_entry(described, {file.role: file.path for file in entry.files})
    return load_models(MODELS, (NAME,))[0]


def fires(model: Model, sets: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
    """Return the share of each set that fires at each rate, as the proxy scores it."""
    session = open_session(model)
    rates = [rate.threshold for rate in model.entry.rates]
    found = {}
    for name, texts in sets.items():
        scores = np.array([read_whole(session, text).scores[0] for text in texts], np.float32)
        found[name] = [rate_at(scores, threshold) for threshold in rates]
    return found
