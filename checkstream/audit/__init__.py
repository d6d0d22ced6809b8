"""What is remembered: a hash chain of records for each process, signed heads beside it, and their verification.

`chain` is the format (pure), `keys` the secret, `segments` the files, `journal` the writer, `verify` the reader.
"""
