"""Console summary of a run."""
