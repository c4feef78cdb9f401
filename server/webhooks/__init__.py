"""Webhooks: what happened is sent to addresses that an administrator allows, signed, until it is received."""
