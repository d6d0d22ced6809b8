"""The answer of one exchange: its choices and channels, what is taken of a unit, and what waits to leave."""
