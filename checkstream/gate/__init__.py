"""The reliability gate: prompts -> responses -> claims -> evidence -> verdicts -> score, and so deploy, warn or block.

`steps` are plain functions over a state that only grows; `pipeline` runs them and keeps what each item gave, so that a
run that was cut off goes on; `ledger` keeps every run for search, trend and comparison.
"""
