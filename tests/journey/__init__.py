"""The journey with real parts: ledger, workers, snapshots and HTTP."""
