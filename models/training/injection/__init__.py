"""Recipe of the model `injection`: prompt injection and jailbreaks, direct and inside documents, behind a gate."""
