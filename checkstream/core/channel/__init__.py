"""One channel: a stretch of text that arrives in pieces, what of it may leave, and what rules make of it."""
