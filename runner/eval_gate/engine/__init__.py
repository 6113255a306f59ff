"""Runs suites against a target: one event loop, a bounded pool, a journal that survives being killed."""
