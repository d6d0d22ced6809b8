"""The Common Expression Language (cel.dev): conditions that always end and never fail in an unforeseen way.

`syntax` reads a tree (`ast`) from tokens (`lexer`), `check` resolves names and types, `cost` bounds the work, `code`
compiles, `verify` proves code safe, `machine` runs it over `values` with `functions`. Nothing here knows of policies.
"""
