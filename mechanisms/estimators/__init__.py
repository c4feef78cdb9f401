"""Estimators: what the noisy sums of one statistic say of an aggregate. `mechanisms.estimates` lists them."""
