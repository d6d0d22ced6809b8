"""The entity model: people, places, organisations and what else the matcher has no form for."""
