"""The verifier that needs no model: shared words, numbers, names and negation, of a claim and its evidence. Pure.

It reads surface, not meaning: a paraphrase without a shared word is unsupported to it, and a claim that follows only
by reasoning too. What it finds it can show: the words that are missing, the number that differs, the place it read.
"""

from checkstream.grounding.embedded.verifier import EmbeddedVerifier

__all__ = ["EmbeddedVerifier"]
