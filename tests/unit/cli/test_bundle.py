"""`checkstream bundle` as the people of a team use it: each with a key of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checkstream.cli import main
from tests.bundled import LOGS, STOPS, TRUST

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a folder with keys and a `trust.yaml`; returns its exit code and all that it says."""
    monkeypatch.chdir(tmp_path)

    def call(command: str) -> tuple[int, str]:
        try:
            code = main(["bundle", *command.split()])
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        return code, said.out + said.err

    for name in ("ann", "ben", "publisher", "eve", "eli", "ruth", "rob"):
        assert call(f"key {name}")[0] == 0
    Path("trust.yaml").write_text(TRUST, encoding="utf-8")
    write(STOPS)
    return call


def write(*rules: str, version: str = "1.0") -> None:
    """Write a `bundle.yaml` of a policy with a case, and of a pack that comes along."""
    text = "pack: {name: ours, version: 1.0.0}\npolicies:\n" + "".join(f"  - {rule}\n" for rule in rules)
    Path("ours").mkdir(exist_ok=True)
    Path("ours/policy.yaml").write_text(text, encoding="utf-8")
    Path("ours/tests.yaml").write_text(
        "cases:\n  - {name: stops, answer: There is zero risk in it., expect: {action: stop}}\n", encoding="utf-8"
    )
    Path("bundle.yaml").write_text(
        f"bundle: retail\nversion: '{version}'\nprograms:\n  chat: {{policies: [builtin:pci-dss, ours]}}\n",
        encoding="utf-8",
    )


def published(run: Run) -> None:
    for command in (
        "init repository --trust trust.yaml",
        *(f"sign repository --key keys/{name}.pem" for name in ("ann", "ben")),
        "build bundle.yaml -o retail",
        *(f"sign repository retail --key keys/{name}.pem" for name in ("eve", "ruth")),
        "publish repository --key keys/publisher.pem",
    ):
        code, said = run(command)
        assert code == 0, said


def test_from_the_first_key_to_a_node(run: Run) -> None:
    code, said = run("init repository --trust trust.yaml")
    assert (code, said.splitlines()[0]) == (0, "root 1: signed by nobody; needs 2 more of ann, ben")
    published(run)
    root = "--root repository/public/metadata/1.root.json --name retail"
    code, said = run(f"fetch repository/public {root} --state var -o current --json")
    assert code == 0
    summary = json.loads(said)
    assert (summary["bundle"], summary["version"]) == ("retail", "1.0")
    assert summary["rules"] > 1
    content = {path.relative_to("current"): path.read_bytes() for path in Path("current").rglob("*") if path.is_file()}
    assert content == {
        path.relative_to("retail"): path.read_bytes() for path in Path("retail").rglob("*") if path.is_file()
    }
    code, said = run(f"verify repository/public {root}")
    assert (code, said.splitlines()[0]) == (
        0,
        f"retail 1.0, {summary['digest'][:12]}: enforces {summary['rules']} rules",
    )
    assert run("publish repository --key keys/publisher.pem") == (0, "said anew that it is the newest\n")


def test_what_differs_is_shown_with_what_needs_approval(run: Run) -> None:
    assert run("build bundle.yaml -o before")[0] == 0
    write(STOPS, LOGS, version="1.1")
    assert run("build bundle.yaml -o logs")[0] == 0
    assert run("diff before logs") == (
        0,
        "retail 1.0 -> retail 1.1\nadded chat/R-2\n1 rule differ, 0 of them in what is enforced\n",
    )
    write(STOPS.replace("zero risk", "no risk"), version="1.2")
    assert run("build bundle.yaml -o stops")[0] == 0
    code, said = run("diff before stops")
    assert code == 1
    assert "changed chat/R-1, needs approval\n  triggers\n    before  phrase:zero risk (" in said
    code, said = run("diff stops before --json")
    assert [rule["change"] for rule in json.loads(said)["rules"]] == ["changed"]
    assert run("diff before before") == (
        0,
        "retail 1.0 -> retail 1.0\n0 rules differ, 0 of them in what is enforced\n",
    )


