"""HTTP, identity, settings and the order of the journey."""
