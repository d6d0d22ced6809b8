"""One event loop for the whole program: clients keep connections for later, and a connection belongs to its loop."""

from __future__ import annotations

import asyncio

run = asyncio.Runner().run
