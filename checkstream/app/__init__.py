"""The composition root: what is in force (`force.py`) and the process around it (`app.py`)."""

from checkstream.app.app import App
from checkstream.app.force import labels_of, load

__all__ = ["App", "labels_of", "load"]
