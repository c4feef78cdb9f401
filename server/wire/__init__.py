"""What goes over the wire: models of requests, which are enforced, and of answers, which are documentation."""
