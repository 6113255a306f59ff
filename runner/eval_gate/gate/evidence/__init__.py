"""Evidence from case history and re-runs: whether a failure is a regression or chance."""
