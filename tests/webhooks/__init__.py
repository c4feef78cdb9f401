"""Webhooks: where they may go, what is sent, and that it is sent until it is received."""
