"""Paths into JSON, as people write them: `messages[0].content`, `temperature`."""

from __future__ import annotations


class Nowhere:
    """What a path leads to when nothing is there."""

    def __repr__(self) -> str:
        return "nothing"


NOWHERE = Nowhere()


def parse_path(text: str) -> tuple[str | int, ...] | None:
    """Return the steps of a path, or None when it is not one."""
    steps: list[str | int] = []
    for part in text.split("."):
        name, *indexes = part.split("[")
        if not name:
            return None
        steps.append(name)
        for index in indexes:
            digits = index.removesuffix("]")
            if digits == index or not (digits.isascii() and digits.isdecimal()) or len(digits) > 5:
                return None
            steps.append(int(digits))
    return tuple(steps)


def follow(value: object, path: tuple[str | int, ...]) -> object:
    """Return what stands at `path` in a JSON value, `NOWHERE` when nothing does."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step, NOWHERE) if isinstance(value, dict) else NOWHERE
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else NOWHERE
    return value
