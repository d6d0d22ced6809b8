"""Exchanges of messages with a server of tools: what each says, judged as a prompt is, whichever way it goes."""
