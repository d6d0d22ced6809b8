"""checkstream: a guardrail proxy that checks an LLM's streamed answer before it is sent on."""

__version__ = "0.1.0"
