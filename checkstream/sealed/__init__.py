"""What is remembered of a conversation, sealed, for its caller alone: what stands for whose data, what it came to."""

from checkstream.sealed.conversations import Conversations
from checkstream.sealed.opening import open_conversations, open_vault
from checkstream.sealed.vault import Vault

__all__ = ["Conversations", "Vault", "open_conversations", "open_vault"]
