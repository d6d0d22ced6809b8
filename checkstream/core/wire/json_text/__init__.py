"""JSON as text: read strictly, found in its bytes by path, and edited in place."""
