"""What every test shares: laws are never judged by the clock, since machines are noisy.

`make test` tries the same examples of a law for the same code, so that a commit is as good or as bad on every machine;
`make nightly` draws new ones, and more of them, and what it finds becomes an example of its law.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.chance import BY_DAY

_CLIENTS = "tests/e2e/sdks/"

settings.register_profile("checkstream", deadline=None, derandomize=True, max_examples=BY_DAY)
settings.register_profile("nightly", deadline=None, max_examples=1000)
settings.load_profile("checkstream")


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the tests of a file to one worker, and those of all clients: what they start is started once, not twice."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        return _CLIENTS if file.startswith(_CLIENTS) else file


def pytest_xdist_make_scheduler(config: Any, log: Any) -> ByFile:
    return ByFile(config, log)
