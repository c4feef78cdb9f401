"""Batches: counting queries that are answered together, from one release at one price."""
