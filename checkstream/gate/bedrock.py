"""Models and embeddings of AWS Bedrock, by its Converse API (extra `bedrock`). Keys come from the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.errors import ChatError, GateError, ScoringError
from checkstream.grounding.chat import ChatReply

TITAN = "amazon.titan-embed-text-v2:0"
_TITAN_DIMENSIONS = 1024
_TITAN_CHARS = 40_000


def client(timeout_s: float) -> Any:
    """Return a client of Bedrock's runtime; region and keys come from the usual places of AWS.

    Raises:
        GateError: the extra is not installed, or no region is known.
    """
    try:
        import boto3  # noqa: PLC0415 - an extra
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    except ImportError as error:
        raise GateError("bedrock needs the extra `bedrock`; run `pip install checkstream[bedrock]`") from error
    try:
        # No retries: a failure of a gate is to be seen (the design's own rule).
        settings = Config(read_timeout=timeout_s, connect_timeout=10, retries={"max_attempts": 0})
        return boto3.client("bedrock-runtime", config=settings)
    except BotoCoreError as error:
        raise GateError(
            f"bedrock can't be used: {type(error).__name__}; set AWS_DEFAULT_REGION and credentials"
        ) from error


class BedrockChat:
    """Asks one model by Converse. Implements `grounding.chat.Chat`; log probabilities and schemas it has none of."""

    def __init__(self, client: Any, model_id: str) -> None:
        """Ask `model_id` through a client."""
        self._client = client
        self.model = model_id

    async def ask(
        self,
        user: str,
        *,
        system: str = "",
        max_tokens: int,
        odds: bool = False,
        schema: Mapping[str, object] | None = None,
    ) -> ChatReply:
        """Ask once, in a thread.

        Raises:
            ChatError: no usable answer came.
        """
        del odds, schema
        asked = {
            "modelId": self.model,
            "messages": [{"role": "user", "content": [{"text": user}]}],
            "system": [{"text": system}] if system else [],
            "inferenceConfig": {"maxTokens": max_tokens, "temperature": 0.0},
        }
        answer = await asyncio.to_thread(_called, self._client.converse, asked, self.model)
        try:
            parts = answer["output"]["message"]["content"]
            return ChatReply(text="".join(part["text"] for part in parts if "text" in part))
        except (KeyError, TypeError) as error:
            raise ChatError(f"model `{self.model}` gave an answer of another form", reason="garbage") from error


class TitanEmbedder:
    """Titan Text Embeddings V2, normalised. Implements `scoring.embedding.Embedder`."""

    name = "titan-embed-text-v2"
    dimensions = _TITAN_DIMENSIONS

    def __init__(self, client: Any) -> None:
        """Embed through a client."""
        self._client = client

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32[text, 1024], each row of length 1; all zeros for a text that holds nothing.

        Raises:
            ScoringError: no usable vectors came.
        """
        rows = [await self._one(text) if text.strip() else np.zeros(_TITAN_DIMENSIONS, np.float32) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, _TITAN_DIMENSIONS), np.float32)

    async def _one(self, text: str) -> NDArray[np.float32]:
        body = msgspec.json.encode(
            {"inputText": text[:_TITAN_CHARS], "dimensions": _TITAN_DIMENSIONS, "normalize": True}
        )
        asked = {"modelId": TITAN, "body": body, "accept": "application/json", "contentType": "application/json"}
        try:
            answer = await asyncio.to_thread(_called, self._client.invoke_model, asked, TITAN)
            row = np.asarray(msgspec.json.decode(answer["body"].read())["embedding"], np.float64)
        except (ChatError, KeyError, TypeError, ValueError) as error:
            raise ScoringError(f"`{TITAN}` gave no vector: {error}", reason="crash") from error
        with np.errstate(over="ignore"):
            length = float(np.linalg.norm(row))
        if row.shape != (_TITAN_DIMENSIONS,) or not np.isfinite(length) or length == 0:
            raise ScoringError(f"`{TITAN}` gave a vector of another form", reason="garbage")
        return np.asarray(row / length, np.float32)


def _called(call: Any, asked: Mapping[str, Any], model: str) -> Any:
    """Call Bedrock; its exceptions become ours."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    try:
        return call(**asked)
    except ResponseParserError as error:
        raise ChatError(f"model `{model}` gave an answer of another form", reason="garbage") from error
    except (BotoCoreError, ClientError) as error:
        known = error.response["Error"].get("Code") if isinstance(error, ClientError) else None
        why = known or type(error).__name__  # its words name accounts and addresses, and callers read this too
        raise ChatError(
            f"bedrock refused `{model}`: {why}; check the model's id, region and rights", reason="refused"
        ) from error
