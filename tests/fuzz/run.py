"""Runs one target under atheris, which looks for new branches: `python -m tests.fuzz.run TARGET [libFuzzer options]`.

Needs the extra `fuzz` (`pip install -e '.[fuzz]'`). The seeds of `corpus/TARGET/` are read and never changed; what
is found goes to `.fuzz/TARGET/`, inputs that break a promise to `.fuzz/TARGET-crash-...`.
"""

from __future__ import annotations

import sys
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
FOUND = Path(".fuzz")


def main(arguments: list[str]) -> int:
    """Fuzz until something breaks or an option (`-max_total_time=600`) ends it."""
    try:
        import atheris
    except ImportError:
        sys.stderr.write("atheris is not installed; run `pip install -e '.[fuzz]'`\n")
        return 2
    with atheris.instrument_imports(include=["checkstream"]):
        from tests.fuzz.targets import TARGETS
    if not arguments or arguments[0] not in TARGETS:
        sys.stderr.write(f"name a target: {', '.join(TARGETS)}\n")
        return 2
    target, *options = arguments
    found = FOUND / target
    found.mkdir(parents=True, exist_ok=True)
    places = [str(found), str(CORPUS / target)]  # new inputs go to the first
    atheris.Setup(
        [sys.argv[0], *places, f"-artifact_prefix={FOUND}/{target}-", "-timeout=10", *options], TARGETS[target]
    )
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
