"""What is kept only sealed: what stands for whose data, what conversations came to, and how tools were described."""

from checkstream.sealed.conversations import Conversations
from checkstream.sealed.opening import open_conversations, open_tools, open_vault
from checkstream.sealed.tools import ToolStore
from checkstream.sealed.vault import Vault

__all__ = ["Conversations", "ToolStore", "Vault", "open_conversations", "open_tools", "open_vault"]
