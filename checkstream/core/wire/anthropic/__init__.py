"""Anthropic's Messages API: how its requests, events and whole answers carry text, and how they are edited.

What it shares with OpenAI's older surfaces (strict JSON, texts of a prompt, what an answer says besides its texts,
edits by splicing) is used from where it stands.
"""
