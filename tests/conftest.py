"""What every test shares: laws are never judged by the clock, since machines are noisy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("checkstream", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=2000)
settings.load_profile("checkstream")
