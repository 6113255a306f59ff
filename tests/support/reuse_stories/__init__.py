"""Random histories of a repository whose results are reused, and an oracle that knows what each run evaluated."""
