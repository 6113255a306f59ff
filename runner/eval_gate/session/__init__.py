"""Use case of the gate, shared by all entry points: prepare, run, decide, store."""
