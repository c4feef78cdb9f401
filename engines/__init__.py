"""Runs generated statements on true data, and the public shell on released tables."""
