"""Kinds of noise, a module each; `mechanisms/families.py` is the list of those that are drawn."""
