"""HTML page of a run, self-contained in one file."""
