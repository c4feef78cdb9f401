"""Synthetic tables: marginals measured with Gaussian noise, a model of them, and rows that are drawn from it."""
