"""The Model Context Protocol over streamable HTTP: JSON-RPC messages both ways, each read, judged and written whole."""
