"""Synthetic tables: what may be asked, the charge, the rows, and how questions find them."""
