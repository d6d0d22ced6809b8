"""Anthropic's Messages API: how its requests, events and whole answers carry text, and how they are edited."""
