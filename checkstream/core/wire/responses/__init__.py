"""OpenAI's Responses API: how its requests, events and whole answers carry text, and how they are edited.

A stream says most of its text more than once: in pieces, when a part, an item and the answer are over. It is read
where it is said first, and whatever says it again leaves with what was sent.
"""
