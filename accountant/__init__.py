"""Who may spend what: accounts, filters and the ledger."""
