"""The scoring API: the designs of grounding and the reliability gate over HTTP, and its own description in OpenAPI.

`operation` says what an endpoint is, `face` answers requests with a table of them, `scoring` and `evaluation` are the
tables, `openapi` describes what the tables say.
"""
