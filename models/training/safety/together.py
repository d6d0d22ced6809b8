"""Any harm as a tenth score: what the nine scores of a window come to together, put behind them into the graph.

The chance that none of nine independent harms is done is the product of the chances that each isn't, so the sum of
`softplus(logit)` says how sure it is that one is. Each logit is shifted first by how much more or less its label says
of a text's harm than its own probability does, and the logarithm of the sum is calibrated. A label that rises never
lowers it. Encoder, heads and gate stay as they are: the nine scores are the same to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional

from models.training.calibrate import rates
from models.training.corpus import part_of
from models.training.export import MODELS, put_entry, run, session, sigmoid
from models.training.graph import Float
from models.training.safety.assemble import corpus
from models.training.safety.checks import Checked, checked
from models.training.safety.distil import plain_tokenizer
from models.training.safety.labels import ANY, HARMS, Text
from models.training.safety.promotions import CALM_SOURCE, SOURCE
from models.training.safety.recipe import benign, kinds
from models.training.safety.ship import strictest
from models.training.safety.sources import is_harmful
from models.training.safety.taught import added
from models.training.teacher.safety import UNSURE

VERSION = "2.2.0"
LABEL = "any"

SIDE = frozenset(
    {"context_wiki", "decodingtrust", "fox", "hatexplain", "measuring_hate", "redditbias", "sbic", "toxigen_human"}
)
"""Sets of the teacher that it is fitted to beside the corpus; what measures answers isn't among them."""

MOST = 150
"""Texts of a source at most."""

CLIP = 12.0
"""Logits beyond it say no more."""

