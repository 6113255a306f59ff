"""Engine: runs suites against a target on one event loop, with a bounded pool and a journal."""
