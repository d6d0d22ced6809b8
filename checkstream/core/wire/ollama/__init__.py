"""Ollama's own API: chat, generate and embed, streamed as a line of JSON each, and whole."""