_NEAR_ZERO = 0.01
"""How strongly shifts are held near zero: far ones fit the sources and not others."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Joined:
    """How nine logits become one: `slope * log(sum(softplus(clipped + shift))) + offset`."""

    shifts: tuple[float, ...]
    slope: float
    """Above 0."""
    offset: float

    def logit(self, logits: Float) -> Float:
        """Return the logit of any harm, float32[row], of float32[row, harm]."""
        shifted = np.clip(logits, -CLIP, CLIP) + np.array(self.shifts, np.float32)
        sure = np.logaddexp(0, shifted).sum(axis=-1)
        return np.asarray(self.slope * np.log(sure) + self.offset, np.float32)


def fitted(texts: Sequence[Float], harmful: Bools, *, rounds: int = 4, steps: int = 150) -> Joined:
    """Fit the shifts and the calibration to whole texts, of which the most suspicious check decides.

    Args:
        texts: float32[check, harm], the logits of each text's checks.
        harmful: bool[text].
        rounds: which check decides is found anew so often.
        steps: of each round.
    """
    truth = torch.tensor(harmful.astype(np.float32))
    shifts = torch.zeros(len(HARMS), requires_grad=True)
    slope, offset = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)

    def now() -> Joined:
        return Joined(tuple(shifts.tolist()), max(float(slope.item()), 1e-3), float(offset.item()))

    for _ in range(rounds):
        joined = now()
        top = np.stack([own[int(np.argmax(joined.logit(own)))] for own in texts])
        clipped = torch.tensor(np.clip(top, -CLIP, CLIP).astype(np.float32))
        optimizer = torch.optim.Adam([shifts, slope, offset], lr=0.05)
        for _ in range(steps):
            guess = slope * torch.log(functional.softplus(clipped + shifts).sum(1)) + offset
            loss = functional.binary_cross_entropy_with_logits(guess, truth) + _NEAR_ZERO * (shifts**2).sum() / 4
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return now()


def nine(graph: bytes) -> onnx.ModelProto:
    """Return a graph of the nine harms; one that has any harm behind them gives that up."""
    model = onnx.load_model_from_string(graph)
    given = [node.output[0] for node in model.graph.node]
    if "harms" in given:
        del model.graph.node[given.index("harms") + 1 :]
        model.graph.node[-1].output[0] = "logits"
        kept = [value for value in model.graph.initializer if not value.name.startswith("any.")]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
    _gives(model, len(HARMS))
    return model


def extended(graph: bytes, joined: Joined) -> bytes:
    """Return a graph whose tenth column is any harm; the nine before it are what they were.

    Args:
        graph: of `encoder_graph`, with a column for each harm, or of this function.
        joined: what the tenth is.

    Raises:
        ValueError: the graph has other columns.
    """
    model = nine(graph)
    last = model.graph.node[-1]
    if list(last.output) != ["logits"]:
        raise ValueError("the last node of the graph doesn't give its logits; rebuild it by `encoder_graph`")
    last.output[0] = "harms"
    values: dict[str, NDArray[Any]] = {
        "any.least": np.array(-CLIP, np.float32),
        "any.most": np.array(CLIP, np.float32),
        "any.shifts": np.array(joined.shifts, np.float32),
        "any.axis": np.array([-1], np.int64),
        "any.slope": np.array(joined.slope, np.float32),
        "any.offset": np.array(joined.offset, np.float32),
    }
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    steps: tuple[tuple[str, list[str], str, dict[str, int]], ...] = (
        ("Clip", ["harms", "any.least", "any.most"], "any.clipped", {}),
        ("Add", ["any.clipped", "any.shifts"], "any.shifted", {}),
        ("Softplus", ["any.shifted"], "any.sure", {}),
        ("ReduceSum", ["any.sure", "any.axis"], "any.sum", {"keepdims": 1}),
        ("Log", ["any.sum"], "any.log", {}),
        ("Mul", ["any.log", "any.slope"], "any.sloped", {}),
        ("Add", ["any.sloped", "any.offset"], "any.logit", {}),
        ("Concat", ["harms", "any.logit"], "logits", {"axis": -1}),
    )
    for operator, inputs, output, attributes in steps:
        model.graph.node.append(helper.make_node(operator, inputs, [output], output, **attributes))
    _gives(model, len(HARMS) + 1)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _gives(model: onnx.ModelProto, columns: int) -> None:
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", columns]))


def fitting_texts(dev: Sequence[Text], others: Sequence[Text], seed: int, most: int = MOST) -> list[Text]:
    """Return the texts that it is fitted to: of which it is known whether they do harm, no source above its limit."""
    own = [text for text in dev if text.source not in {SOURCE, CALM_SOURCE}]
    own += [text for text in others if text.source in SIDE and part_of(text.group or text.text) == "dev"]
    Random(seed).shuffle(own)
    counts: dict[str, int] = {}
    kept = []
    for text in own:
        known = text.target[ANY] >= 0.5 or text.target[ANY] <= 0.3
        if known and counts.get(text.source, 0) < most:
            counts[text.source] = counts.get(text.source, 0) + 1
            kept.append(text)
    return kept


def logits_of(texts: Sequence[str], files: Path) -> list[Checked]:
    """Return the logits of each text's checks, of the graph in a folder of a model's files, without its gate."""
    opened = session((files / "model.onnx").read_bytes())
    tokenizer = plain_tokenizer((files / "tokenizer.json").read_text())
    return checked(texts, tokenizer, lambda windows: np.stack(run(opened, windows)))


def build(folder: Path, seed: int, work: Path, models: Path = MODELS, most: int = MOST) -> dict[str, Any]:
    """Give the model that ships its tenth score: fit it, find its thresholds, write its graph and its entry.

    Args:
        folder: of the pool.
        seed: of the corpus and of every choice.
        work: where figures are kept.
        models: the folder of the manifest, which holds the model of nine scores, or of ten.
        most: texts of a source at most that it is fitted to.
    """
    files = models / "safety"
    dev = corpus(folder, seed, UNSURE)["dev"]
    texts = fitting_texts(dev, list(added(folder)), seed, most)
    said = [own.scores[:, : len(HARMS)] for own in logits_of([text.text for text in texts], files)]
    joined = fitted(said, np.array([text.target[ANY] >= 0.5 for text in texts]))
    innocent = benign(dev)
    calm = logits_of([text.text for text in innocent], files)
    highest = np.stack([[joined.logit(own.scores[:, : len(HARMS)]).max()] for own in calm])
    chances = sigmoid(highest)
    found = strictest([rates(chances[own], [LABEL]) for own in kinds(innocent)])
    (files / "model.onnx").write_bytes(extended((files / "model.onnx").read_bytes(), joined))
    _enter(models, found)
    figures = {
        "joined": {"shifts": joined.shifts, "slope": joined.slope, "offset": joined.offset},
        "texts": len(texts),
        "harmful": sum(is_harmful(text) is True for text in texts),
        "benign": len(innocent),
        "rates": found,
        "highest_of_nine": strictest(
            [rates(np.array([_chances(own).max() for own in calm])[own, None], ["highest"]) for own in kinds(innocent)]
        ),
    }
    work.mkdir(parents=True, exist_ok=True)
    (work / "together.json").write_text(json.dumps(figures, indent=1))
    return figures


def _chances(own: Checked) -> Float:
    return sigmoid(own.scores[:, : len(HARMS)])


def _enter(models: Path, found: Sequence[Mapping[str, object]]) -> None:
    """Write the entry of the model with the new label behind the others; all else stays as it is."""
    entries = json.loads((models / "manifest.json").read_text())["models"]
    entry: dict[str, Any] = next(entry for entry in entries if entry["name"] == "safety")
    roles = {file["role"]: file["path"] for file in entry.pop("files") if file["role"] != "reference"}
    likely = max([0.5, *(float(str(row["threshold"])) for row in found if row["fpr"] == 0.01)])
    entry["version"] = VERSION
    entry["labels"] = [*HARMS, LABEL]
    for key, rows in (("thresholds", [{"label": LABEL, "score": likely}]), ("rates", [*found])):
        entry[key] = [*(row for row in entry[key] if row["label"] != LABEL), *rows]
    put_entry(entry, roles, models)
