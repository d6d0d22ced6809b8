"""Run files of worked cases and print which pass.

    python -m tests.conformance FILE...

One line a case, `passed ID` or `failed ID` with what differs below it, then the numbers. Exit code 0 when all pass, 1
when one fails, 2 when a file can't be read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.case import CaseUnreadable, faults, read


def main(paths: list[str]) -> int:
    """Run the cases of `paths`."""
    if not paths or "--help" in paths or "-h" in paths:
        sys.stdout.write(__doc__ or "")
        return 0 if paths else 2
    passed = failed = 0
    try:
        cases = [case for path in paths for case in read(Path(path))]
    except (CaseUnreadable, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for case in cases:
        found = faults(case)
        failed += bool(found)
        passed += not found
        sys.stdout.write(
            f"{'failed' if found else 'passed'} {case.id}\n" + "".join(f"    {fault}\n" for fault in found)
        )
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
