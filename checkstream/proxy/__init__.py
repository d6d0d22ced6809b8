"""The request path, one file per station: accept, upstream, relay, replies; `request.py` shows it whole."""
