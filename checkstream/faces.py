"""Public faces of packages whose parts are large: a name is loaded when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def face(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package (PEP 562).

    Args:
        package: Its name.
        places: Name of the face -> the module that has it.
    """

    def load(name: str) -> object:
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        value: object = getattr(importlib.import_module(place), name)
        return value

    return load
