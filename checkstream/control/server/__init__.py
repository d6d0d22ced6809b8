"""The control server: which nodes there are, what each is to have in force, and what it says that it has."""
