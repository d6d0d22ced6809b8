"""The causal models that `safety` was compared with: a check with its state kept is the check of the whole text."""

import numpy as np
import pytest

from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)

PIECES, WINDOW = 8, 12


@pytest.mark.parametrize(("kind", "near"), [("gru", 0.02), ("tcn", 0.1)])
def test_a_stream_that_keeps_its_state_scores_as_if_it_had_read_the_whole_text(kind: str, near: float) -> None:
    from models.training.export import session
    from models.training.safety.causal import Causal, CausalShape, step_graph

    torch.manual_seed(1)
    model = Causal(CausalShape(kind, vocab=60, layers=2, hidden=32, embedding=16)).eval()  # type: ignore[arg-type]
    ids = np.random.default_rng(2).integers(1, 60, 5 * PIECES)
    stops = [*range(PIECES, len(ids) + 1, PIECES)]
    (whole,) = model.checks([ids.tolist()], [stops], WINDOW)
    opened = session(step_graph(model, PIECES))
    names = [own.name for own in opened.get_outputs()]
    state = {own.name: np.zeros(own.shape, np.float32) for own in opened.get_inputs() if own.name.startswith("state")}
    seen = np.zeros((0, 32), np.float32)
    for stop, expected in zip(stops, whole, strict=True):
        kept = seen[-(WINDOW - PIECES) :]
        feed = {"input_ids": ids[None, stop - PIECES : stop], "kept_sum": kept.sum(axis=0, keepdims=True), **state}
        feed["share"] = np.array([1 / (len(kept) + PIECES)], np.float32)
        found = dict(zip(names, opened.run(None, feed), strict=True))
        assert found["logits"][0] == pytest.approx(expected, abs=near)
        seen = np.concatenate([seen, found["states"][0]])
        state = {name: found[f"new_{name}"] for name in state}
    assert np.abs(whole[0] - whole[-1]).max() > 2 * near, "what was read decides"


@pytest.mark.parametrize("kind", ["gru", "tcn"])
def test_no_state_knows_what_comes_after_it(kind: str) -> None:
    from models.training.safety.causal import Causal, CausalShape

    torch.manual_seed(1)
    model = Causal(CausalShape(kind, vocab=60, layers=3, hidden=32, embedding=16)).eval()  # type: ignore[arg-type]
    first, other = torch.tensor([[5, 6, 7, 8, 9, 10]]), torch.tensor([[5, 6, 7, 40, 41, 42]])
    with torch.no_grad():
        same, changed = model.states(first)[0], model.states(other)[0]
    assert same[:3].numpy() == pytest.approx(changed[:3].numpy(), abs=1e-6)
    assert np.abs(same[3:].numpy() - changed[3:].numpy()).max() > 1e-3
