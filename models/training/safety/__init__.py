"""The recipe of `safety`: which of nine harms a piece of a model's answer does."""
