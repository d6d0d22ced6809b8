from __future__ import annotations

import pytest

from checkstream.errors import GateError
from checkstream.gate.prompts import about, library, numbered


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.yaml", b"- One?\n- text: Two?\n  category: edge\n", [("One?", "library"), ("Two?", "edge")]),
        ("a.yml", b"prompts:\n- One?\n- Two?", [("One?", "library"), ("Two?", "library")]),
        ("a.json", b'[{"prompt": "One?"}]', [("One?", "library")]),
        ("a.jsonl", '{"text": "Größe?"}\n\n"Two?"\n'.encode(), [("Größe?", "library"), ("Two?", "library")]),
        ("a.txt", b"\xef\xbb\xbf# ours\nOne?\n\n  Two?  \n", [("One?", "library"), ("Two?", "library")]),
    ],
)  # fmt: skip
def test_prompts_are_read_from_files(name: str, content: bytes, found: list[tuple[str, str]]) -> None:
    assert library(name, content) == found


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.yaml", b"{", "`a.yaml` is no YAML"),
        ("a.yaml", b"\xff\xfe", "`a.yaml` is no YAML"),
        ("a.yaml", b"!!python/object/apply:os.system [id]", "`a.yaml` is no YAML"),
        ("a.yaml", b"a: &a [x]\nprompts: *a", "an alias"),
        ("a.txt", b"\xff", "can't be read as a file of prompts"),
        ("a.yaml", b"", "holds no list of prompts"),
        ("a.yaml", b"[]", "holds no list of prompts"),
        ("a.json", b'{"questions": []}', "holds no list of prompts"),
        ("a.jsonl", b"not json", "can't be read as a file of prompts"),
        ("a.yaml", b"- 7", "entry 1 of `a.yaml` is no prompt"),
        ("a.yaml", b"- ok\n- {text: '  '}", "entry 2 of `a.yaml` is no prompt"),
        ("a.yaml", b"- {text: x, category: [y]}", "entry 1 of `a.yaml` is no prompt"),
        ("a.txt", b"x" * 20_001, "has 20001 characters"),
        ("a.exe", b"x", "ends with `.exe`"),
    ],
)
def test_what_is_no_file_of_prompts_is_refused(name: str, content: bytes, why: str) -> None:
    with pytest.raises(GateError, match=why):
        library(name, content)


def test_equal_prompts_are_asked_once() -> None:
    found = numbered([("One?", "a"), (" One? ", "b"), ("Two?", "a")])
    assert [(prompt.id, prompt.text, prompt.category) for prompt in found] == [("p1", "One?", "a"), ("p2", "Two?", "a")]


def test_topics_of_documents_become_questions_of_every_category() -> None:
    found = about(["returns", "shipping costs", "returns"], ["factual_recall", "edge_cases"], 20)
    assert len({text for text, _ in found}) == len(found)
    assert {kind for _, kind in found} == {"factual_recall", "edge_cases"}
    assert all("returns" in text or "shipping costs" in text for text, _ in found)
    assert about(["returns"], ["own category"], 2)[0][1] == "own category"
    assert about(["returns", "shipping"], [], 3) == about(["returns", "shipping"], [], 3)
    assert len(about(["a topic"] * 9, (), 3)) == 3
    assert about([], ("factual_recall",), 5) == []
