"""The table of guarantees in `checkstream/ARCHITECTURE.md` and the tests agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (
    (ROOT / "checkstream/ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Guarantees and their tests\n")[2]
)
PROVED = [*range(1, 20), *range(22, 27), 28, *range(31, 38)]


def rows() -> dict[int, list[str]]:
    """Return the tests that the table names, by guarantee."""
    found: dict[int, list[str]] = {}
    for line in TABLE.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"G\d+", cells[0]):
            number, statement, tests = cells
            assert statement, number
            assert int(number[1:]) not in found, f"{number} stands twice"
            found[int(number[1:])] = re.findall(r"`(\w+)`", tests)
    return found


def functions() -> dict[str, str]:
    """Return every test that is named after a guarantee, with the file in which it stands."""
    return {
        name: path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^(?:async )?def (test_g\d\d_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


@pytest.mark.parametrize("number", PROVED)
def test_each_guarantee_has_a_test_of_its_name(number: int) -> None:
    wanted = f"g{number:02d}_"
    named = rows().get(number, [])
    assert named, f"G{number} has no row, or names no test"
    known = functions()
    assert [name for name in named if name not in known] == [], "named in the table, and not there"
    assert [name for name in named if wanted not in name] == [], f"stands beside G{number} and is not named after it"


def test_each_test_that_is_named_after_a_guarantee_has_a_row() -> None:
    numbers = {int(number) for name in functions() for number in re.findall(r"g(\d\d)_", name)}
    assert numbers - set(rows()) == set()
