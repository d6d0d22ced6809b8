"""Wire formats: server-sent events and the API surfaces, each to `Unit`s and back."""
