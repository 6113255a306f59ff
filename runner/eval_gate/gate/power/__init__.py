"""Statistical power of a gate: the chance that a run with these cases and history finds a loss."""
