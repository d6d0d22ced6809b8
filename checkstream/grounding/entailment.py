"""How likely a judge says yes, read from the likeliest words that it shows, or from its first word."""

from __future__ import annotations

import math
from collections.abc import Sequence

from checkstream.grounding.terms import Entailment

_YES = frozenset({"yes", "y"})
_NO = frozenset({"no", "n"})
_UNSURE = frozenset({"unsure", "u", "un", "uns"})
"""Tokenisers cut it up."""
_MARKS = " \t\r\n\"'`*.,:;!()[]{}<>▁Ġ"
"""White space, quotes, and what tokenisers put for a space."""
TEXT_YES, TEXT_NO, TEXT_ELSE = 0.85, 0.15, 0.5
"""Probabilities of a word without any."""


def p_yes(top_logprobs: Sequence[tuple[str, float]]) -> Entailment:
    """Return the probability of yes among the likeliest first words.

    Every way to write yes is added up. When none is shown, yes is at most as likely as the least likely word shown, and
    at most what these leave over. It is never read off a no: the judge may also have been unsure. Where no answer is
    among the words at all, as when a judge thinks aloud first, that is an error.

    Args:
        top_logprobs: Words with the natural logarithm of their probability.
    """
    shown = [
        (token.strip(_MARKS).casefold(), math.exp(min(0.0, log))) for token, log in top_logprobs if not math.isnan(log)
    ]
    if not shown:
        return Entailment(low=0.0, high=1.0, error="no probabilities")
    yes = [share for word, share in shown if word in _YES]
    if yes:
        return Entailment(low=min(1.0, math.fsum(yes)), high=min(1.0, math.fsum(yes)))
    rest = max(0.0, 1.0 - math.fsum(share for _, share in shown))
    answers = any(word in _NO or word in _UNSURE for word, _ in shown)
    return Entailment(
        low=0.0,
        high=min(rest, *(share for _, share in shown)),
        error="" if answers else "the judge did not begin with YES, NO or UNSURE; name one that answers at once",
    )


def p_yes_of_text(reply: str) -> Entailment:
    """Return what the first word of `reply` says, for judges that show no probabilities."""
    words = reply.strip(_MARKS).split(None, 1)
    word = words[0].strip(_MARKS).casefold() if words else ""
    share = TEXT_YES if word in _YES else TEXT_NO if word in _NO else TEXT_ELSE
    return Entailment(low=share, high=share)
