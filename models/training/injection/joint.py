"""How gate and encoder score together: what is measured on texts of the part `dev`, and what comes of it on others.

Neither graph changes. A window that both have read is scored by both, since they err apart: the encoder knows English
and suspects what it can't read, the gate knows other languages and nothing of who speaks to whom. Thresholds stand
where so much of the attacks is found as `FOUND` says, and their rates of false positives are less than they are called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

import msgspec
import numpy as np

from checkstream.evaluation.figures import rate_at
from checkstream.scoring import Model, load_models, open_session, read_whole
from checkstream.scoring.gated import GatedSession
from checkstream.scoring.manifest import Curve, Joint, ModelEntry, Rate, Tail, Threshold
from checkstream.scoring.session import windows_of
from models.training import calibrate
from models.training.export import MODELS, put_entry
from models.training.graph import Float
from models.training.injection.ship import GATE_ABOVE, NAME, VERSION, Trial

GATE = 0.5
"""Weight of the gate's logit. Of 0, 0.35, 0.5, 0.7, 1 and 1.5 the least that halves what long prompts fire falsely."""
FOUND: Mapping[float, float] = {0.05: 0.97, 0.01: 0.927, 0.001: 0.815}
"""Rate of false positives -> share of dev attacks that is found at its threshold (1.3.0: 0.953, 0.890, 0.724)."""
_FOREIGN: Mapping[float, float] = {0.05: 0.35, 0.01: 0.90, 0.001: 0.9866}
"""Rate -> doubt of the gate that comes to as much, in a window of letters that the vocabulary has no words of. Of long
innocent prompts in such scripts (dev, 4,000 characters) 0.5 % have a window beyond the last."""
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
_MAY_FIRE, _MOST_TENTHS = 0.01, 15
"""Share of these that may reach the highest threshold."""
_LOW, _HIGH = 1e-4, 0.9999


def joined(model: Model, dev: Trial) -> tuple[list[dict[str, object]], Joint]:
    """Return the thresholds of gate and encoder together, and how scores come about.

    Args:
        model: as it is shipped; its own `joint` and rates say nothing here.
        dev: texts to measure on.
    """
    session = GatedSession(plain(model))
    alone, both = zip(*(told(session, texts) for texts in (dev.attacks, dev.innocents)), strict=True)
    at = {str(rate["fpr"]): float(str(rate["threshold"])) for rate in calibrate.rates(alone[1][:, None], [NAME])}
    own = [at[str(rate)] for rate in FOUND]
    attacks, innocents = (logits[~np.isnan(logits)] for logits in both)
    read = [logits[np.isfinite(logits)] for logits in (attacks, innocents)]
    truths = np.concatenate([np.ones(len(read[0])), np.zeros(len(read[1]))]).astype(np.float32)
    slope, offset = calibrate.platt(np.concatenate(read), truths)
    with np.errstate(invalid="ignore"):  # where the gate clears too much
        logits = [float(np.quantile(attacks, 1 - found)) for found in FOUND.values()]
    if not np.isfinite(logits).all():
        raise ValueError("the gate clears more of the attacks than may be missed; lower `FOUND`")
    scores = [round(1 / (1 + math.exp(-slope * logit - offset)), 6) for logit in logits]
    for rate, logit in zip(FOUND, logits, strict=True):
        false = rate_at(innocents, logit)
        if false > rate:
            raise ValueError(f"at {rate} {false:.4f} of the innocent texts fire; lower `FOUND`")
    joint = Joint(
        gate=GATE,
        slope=round(slope, 6),
        offset=round(offset, 6),
        alone=_curve(own, scores),
        foreign=_curve([*_FOREIGN.values()], scores),
        legible=_curve([_LEGIBLE_SUSPICION, *own[:2]], scores),
        phrases=PHRASES,
    )
    rates: list[dict[str, object]] = [
        {"label": NAME, "fpr": rate, "threshold": score} for rate, score in zip(FOUND, scores, strict=True)
    ]
    return rates, joint


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
    return [{"label": NAME, "fpr": rate, "threshold": score} for rate, score in zip(FOUND, own, strict=True)]


def _curve(given: Sequence[float], scores: Sequence[float]) -> Curve:
    return ((_LOW, _LOW), *zip(given, scores, strict=True), (_HIGH, _HIGH))


def plain(model: Model) -> Model:
    """Return a model whose gate only clears windows."""
    return msgspec.structs.replace(model, entry=msgspec.structs.replace(model.entry, joint=None))


def told(session: GatedSession, texts: Sequence[str]) -> tuple[Float, Float]:
    """Return of each text the encoder's highest score, and the highest logit of windows that both read: float32[text].

    The latter is -inf where the gate clears all of a text, and NaN where it is asked about none of it.
    """
    alone, both = [], []
    for text in texts:
        windows = list(windows_of(session, text))
        scores = [float(session.encoder.score(window)[0]) for window in windows]
        alone.append(max(scores))
        asked = [
            (score, session.doubt(window))
            for window, score in zip(windows, scores, strict=True)
            if window.tokens > GATE_ABOVE and not session.is_foreign(window)
        ]
        logits = [_logit(said) + GATE * _logit(doubt) for said, doubt in asked if doubt >= session.threshold]
        both.append(max(logits, default=-np.inf) if asked else np.nan)
    return np.array(alone, np.float32), np.array(both, np.float32)


def _logit(score: float) -> float:
    return float(np.log(score / (1 - score)))


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
