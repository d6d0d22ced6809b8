"""The recipe of the model `reader`, which reads a claim beside its evidence."""
