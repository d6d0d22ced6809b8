"""Recipes that rebuild the models that ship. Nothing here is imported by the proxy; it needs the extra `train`."""
