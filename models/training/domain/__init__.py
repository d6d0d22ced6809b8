"""The domain model: medical, legal, financial or none."""
