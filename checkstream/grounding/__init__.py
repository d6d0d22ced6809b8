"""Is an answer true to its evidence? Claims, evidence, verdicts, and the designs that reckon with them.

Formulas are pure and live in one module a design; only the shells of verifiers (`judge`, `cross_encoder`) wait.
Nothing here stores, queues or serves.
"""
