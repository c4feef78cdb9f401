"""Principals, API keys and the registry of datasets, in the ledger's database."""
