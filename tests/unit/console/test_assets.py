"""Files of others are served as they came, and every file goes by its hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

from checkstream.console.assets import Assets

STATIC = Path(__file__).parents[3] / "checkstream" / "console" / "static"


def test_files_of_others_are_the_ones_that_the_page_of_licences_names() -> None:
    rows = [line.split("`") for line in (STATIC / "LICENCES.md").read_text("utf-8").splitlines() if line[:3] == "| `"]
    named = {row[1]: row[-2] for row in rows}
    assert named == {name: hashlib.sha256((STATIC / name).read_bytes()).hexdigest() for name in named}
    assert {path.name for path in STATIC.iterdir() if ".min." in path.name} == set(named)


def test_each_file_goes_by_a_name_that_has_its_hash() -> None:
    assets = Assets()
    name = assets.named("console.css")
    digest = hashlib.sha256((STATIC / "console.css").read_bytes()).hexdigest()
    assert name == f"console.{digest[:12]}.css"
    found = assets.get(name)
    assert found is not None
    assert (found.type, found.body) == ("text/css; charset=utf-8", (STATIC / "console.css").read_bytes())
    assert [assets.get(each) for each in ("console.css", f"../{name}", "console.000000000000.css", "")] == [None] * 4
    assert assets.get("LICENCES.md") is None


def test_no_file_of_ours_makes_html_of_text_or_runs_text() -> None:
    own = [path for path in STATIC.glob("*.js") if ".min." not in path.name]
    assert own
    for path in own:
        text = path.read_text("utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            ".cssText",
        ):
            assert word not in text, (path.name, word)
