"""The policy language: syntax, check, compile, program and the machine that runs it (`policies/LANGUAGE.md`)."""
