"""What a refusal says to people, whatever form its error has: most SDKs show them the message alone."""

from __future__ import annotations


def named(message: str, rule_id: str | None, param: str | None) -> str:
    """Return a message that names the rule behind it and the place in the request, where it does not do so itself.

    A place is named also where the message has its word: "this prompt was refused" says nothing of the field `prompt`.
    """
    if rule_id is None or rule_id in message:
        return message
    return f"{message} ({', '.join(filter(None, (f'rule {rule_id}', param)))})"
