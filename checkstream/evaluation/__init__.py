"""How good a classifier is: figures over scored texts, and reports of them. Knows nothing of how scores are made."""
