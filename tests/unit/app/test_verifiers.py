from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from checkstream.app.verifiers import Threaded, open_verifiers
from checkstream.config import bundled
from checkstream.config.background import VerifierSettings
from checkstream.config.parts import Secret
from checkstream.errors import ConfigError, ScoringError
from checkstream.grounding.claims import claims
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage, Verdict
from checkstream.scoring.pairs import PairSession
from checkstream.scoring.pull import pull
from tests import tiny_models
from tests.scripted_chat import Asked, scripted
from tests.tiny_models import own_pairs

ANSWER = "Goods can be returned within 30 days of delivery."


@pytest.mark.parametrize("kind", ["embedded", "reader"])
async def test_a_verifier_of_this_machine_judges_and_answers_for_rag_verification(
    kind: Literal["embedded", "reader"],
) -> None:
    async with open_verifiers(VerifierSettings(kind=kind)) as verifiers:
        assert verifiers.verifier.name == kind
        (found,) = await verifiers.verifier.judge(claims(ANSWER), [Passage(id="p", text=ANSWER)])
        (chance,) = await verifiers.verifier.entailed([(ANSWER, ANSWER)])
        reply = await verifiers.judge.alignment("q", ANSWER, [Passage(id="p", text=ANSWER)])
    assert (found.verdict, chance.low > 0.9, reply is not None) == (Verdict.SUPPORTED, True, True)


async def test_a_judge_is_asked_with_its_key_and_the_embedded_verifier_stands_in_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "k-1")

    def answer(asked: Asked, number: int) -> str | int:
        del asked
        return 500 if number else '{"verdict": "contradicted", "reason": "it says 90", "passages": [1]}'

    async with scripted(answer) as chat:
        settings = VerifierSettings(kind="judge", url=chat.url, model="m", key=Secret(env="JUDGE_KEY"), timeout_ms=2000)
        async with open_verifiers(settings) as verifiers:
            (told,) = await verifiers.verifier.judge(claims(ANSWER), [Passage(id="p", text=ANSWER)])
            (made_up,) = await verifiers.verifier.judge(claims(ANSWER), [Passage(id="p", text=ANSWER)])
        assert chat.headers[0]["Authorization"] == "Bearer k-1"
        assert chat.asked[0]["model"] == "m"
    assert (told.verdict, told.reason) == (Verdict.CONTRADICTED, "it says 90")
    assert (made_up.verdict, made_up.degraded) == (Verdict.SUPPORTED, ("judge:unreachable",))


class Where:
    name, version = "where", "7"

    def __init__(self) -> None:
        self.threads: list[int] = []

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        del claims, passages
        self.threads.append(threading.get_ident())
        return []

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        del pairs
        self.threads.append(threading.get_ident())
        return []


async def test_the_event_loop_does_none_of_the_work() -> None:
    from concurrent.futures import ThreadPoolExecutor

    where = Where()
    with ThreadPoolExecutor(1) as threads:
        moved = Threaded(where, threads)
        assert (moved.name, moved.version) == ("where", "7")
        await moved.judge([], [])
        await moved.entailed([])
    assert len(where.threads) == 2
    assert threading.get_ident() not in where.threads


@pytest.mark.parametrize(("waiting", "name"), [(False, "reader"), (True, "embedded")])
async def test_where_nothing_is_configured_workers_read_and_replies_do_not_wait_for_it(
    waiting: bool, name: str
) -> None:
    async with open_verifiers(VerifierSettings(), waiting=waiting) as verifiers:
        assert verifiers.verifier.name == name


