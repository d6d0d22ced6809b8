"""The prose says what is so: error tree, locks, readme; and no file speaks of the machine that it was written on."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from checkstream import errors

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-test.lock")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(
    page.relative_to(ROOT)
    for folder in ("", "bench", "checkstream/*", "deploy", "models", "policies")
    for page in ROOT.glob(f"{folder}/README.md".lstrip("/"))
)


def tracked() -> list[Path]:
    """Files of the commit, or of the folder where there is no git, or no commit (a release archive)."""
    if shutil.which("git") is not None:
        found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
        if found.returncode == 0:
            return [path for name in found.stdout.decode().split("\0")[:-1] if (path := ROOT / name).is_file()]
    made = {"__pycache__", "build", "dist", "node_modules", "var"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(part in made or part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


def subclasses(of: type[Exception]) -> list[type[Exception]]:
    return [found for child in of.__subclasses__() for found in (child, *subclasses(child))]


def test_every_error_class_stands_in_the_tree_under_its_parent() -> None:
    place: dict[str, tuple[int, str]] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if "──" not in line and line != "CheckstreamError":
            continue
        bars, _, rest = line.rpartition("── ")
        depth = (len(bars) + 3) // 4
        name = rest.split()[0]
        above[depth:] = [name]
        place[name] = (depth, above[depth - 1] if depth else "Exception")
    classes: list[type[Exception]] = [errors.CheckstreamError, *subclasses(errors.CheckstreamError)]
    own = {cls.__name__: cls.__bases__[0].__name__ for cls in classes if cls.__module__ == errors.__name__}
    assert {name: parent for name, (_, parent) in place.items()} == own


def test_the_project_raises_no_error_class_from_elsewhere() -> None:
    outside = [cls for cls in subclasses(errors.CheckstreamError) if cls.__module__ != errors.__name__]
    assert [cls.__qualname__ for cls in outside if cls.__module__.startswith("checkstream.")] == []


def pins(lock: str) -> dict[str, int]:
    """Return each pinned package with how many hashes it has."""
    found: dict[str, int] = {}
    name = ""
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            name = line.split()[0]
            found[name] = 0
        elif "--hash=sha256:" in line:
            found[name] += 1
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_pin_every_package_with_hashes_and_name_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    for word in ("://", "file:", "--index", "--extra-index", "--find-links", "--trusted-host", " @ ", "-e ", "-r "):
        assert word not in text
    found = pins(lock)
    assert len(found) > 20
    assert [name for name, hashes in found.items() if "==" not in name or hashes == 0] == []
    compiled = [hashes for name, hashes in found.items() if name.split("==")[0] in {"msgspec", "orjson", "cffi"}]
    assert min(compiled) > 10, "the hashes of other platforms' wheels are missing"


def test_the_locks_hold_what_the_project_asks_for_and_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    run, test = ({plain(name): name for name in pins(lock)} for lock in LOCKS)
    assert set(run.values()) <= set(test.values())
    assert [name for name in project["project"]["dependencies"] if plain(name) not in run] == []
    extras = project["project"]["optional-dependencies"]
    own = [each for each in extras["test"] if plain(each) == "checkstream"]
    named = {name for each in own for name in each.partition("[")[2].rstrip("]").split(",")}
    assert named == set(extras) - {"test", "train", "fuzz"}  # every part is tested
    wanted = [each for name in (*sorted(named), "test") for each in extras[name] if each not in own]
    assert [name for name in (*wanted, *project["build-system"]["requires"]) if plain(name) not in test] == []


def plain(requirement: str) -> str:
    """Return the name of a package as locks have it, without its version and extras."""
    name = requirement.split(">", maxsplit=1)[0].split("=", maxsplit=1)[0].partition("[")[0]
    return name.strip().lower().replace("_", "-").replace(".", "-")


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    registries = ["pypi" + ".org", "files." + "pythonhosted", "registry." + "npmjs"]
    words = ["/" + "root/", "/" + "work/main", "/" + "work/shared", "/opt/" + "wheels", *registries]
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {word}" for word in words if word in text]
    assert found == []


def in_code(page: str) -> list[str]:
    """Return the lines of a page's blocks of code, and what stands in code within its sentences."""
    prose, blocks = page.split("```")[::2], page.split("```")[1::2]
    return [line for block in blocks for line in block.splitlines()] + "".join(prose).split("`")[1::2]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_files_that_a_page_names_and_links_to_exist(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = "".join(text.split("```")[::2])
    folders = ("checkstream/", "policies/", "models/", "bench/")
    named = {part for part in prose.split("`")[1::2] if part.startswith(folders)}
    assert [name for name in named if not (ROOT / name).exists()] == []
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if not link.startswith("https://"):
            assert (ROOT / page.parent / link).exists(), f"{page} links to `{link}`"


def test_the_first_page_leads_to_every_other() -> None:
    linked = set(re.findall(r"\]\(([^)#\s]+)", README))
    assert [str(page) for page in PAGES if str(page) not in linked and str(page) != "README.md"] == []


def test_the_policy_that_the_readme_shows_does_what_the_readme_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkstream.cli import main

    monkeypatch.chdir(tmp_path)
    Path("ours.yaml").write_text(README.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    command, _, shown = README.split("$ checkstream policy ")[1].split("\n\n")[0].partition("\n")
    assert main(["policy", *shlex.split(command)]) == 0
    assert capsys.readouterr().out.strip() == shown.strip()


def test_the_configuration_that_its_page_shows_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from checkstream.config import read_config, warnings

    page = (ROOT / "checkstream" / "config" / "README.md").read_text(encoding="utf-8")
    monkeypatch.setenv("APP1_KEY", "a")
    monkeypatch.setenv("LLM_API_KEY", "b")
    config = read_config("checkstream.yaml", page.split("```yaml\n")[1].split("```")[0], tmp_path)
    assert [route.name for route in config.routes] == ["chat", "models"]
    assert warnings(config) == []


@pytest.mark.parametrize("page", ["config", "grounding", "evidence"])
def test_the_parts_of_a_configuration_that_a_page_shows_load(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkstream.config import read_config

    for name in ("APP1_KEY", "LLM_API_KEY", "HOOK_SECRET", "CHECKSTREAM_TOOLS_SECRET"):
        monkeypatch.setenv(name, "a")
    text = (ROOT / "checkstream" / page / "README.md").read_text(encoding="utf-8")
    upstreams = {"local": {"url": "http://127.0.0.1:8000"}}
    guarded = {"match": {"path": "/v1/chat/completions"}, "upstream": "local", "policies": ["builtin:default"]}
    for block in text.split("```yaml\n")[1:]:
        shown = yaml.safe_load(block.split("```")[0])
        routes = [each if each.get("pass") else guarded | each for each in shown.get("routes", [{"name": "chat"}])]
        whole = {"upstreams": upstreams} | shown | {"routes": routes}
        assert read_config("c.yaml", yaml.safe_dump(whole), tmp_path).routes, block


def test_the_make_targets_that_the_readme_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {line.split()[1] for line in README.splitlines() if line.startswith("make ")}
    assert targets == {"demo", "test"}
    assert all(f"\n{target}:" in makefile for target in targets)


def test_the_commands_that_the_pages_name_exist_with_their_options() -> None:
    from checkstream.cli import main

    said = [line.removeprefix("$ ") for page in PAGES for line in in_code((ROOT / page).read_text(encoding="utf-8"))]
    commands = {tuple(line.partition(" #")[0].split()[1:]) for line in said if line.startswith("checkstream ")}
    assert ("serve", "--upstream", "http://localhost:8000") in commands
    for command in commands:
        words = list(itertools.takewhile(lambda word: word.isalpha() and word.islower(), command[:2]))
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), pytest.raises(SystemExit) as stopped:
            main([*words, "--help"])
        assert stopped.value.code == 0, words
        options = [word for word in command if word.startswith("--")]
        assert [option for option in options if option not in shown.getvalue()] == [], command


def test_every_setting_has_a_string_below_it_that_says_what_it_is_for() -> None:
    from checkstream.config import Config
    from checkstream.config.described import descriptions, groups
    from checkstream.config.own_models import OwnModels

    said = {
        f"{group.cls.__name__}.{field.encode_name}": descriptions(group.cls).get(field.encode_name, "")
        for root in (Config, OwnModels)
        for group in groups(root)
        for field in group.fields
    }
    assert [name for name, text in said.items() if len(text) < 8 or not text.endswith(".")] == [], (
        "write a sentence in a string below the setting: what is it for?"
    )


def test_the_reference_page_is_what_the_settings_say() -> None:
    from checkstream.config import reference

    page = ROOT / "checkstream" / "config" / "REFERENCE.md"
    assert page.read_text("utf-8") == reference(), (
        f"`checkstream config reference > {page.relative_to(ROOT)}` writes it anew"
    )
