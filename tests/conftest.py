"""What every test shares: laws are never judged by the clock, since machines are noisy.

`make test` tries the same examples of a law for the same code, so that a commit is as good or as bad on every machine;
`make nightly` draws new ones, and more of them, and what it finds becomes an example of its law.
"""

from __future__ import annotations

from hypothesis import settings

from tests.chance import BY_DAY

settings.register_profile("checkstream", deadline=None, derandomize=True, max_examples=BY_DAY)
settings.register_profile("nightly", deadline=None, max_examples=1000)
settings.load_profile("checkstream")
