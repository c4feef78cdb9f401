"""Streams of range queries: one envelope, a synopsis that answers, and a session that compares it with the data."""
