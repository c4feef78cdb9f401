"""What administrators do to budgets, principals, keys and datasets: each act once, for HTTP and the command line."""
