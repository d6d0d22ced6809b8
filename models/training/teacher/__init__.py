"""The recipe of the teachers that students of `safety`, `injection` and claims learn from."""
