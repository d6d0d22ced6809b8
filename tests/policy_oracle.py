"""A slow, obvious reading of policies: it walks each rule as it was written, and knows neither signals nor code.

Truth has three values here: None is what can't be decided. Expressions are read by the oracle of CEL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from checkstream.core.cel.check import check
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.types import DYN, STRING, map_of
from checkstream.core.cel.values import from_json
from tests.cel_oracle import evaluate

Written = Mapping[str, Any]
"""A rule or a group of triggers, as the policy file has it."""
Truth = bool | None
LABELS = ("toy.alpha", "toy.beta", "other.gamma")
KINDS = {"entities": "entity", "patterns": "pattern", "phrases": "phrase", "classifiers": "classifier"}
TYPES = {"context": map_of(STRING, DYN), "request": DYN, "scores": DYN, "findings": DYN, "stream": DYN}


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known when a rule is decided."""

    context: dict[str, Any]
    request: dict[str, Any]
    """Only the fields that the request has."""
    found: dict[str, int]
    """`entity:EMAIL` -> how often."""
    scores: dict[str, float]
    """`toy.alpha` -> its latest score."""
    peaks: dict[str, float]
    """`toy.alpha` -> its highest score."""
    stream: dict[str, Any]


def every(truths: Iterable[Truth]) -> Truth:
    known = list(truths)
    return False if False in known else None if None in known else True


def some(truths: Iterable[Truth]) -> Truth:
    known = list(truths)
    return True if True in known else None if None in known else False


def opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


def condition(text: str, world: World) -> Truth:
    """Tell whether a condition holds: its names are plain maps, in which what isn't known isn't there."""
    scores: dict[str, Any] = {name.partition(".")[0]: {} for name in LABELS}
    for name, score in world.scores.items():
        model, label = name.split(".")
        scores.setdefault(model, {})[label] = score
        scores[name] = scores[label] = score
    names = {
        "context": world.context,
        "request": world.request,
        "scores": scores,
        "findings": {title.partition(":")[2]: count for title, count in world.found.items()},
        "stream": world.stream,
    }
    value = evaluate(check(parse(text), TYPES).expr, {name: from_json(each) for name, each in names.items()})
    return value if type(value) is bool else None


def full_name(name: str) -> str:
    return name if name in LABELS else next(label for label in LABELS if label.endswith(f".{name}"))


def detectors(group: Written) -> Iterator[tuple[str, Written]]:
    """Yield the detectors that stand in a group itself: title, and what is written of it."""
    for key, kind in KINDS.items():
        for item in group.get(key, ()):
            name = item if isinstance(item, str) else item["name"]
            title = full_name(name) if kind == "classifier" else name
            yield f"{kind}:{title}", item if isinstance(item, dict) else {}


def tree(rule: Written) -> Written | None:
    """Return the tree of triggers of a rule that may be written flat."""
    if "triggers" in rule:
        return rule["triggers"]  # type: ignore[no-any-return]
    items = [{key: [item]} for key in KINDS for item in rule.get(key, ())]
    return {rule.get("match", "any"): items} if items else None


def titles(group: Written, *, outside: bool = False) -> set[str]:
    """Return the detectors of a group and of those below it; outside: only those that stand in no `not`."""
    below = [*group.get("any", ()), *group.get("all", ()), *([group["not"]] if "not" in group and not outside else [])]
    return {title for title, _ in detectors(group)}.union(*(titles(item, outside=outside) for item in below))


def reaches(score: float, said: Written, world: World) -> Truth:
    """Tell whether a score reaches its threshold: that of the first case that holds, else the trigger's own."""
    if score < min([said["threshold"], *(case["threshold"] for case in said.get("when", ()))]):
        return False
    for case in said.get("when", ()):
        holds = condition(case["condition"], world)
        if holds is None:
            return None
        if holds:
            return bool(score >= case["threshold"])
    return bool(score >= said["threshold"])


def found(title: str, said: Written, world: World) -> Truth:
    """Tell whether a detector holds now: an unknown score does not."""
    if title.startswith("classifier:"):
        score = world.scores.get(title.partition(":")[2])
        return False if score is None else reaches(score, said, world)
    return world.found[title] > 0


def has_stood(title: str, said: Written, world: World) -> Truth:
    """Tell whether a detector has held anywhere: of an unknown score nothing can be said."""
    if title.startswith("classifier:"):
        peak = world.peaks.get(title.partition(":")[2])
        return None if peak is None else reaches(peak, said, world)
    return world.found[title] > 0


def holds(group: Written, world: World, *, anywhere: bool = False) -> Truth:
    """Tell whether a group holds now, or has held anywhere in the text."""
    if "not" in group:
        return opposite(holds(group["not"], world, anywhere=True))
    if "any" in group:
        return some(holds(item, world, anywhere=anywhere) for item in group["any"])
    if "all" in group:
        return every(holds(item, world, anywhere=anywhere) for item in group["all"])
    return some((has_stood if anywhere else found)(title, said, world) for title, said in detectors(group))


def holds_by(group: Written, came: str, world: World) -> Truth:
    """Tell whether a group holds because of the detector that has come, not only because of others."""
    if "not" in group:
        return False
    if "any" in group:
        return some(holds_by(item, came, world) for item in group["any"])
    if "all" in group:
        return some(
            every([holds_by(item, came, world), *(holds(other, world) for other in others(group["all"], place))])
            for place, item in enumerate(group["all"])
        )
    return some(found(title, said, world) for title, said in detectors(group) if title == came)


def others(items: Sequence[Written], place: int) -> list[Written]:
    return [item for at, item in enumerate(items) if at != place]


def decide(rule: Written, came: str | None, world: World) -> Truth:
    """Tell whether a rule fires now that a detector has come; None: for a rule without triggers."""
    triggers = tree(rule)
    first = [] if triggers is None or came is None else [holds_by(triggers, came, world)]
    return every([*first, *(condition(text, world) for text in rule.get("conditions", ()))])


def enabled(rule: Written, world: World, fail_mode: str) -> bool:
    """Tell whether a rule is in force in this exchange."""
    if "enabled_when" not in rule:
        return True
    truth = condition(rule["enabled_when"], world)
    return closes(rule, fail_mode) if truth is None else truth


def closes(rule: Written, fail_mode: str) -> bool:
    return bool(rule.get("fail_mode", fail_mode) == "closed")


def counts(rule: Written, truth: Truth, fail_mode: str) -> bool:
    """Tell whether a rule counts as fired: one that can't be decided does where its fail mode is closed."""
    excepts = any(action["type"] == "allow" for action in rule["actions"])
    return closes(rule, fail_mode) and not excepts if truth is None else truth
