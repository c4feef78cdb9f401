"""What each kind of statistic sums: one class for each kind, in the order of the layers that sum it."""