async def test_what_is_said_in_other_words_is_supported_and_another_number_is_not_voted_down() -> None:
    said = "The physician treated the child at the clinic for three weeks."
    async with open_verifiers(VerifierSettings(kind="reader")) as verifiers:
        told = claims("The doctor treated the kid at the clinic. The physician treated the child for five weeks.")
        other, changed = await verifiers.verifier.judge(told, [Passage(id="p", text=said)])
    async with open_verifiers(VerifierSettings(kind="embedded")) as verifiers:
        without, _ = await verifiers.verifier.judge(told, [Passage(id="p", text=said)])
    assert other.verdict is Verdict.SUPPORTED
    assert without.verdict is not Verdict.SUPPORTED
    assert (changed.verdict, changed.reason) == (
        Verdict.CONTRADICTED,
        "the claim says `five weeks`, the evidence `three weeks`",
    )


@pytest.mark.parametrize(
    ("broken", "reason"),
    [("model.onnx", "graph"), ("tokenizer.json", "tokenizer"), ("missing", "model.onnx"), ("changed", "sha256")],
)
async def test_a_reader_whose_files_are_not_sound_is_refused_with_what_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, reason: str
) -> None:
    monkeypatch.setattr("checkstream.app.verifiers.bundled", lambda kind: tmp_path / kind)
    hostile_reader(tmp_path / "models", broken)
    with pytest.raises(ConfigError) as told:
        async with open_verifiers(VerifierSettings()):
            pass
    (fault,) = told.value.faults
    assert (fault.file, "kind: embedded" in fault.advice) == ("model reader", True)
    assert reason in fault.reason


def hostile_reader(folder: Path, broken: str) -> None:
    """Write the manifest and the files of `reader`, one of them broken; pinned as they are, but for `changed`."""
    (folder / "reader").mkdir(parents=True)
    manifest = json.loads((bundled("models") / "manifest.json").read_bytes())
    (entry,) = [each for each in manifest["models"] if each["name"] == "reader"]
    contents = {"model.onnx": tiny_models.graph(2, types=2), "tokenizer.json": tiny_models.pair_tokenizer()}
    if broken in contents:
        contents[broken] = b"\x08\x07" + b"{" * 64
    for file in entry["files"]:
        name = Path(file["path"]).name
        data = contents[name]
        file |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        if broken != "missing" or name != "model.onnx":
            (folder / "reader" / name).write_bytes(data[:-1] + b"!" if broken == "changed" else data)
    (folder / "manifest.json").write_text(json.dumps({**manifest, "models": [entry]}))


async def test_a_model_of_pairs_judges_and_its_failure_is_the_embedded_verifiers_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = own_pairs(tmp_path)
    await pull(models)
    settings = VerifierSettings(kind="cross_encoder", model="nli")
    async with open_verifiers(settings, models) as verifiers:
        (found,) = await verifiers.verifier.judge(claims(ANSWER), [Passage(id="p", text=ANSWER)])
        monkeypatch.setattr(PairSession, "read", fail)
        (failed,) = await verifiers.verifier.judge(claims(ANSWER), [Passage(id="p", text=ANSWER)])
        name = verifiers.verifier.name
    assert (name, found.degraded) == ("cross_encoder:nli", ())
    assert (failed.verdict, failed.degraded) == (Verdict.SUPPORTED, ("cross_encoder:crash",))


def fail(*_: object) -> None:
    raise ScoringError("it is broken", reason="crash")


@pytest.mark.parametrize("name", ["safety", "none"])
async def test_a_model_that_compares_no_texts_is_no_cross_encoder(tmp_path: Path, name: str) -> None:
    models = own_pairs(tmp_path)
    await pull(models)
    with pytest.raises(ConfigError, match=f"no model `{name}` of the kind `pair`; known: `reader`, `nli`"):
        async with open_verifiers(VerifierSettings(kind="cross_encoder", model=name), models):
            pass


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "cross_encoder"},
        {"kind": "cross_encoder", "model": "nli", "url": "https://x/v1"},
        {"kind": "reader", "model": "nli"},
        {"model": "nli"},
        {"url": "https://x/v1"},
        {"kind": "meaning"},
        {"kind": "embedded", "url": "https://x/v1"},
        {"kind": "other"},
    ],
)
def test_settings_that_contradict_their_kind_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, VerifierSettings)
