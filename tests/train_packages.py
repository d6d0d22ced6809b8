"""The extra `train`, which recipes of models are made with, is large: `make test` does without it and says so."""

from __future__ import annotations

TRAIN = "`make train` installs the packages that recipes of models need"
"""Why a test of a recipe is skipped."""
