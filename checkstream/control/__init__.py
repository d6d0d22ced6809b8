"""Which policies are in force, on one node and on a fleet: signed bundles, the node's agent, the control server."""
