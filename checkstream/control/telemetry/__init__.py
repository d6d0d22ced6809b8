"""Telemetry of a fleet: audit chains, shipped. What leaves a node, how it is packed, and who sends it."""
