"""Exact noise: integer results whose distribution is that of a rounded real, and selections by real noise."""

from mechanisms.samplers.discrete_laplace import discrete_laplace
from mechanisms.samplers.gaussian import rounded_gaussian
from mechanisms.samplers.laplace import rounded_laplace
from mechanisms.samplers.weighted import WeightTable

__all__ = ["WeightTable", "discrete_laplace", "rounded_gaussian", "rounded_laplace"]
