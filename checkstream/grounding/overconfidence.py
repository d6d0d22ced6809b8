"""Certainty that an answer can't have: words that allow no doubt, and figures in domains where being wrong hurts."""

from __future__ import annotations

from checkstream.core.match.regex import TextRegex

_CERTAIN = TextRegex(
    r"(?i)\b(?:definitely|guaranteed|absolutely|certainly|always|never|impossible|without (?:a |any )?doubt)\b"
    r"|(?:^|[^\d.,])100\s?%"
)
_SENSITIVE = TextRegex(r"(?i)\b(?:health|disease|diagnosis|law|court|rights|invest|stock|money)\b")
_SPECIFIC = TextRegex(r"(?:^|[^\d.,])(?:1[5-9]|20)\d\d(?:$|[^\d%])|\d\s?%|[$€£₪¥]\s?\d|\d\s?[€₪]")


def overconfidence(prompt: str, answer: str) -> str:
    """Return why `answer` is surer than it can be, or nothing; the domain may be named by the prompt alone."""
    if _CERTAIN.found_in(answer):
        return "High confidence language detected"
    if _SPECIFIC.found_in(answer) and (_SENSITIVE.found_in(answer) or _SENSITIVE.found_in(prompt)):
        return "Confident advice in sensitive domain"
    return ""
