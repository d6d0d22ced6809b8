"""A training that was cut off goes on as if nothing had happened, and never with another one's checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)

from models.training.encoder import Encoder  # noqa: E402
from models.training.fit import Example, FitSettings, Loss, Progress, fit, text_loss  # noqa: E402
from models.training.graph import Shape  # noqa: E402

if TYPE_CHECKING:
    from torch import Tensor

SHAPE = Shape(vocab=40, layers=1, hidden=16, heads=2, feed=32, positions=16)
SETTINGS = FitSettings(seed=3, epochs=2, rate=1e-2, batch_tokens=32)


class CutOffError(Exception):
    """The machine went away."""


def drawn(epoch: int, seed: int = 0) -> list[Example]:
    random = Random(seed * 100 + epoch)
    found = []
    for number in range(96):
        ids = [2, *(random.randrange(4, 40) for _ in range(random.randrange(1, 12))), 3]
        found.append(Example(ids, np.array([number % 2], np.float32), random.choice((0.5, 1.0))))
    return found


def model(shape: Shape = SHAPE) -> Encoder:
    torch.manual_seed(1)
    return Encoder(shape, 1)


def ending_after(steps: int) -> Loss:
    left = steps

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        nonlocal left
        left -= 1
        if left < 0:
            raise CutOffError
        return text_loss(logits, targets)

    return loss


def weights(trained: Encoder) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in trained.weights().items()}


@pytest.fixture(scope="module")
def whole() -> tuple[dict[str, bytes], Progress]:
    """What a training that nothing interrupts leads to."""
    trained = model()
    progress = fit(trained, drawn, text_loss, SETTINGS)
    return weights(trained), progress


@pytest.mark.parametrize("steps", [1, 52])
def test_a_training_that_was_cut_off_ends_as_one_that_was_not(
    whole: tuple[dict[str, bytes], Progress], tmp_path: Path, steps: int
) -> None:
    kept, often = tmp_path / "model.pt", replace(SETTINGS, save_every_s=-1.0)
    with pytest.raises(CutOffError):
        fit(model(), drawn, ending_after(steps), often, checkpoint=kept)
    torch.manual_seed(99)
    trained = model()
    progress = fit(trained, drawn, text_loss, SETTINGS, checkpoint=kept)
    assert weights(trained) == whole[0]
    assert progress.curve == whole[1].curve
    assert len(progress.curve) > 1


def test_a_training_whose_time_is_over_ends_with_a_checkpoint_and_goes_on_to_the_same_end(
    whole: tuple[dict[str, bytes], Progress], tmp_path: Path
) -> None:
    kept, steps, entries = tmp_path / "model.pt", list[int](), list[float]()
    for _ in range(200):
        trained = model()
        progress = fit(
            trained,
            drawn,
            text_loss,
            SETTINGS,
            checkpoint=kept,
            seconds=0,
            log=lambda told: entries.append(told["step"]),
        )
        steps.append(progress.step)
        if progress.step == progress.total:
            break
    assert steps == [*range(1, progress.total + 1)], "each run takes one step"
    assert weights(trained) == whole[0]
    assert progress.curve == whole[1].curve
    assert entries == [step for step, _ in progress.curve]
    assert fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept, seconds=0).step == progress.total


def test_an_epoch_is_told_when_it_is_over_not_when_the_time_is() -> None:
    told: list[int] = []
    progress = fit(model(), drawn, text_loss, replace(SETTINGS, epochs=1.5), every=told.append)
    assert (told, progress.step) == ([0, 1], progress.total)
    fit(model(), drawn, text_loss, SETTINGS, every=told.append, seconds=0)
    assert told == [0, 1]


def test_a_checkpoint_that_is_written_when_a_cut_off_comes_leaves_the_one_before(tmp_path: Path) -> None:
    kept = tmp_path / "model.pt"
    fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)
    kept.with_suffix(".part").write_bytes(b"half of it")
    assert fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept).curve[-1][0] > 50


OTHERS: dict[str, Callable[[Path], Progress]] = {
    "settings": lambda kept: fit(model(), drawn, text_loss, replace(SETTINGS, seed=4), checkpoint=kept),
    "model": lambda kept: fit(model(replace(SHAPE, feed=48)), drawn, text_loss, SETTINGS, checkpoint=kept),
    "examples": lambda kept: fit(model(), lambda epoch: drawn(epoch, 1), text_loss, SETTINGS, checkpoint=kept),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_trainings_checkpoint_is_refused_and_stays(tmp_path: Path, other: str) -> None:
    kept = tmp_path / "model.pt"
    fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)
    before = kept.read_bytes()
    with pytest.raises(ValueError, match=rf"`.*model\.pt` is of a training with other {other}; remove it"):
        OTHERS[other](kept)
    assert kept.read_bytes() == before


def test_a_frozen_layer_makes_another_training(tmp_path: Path) -> None:
    kept = tmp_path / "model.pt"
    fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)
    frozen = model()
    frozen.freeze(1)
    with pytest.raises(ValueError, match="other model;"):
        fit(frozen, drawn, text_loss, SETTINGS, checkpoint=kept)


def test_one_target_that_changed_makes_other_examples(tmp_path: Path) -> None:
    kept = tmp_path / "model.pt"
    fit(model(), drawn(0), text_loss, SETTINGS, checkpoint=kept)
    changed = drawn(0)
    changed[-1] = replace(changed[-1], target=np.array([0.5], np.float32))
    with pytest.raises(ValueError, match="other examples;"):
        fit(model(), changed, text_loss, SETTINGS, checkpoint=kept)


def test_how_often_a_checkpoint_is_kept_makes_no_other_training(tmp_path: Path) -> None:
    kept = tmp_path / "model.pt"
    done = fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)
    again = fit(model(), drawn, text_loss, replace(SETTINGS, save_every_s=5.0), checkpoint=kept)
    assert again.curve == done.curve


def test_a_checkpoint_that_tells_nothing_of_its_training_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "model.pt"
    torch.save({"model": model().state_dict(), "step": 5}, kept)
    with pytest.raises(ValueError, match="other model, settings, examples;"):
        fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)


class Planted:
    """What a hostile checkpoint would run."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("planted"),))


@pytest.mark.parametrize("kind", ["empty", "half", "text", "code"])
def test_a_broken_checkpoint_is_refused_and_nothing_in_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "model.pt"
    fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)
    match kind:
        case "empty":
            kept.write_bytes(b"")
        case "half":
            kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2])
        case "text":
            kept.write_bytes(b"no checkpoint")
        case _:
            torch.save({"model": Planted()}, kept)
    with pytest.raises(ValueError, match=r"checkpoint `.*model\.pt` is broken"):
        fit(model(), drawn, text_loss, SETTINGS, checkpoint=kept)
    assert not Path("planted").exists()
