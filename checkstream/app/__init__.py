"""The composition root: the parts (`parts.py`), what is in force (`force.py`), the process around them (`app.py`).

Most commands want a part of it alone, and a draft is checked while somebody types it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkstream.faces import face

if TYPE_CHECKING:
    from checkstream.app.app import App
    from checkstream.app.force import load
    from checkstream.app.models import labels_of

__all__ = ["App", "labels_of", "load"]
_PLACES = {"App": "checkstream.app.app", "labels_of": "checkstream.app.models", "load": "checkstream.app.force"}
__getattr__ = face(__name__, _PLACES)
