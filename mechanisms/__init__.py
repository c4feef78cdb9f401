"""Noise and its price in one object."""
