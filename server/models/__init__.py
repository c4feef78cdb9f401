"""Models: fitted once for a price, under a bounded number of noisy sums, and free to read."""
