"""The embedding model: all-MiniLM-L6-v2 as it is, in INT8. Nothing is trained."""
