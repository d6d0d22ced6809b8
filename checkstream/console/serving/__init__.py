"""A handler for each page: what it asks for, and which template shows it. `shell` is what they share."""
