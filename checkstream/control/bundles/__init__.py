"""Which policies are in force: signed bundles of them, and how a node comes by one that it may trust."""

from __future__ import annotations

PASSPHRASE = "CHECKSTREAM_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable
"""Environment variable with what private keys in PEM are encrypted with, and the PIN of a token."""
