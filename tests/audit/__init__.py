"""Audits of the whole journey below HTTP: neighbouring data, planted faults, and lessons about sensitivity."""
