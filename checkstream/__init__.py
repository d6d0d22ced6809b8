"""checkstream: a guardrail proxy that checks an LLM's streamed answer before it is sent on.

The public face is below; every other module may change between releases. Names are loaded when they are asked
for, so that importing a part of the package doesn't load all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkstream.faces import face

if TYPE_CHECKING:
    from checkstream.config import Config, load_config
    from checkstream.core.exchange.guard import Guard
    from checkstream.core.policy.compile import compile_policies

__version__ = "0.1.0"

__all__ = ["Config", "Guard", "__version__", "compile_policies", "load_config"]

_PLACES = {
    "Config": "checkstream.config",
    "Guard": "checkstream.core.exchange.guard",
    "compile_policies": "checkstream.core.policy.compile",
    "load_config": "checkstream.config",
}

__getattr__ = face("checkstream", _PLACES)
