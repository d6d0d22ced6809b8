"""The pure core: it decides. No IO, clock, threads, randomness or logging below this folder."""
