"""What may be remembered of a conversation only sealed, for its caller alone: what stands for whose data."""

from checkstream.sealed.opening import open_vault
from checkstream.sealed.vault import Vault

__all__ = ["Vault", "open_vault"]
