"""The scoreboard: every shipped model on every set that its description names, beside the version before."""
