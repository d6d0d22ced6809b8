"""The scripted LLM and the conversations that the demo, the tests and the bench run through the proxy."""
