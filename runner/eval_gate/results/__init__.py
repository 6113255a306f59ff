"""Results on disk: written, read back, taken from archives, merged, and the ledger of a branch that goes with them."""
