"""Results as they are kept: the ledger of a branch's recent runs."""