def test_an_author_alone_puts_nothing_in_force(run: Run) -> None:
    published(run)
    write(STOPS.replace("zero risk", "no risk"), version="1.1")
    assert run("build bundle.yaml -o retail")[0] == 0
    assert run("sign repository retail --key keys/eve.pem")[0] == 0
    code, said = run("publish repository --key keys/publisher.pem")
    assert code == 2
    assert "what the bundle `retail` 1.1 enforces" in said
    assert run("verify repository/public --root repository/public/metadata/1.root.json --name retail")[0] == 0
    assert run("sign repository retail --as risk --key keys/ruth.pem")[0] == 0
    assert run("publish repository --key keys/publisher.pem") == (0, "published risk, team\n")


def test_a_bundle_carries_its_cases(run: Run) -> None:
    assert run("build bundle.yaml -o retail")[0] == 0
    code, said = run("test retail --splits 1")
    assert code == 0, said
    assert "ours@1.0.0: 1 of 1 cases passed" in said
    assert "pci-dss@" in said
    assert "cases passed" in said
    cases = Path("retail/chat/01-ours/tests.yaml")
    assert cases.exists()
    cases.write_text("cases: []\n# ", encoding="utf-8")
    code, said = run("test retail")
    assert code == 2
    assert "is not what the bundle says" in said


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("init repository --trust nowhere.yaml", "nowhere.yaml: can't be read: no such file or directory"),
        ("build nowhere.yaml -o retail", "nowhere.yaml: can't be read"),
        ("build trust.yaml -o retail", "trust.yaml:"),
        ("build bundle.yaml -o keys", "`keys` is there and is no bundle; give another folder"),
        ("sign repository --key keys/ann.pem", "nothing that waits is for this key"),
        ("sign repository keys --key keys/eve.pem", "this is no repository of bundles"),
        ("publish repository --key keys/publisher.pem", "there is nothing to publish"),
        ("test keys", "`keys` is no bundle"),
        ("diff keys keys", "`keys` is no bundle"),
        ("verify nowhere --root trust.yaml --name retail", "may not be trusted"),
        ("verify nowhere --root nowhere --name retail", "can't read the root `nowhere`: no such file or directory"),
        ("key ../x", "is no name of a key"),
        ("key eve", "`keys/eve.pem` is there already"),
        ("bild", "did you mean `build`?"),
    ],
)
def test_what_can_not_be_done_is_said(run: Run, command: str, says: str) -> None:
    code, said = run(command)
    assert code == 2
    assert says in said
    assert "Traceback" not in said


def test_a_key_with_several_roles_has_to_say_which(run: Run) -> None:
    trust = TRUST.replace("approvers:", "approvers:\n ").replace(
        "team: {", "other: {keys: [eve], bundles: [wholesale]}, team: {"
    )
    Path("trust.yaml").write_text(trust, encoding="utf-8")
    assert run("init repository --trust trust.yaml")[0] == 0
    assert run("build bundle.yaml -o retail")[0] == 0
    code, said = run("sign repository retail --key keys/eve.pem")
    assert code == 2
    assert "this key has 2 roles for bundles; say which with --as: other, team" in said
    code, said = run("sign repository retail --key keys/rob.pem")
    assert "this key is none of an author or approver" in said


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    without = "import sys; sys.modules['tuf'] = None; from checkstream.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", without, "bundle", "verify", "a", "--root", "b", "--name", "c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "checkstream: `bundle` needs the extra `checkstream[bundles]`; install it\n"


def test_a_version_before_stays_good_until_it_is_withdrawn(run: Run) -> None:
    published(run)
    write(STOPS, LOGS, version="2.0")
    assert run("build bundle.yaml -o retail")[0] == 0
    assert run("sign repository retail --key keys/eve.pem")[0] == 0
    code, said = run("sign repository retail --key keys/ruth.pem")
    assert (code, ", and still of " in said) == (0, True)
    assert run("publish repository --key keys/publisher.pem")[0] == 0
    root = "--root repository/public/metadata/1.root.json --name retail"
    code, said = run(f"verify repository/public {root}")
    assert (code, "  and still good: 1.0 (" in said) == (0, True)
    assert run("withdraw repository retail 7.0 --key keys/eve.pem")[0] == 2
    code, said = run("withdraw repository retail 1.0 --key keys/eve.pem")
    assert (code, said.splitlines()[0]) == (0, "retail is to be without 1.0")
    assert run("publish repository --key keys/publisher.pem")[0] == 0
    assert "still good" not in run(f"verify repository/public {root}")[1]
    assert run("sign repository retail --keep 17 --key keys/eve.pem")[0] == 2
