"""Trusted documents: fetched, cleaned, cut into chunks, embedded, indexed; and found again by words and by meaning.

`ingest` brings documents in, a `Store` keeps them, a `Retriever` finds what bears on a claim. Stores differ in where
they keep things, never in what they find: words are cut by one rule (`analysis`), vectors are compared exactly.
"""
