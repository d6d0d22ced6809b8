"""The composition root: the parts (`parts.py`), what is in force (`force.py`), the process around them (`app.py`)."""

from checkstream.app.app import App
from checkstream.app.force import load
from checkstream.app.models import labels_of

__all__ = ["App", "labels_of", "load"]
